import { box, h, text } from "../kit/h.js";
import { SURFACE } from "../kit/panel.js";

/** Text of a sample, a prompt or an answer: as it is, never as markup. */
export function Quoted({ role, content, children }) {
  return box(
    { bg: SURFACE, borderWidth: 1, borderColor: "border", borderRadius: "md", px: 3, py: 2, mb: 1, fontSize: "sm" },
    role && text({ as: "div", fontSize: "xs", fontWeight: "semibold", color: "fg.muted" }, role),
    h(
      "div",
      { style: { whiteSpace: "pre-wrap", overflowWrap: "anywhere", maxHeight: "24rem", overflowY: "auto" } },
      typeof content === "string" ? content : JSON.stringify(content, null, 2),
    ),
    children,
  );
}
