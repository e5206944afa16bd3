// One removed document: why, by how much, and the text with the place marked.
import { CopyOf } from "../kit/copy_of.js";
import { box, h, row, text } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { SURFACE } from "../kit/panel.js";
import { bound, Marked, Name } from "../kit/words.js";
import { Tag } from "../kit/badge.js";

/** A short scale with the allowed range filled and the value's place marked. */
function Scale({ value, low, high, label }) {
  const has = (number) => typeof number === "number" && Number.isFinite(number);
  if (!has(value) || (!has(low) && !has(high))) return null;
  const points = [value, low, high].filter(has);
  const from = Math.min(0, ...points);
  const until = Math.max(...points) * 1.15 || 1;
  const place = (number) => ((number - from) / (until - from)) * 100;
  const start = has(low) ? place(low) : 0;
  const end = has(high) ? place(high) : 100;
  return box(
    { width: "9rem", height: 2, position: "relative", bg: "bg.emphasized", borderRadius: "full", role: "img", "aria-label": label },
    box({
      position: "absolute",
      insetY: 0,
      bg: "success.muted",
      borderRadius: "full",
      style: { left: `${start}%`, width: `${end - start}%` },
    }),
    box({
      position: "absolute",
      top: "-3px",
      height: "14px",
      width: "3px",
      borderRadius: "full",
      bg: "danger.solid",
      style: { left: `calc(${Math.min(99, place(value))}% - 1px)` },
    }),
  );
}

export function RemovedDocument({ document }) {
  const { t, f, language } = useText();
  const allowed = bound(t, f, document);
  const words = document.rule_text?.[language] || document.rule;
  // A duplicate's value is its likeness, which stands beside its survivor.
  const measured = typeof document.value === "number" && !document.survivor;
  return box(
    {},
    row(
      { rowGap: 1, alignItems: "baseline" },
      box({ fontWeight: "semibold", _firstLetter: { textTransform: "uppercase" } }, words),
      h(Tag, { fontFamily: "mono" }, document.rule),
    ),
    row(
      { mt: 1, fontSize: "sm", gap: 3, rowGap: 1 },
      measured &&
        text(
          {},
          t("removed.value"),
          " ",
          text({ fontWeight: "semibold", color: "danger.fg", fontVariantNumeric: "tabular-nums" }, f.exact(document.value)),
          allowed && text({ color: "fg.muted" }, ` · ${allowed}`),
        ),
      measured && h(Scale, { ...document, label: `${t("removed.value")} ${f.exact(document.value)}, ${allowed}` }),
      document.survivor &&
        h(CopyOf, { of: { ...document, file: document.survivor_path } }),
    ),
    row(
      { mt: 1, fontSize: "xs", color: "fg.muted", gap: 3, rowGap: 0 },
      text({}, document.source),
      h(Name, { length: 80 }, document.url || document.path),
      typeof document.length === "number" && text({}, t("removed.length", { count: f.number(document.length) })),
    ),
    document.snippet
      ? h(Marked, {
          snippet: document.snippet,
          match: document.match,
          mt: 2,
          px: 3,
          py: 2,
          bg: SURFACE,
          borderRadius: "md",
          borderWidth: 1,
          borderColor: "border",
          maxHeight: "13rem",
          overflowY: "auto",
        })
      : box({ mt: 2, fontSize: "sm", color: "fg.muted" }, t(document.length === 0 ? "removed.no_text" : "removed.no_snippet")),
  );
}
