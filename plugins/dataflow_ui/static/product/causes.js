// How much of a change each cause brought, with examples.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { PageLink, productPath } from "../kit/links.js";
import { Empty } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { Name } from "../kit/words.js";

function Bars({ cause, most }) {
  const part = (value) => (most > 0 ? `${(value / most) * 100}%` : "0%");
  const half = (value, tone, align) =>
    h(
      UI.Flex,
      { flex: 1, justifyContent: align, bg: "bg.muted", height: 4, borderRadius: "sm", overflow: "hidden" },
      box({ colorPalette: tone, bg: "colorPalette.solid", height: "100%", style: { width: part(value) } }),
    );
  return h(
    UI.Flex,
    { gap: "2px", flex: 1, minW: "6rem", "aria-hidden": true },
    half(cause.removed, "warning", "flex-end"),
    half(cause.added, "brand", "flex-start"),
  );
}

function Examples({ examples, dataset }) {
  const { t } = useText();
  return column(
    { gap: 1, pl: "8.5rem", pb: 2 },
    ...examples.map((example) =>
      box(
        { key: example.doc_id, fontSize: "sm" },
        h(
          PageLink,
          { to: productPath({ view: "search", dataset, q: example.doc_id, by: "id" }) },
          h(Name, { length: 70 }, example.path || example.doc_id),
        ),
        text(
          { color: "fg.muted", fontSize: "xs" },
          ` ${[example.change && t(`compare_change.${example.change}`), example.source, example.why].filter(Boolean).join(" · ")}`,
        ),
      ),
    ),
  );
}

export function Causes({ causes, notes, dataset }) {
  const { t, f } = useText();
  const [open, setOpen] = useState("");
  const most = Math.max(0, ...causes.map((cause) => Math.max(cause.added, cause.removed)));
  const number = (value, sign) =>
    text(
      { width: "5rem", textAlign: "end", fontVariantNumeric: "tabular-nums", fontSize: "sm", color: value ? "fg" : "fg.subtle", title: f.number(value) },
      value ? `${sign}${f.compact(value)}` : "0",
    );
  return h(
    Panel,
    { title: t("compare.causes"), note: t("compare.causes_note") },
    causes.length === 0 && h(Empty, null, t("compare.causes_none")),
    column(
      { gap: 1 },
      ...causes.map((cause) => {
        const shown = open === cause.cause;
        return box(
          { key: cause.cause },
          row(
            { flexWrap: "nowrap", minH: 8 },
            text({ width: "8rem", fontSize: "sm", fontWeight: "medium", flexShrink: 0, title: t(`cause_help.${cause.cause}`) }, t(`cause.${cause.cause}`)),
            number(cause.removed, "−"),
            h(Bars, { cause, most }),
            number(cause.added, "+"),
            h(
              UI.Button,
              {
                size: "xs",
                variant: "ghost",
                minW: "6.5rem",
                disabled: cause.examples.length === 0,
                "aria-expanded": shown,
                onClick: () => setOpen(shown ? "" : cause.cause),
              },
              h(Icon, { name: shown ? "up" : "down" }),
              t("compare.examples"),
            ),
          ),
          shown && h(Examples, { examples: cause.examples, dataset }),
        );
      }),
    ),
    notes.length > 0 &&
      box({ fontSize: "xs", color: "fg.muted", mt: 2 }, ...notes.map((note) => box({ key: note }, note))),
  );
}
