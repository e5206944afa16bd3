// Names that come from the server, cut or put into words.
import { box, text } from "./h.js";

/** A long name with its middle cut out: beginnings and endings tell files and ids apart. */
export function shorten(name, length = 44) {
  if (typeof name !== "string" || name.length <= length) return name ?? "–";
  const head = Math.ceil((length - 1) * 0.4);
  return `${name.slice(0, head)}…${name.slice(name.length - (length - 1 - head))}`;
}

/** A name that may be long; the whole of it shows on hover. */
export function Name({ children, length = 44, mono = true, ...props }) {
  return text(
    {
      title: children,
      fontFamily: mono ? "mono" : undefined,
      fontSize: mono ? "xs" : undefined,
      overflowWrap: "anywhere",
      ...props,
    },
    shorten(children, length),
  );
}

/**
 * A snippet with the match marked; it is text, never markup.
 * `match` counts characters, as the server does; a string of JavaScript counts some of them twice.
 */
export function Marked({ snippet, match, ...props }) {
  const characters = match ? Array.from(snippet) : [];
  const cut = (from, to) => characters.slice(from, to).join("");
  const parts = match
    ? [
        cut(0, match[0]),
        text(
          { as: "mark", key: "match", bg: "warning.muted", color: "fg", borderRadius: "2px", boxDecorationBreak: "clone" },
          cut(match[0], match[1]),
        ),
        cut(match[1]),
      ]
    : [snippet];
  return box({ fontSize: "sm", lineHeight: "tall", whiteSpace: "pre-wrap", overflowWrap: "anywhere", ...props }, ...parts);
}

/** A rule's bound in words, and where a value stands: "0.43, at most 0.30". */
export function bound(t, f, { low, high }) {
  const has = (value) => typeof value === "number";
  if (has(low) && has(high)) return t("bound.between", { low: f.exact(low), high: f.exact(high) });
  if (has(low)) return t("bound.low", { low: f.exact(low) });
  if (has(high)) return t("bound.high", { high: f.exact(high) });
  return "";
}
