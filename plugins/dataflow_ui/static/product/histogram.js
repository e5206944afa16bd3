// How a rule's numbers lie over the documents, with the bound drawn and what lies outside it marked.
import { box, h, row, text } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { bound } from "../kit/words.js";

const WIDTH = 400;

export function Histogram({ rule, height, axis = false }) {
  const { t, f } = useText();
  const { edges, counts, measured } = rule.histogram;
  const most = Math.max(1, ...counts);
  const bars = counts.length;
  const slot = WIDTH / bars;
  const outside = (index) => {
    const middle = (edges[index] + edges[index + 1]) / 2;
    return (typeof rule.low === "number" && middle < rule.low) || (typeof rule.high === "number" && middle > rule.high);
  };
  /** Where a value stands, in the bars' own scale: edges need not be equally far apart. */
  const place = (value) => {
    if (value <= edges[0]) return 0;
    for (let index = 0; index < bars; index += 1) {
      if (value <= edges[index + 1]) {
        return (index + (value - edges[index]) / (edges[index + 1] - edges[index])) * slot;
      }
    }
    return WIDTH;
  };
  const marks = [rule.low, rule.high].filter((value) => typeof value === "number");
  const picture = h(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${height}`,
      preserveAspectRatio: "none",
      width: "100%",
      height,
      role: "img",
      "aria-label": t("rules.histogram_label", { rule: rule.rule, bound: bound(t, f, rule) }),
    },
    ...counts.map((count, index) =>
      h(
        "rect",
        {
          key: index,
          x: index * slot + slot * 0.06,
          width: slot * 0.88,
          // Few documents in a wide range still leave a trace.
          y: height - (count > 0 ? Math.max(1.5, (count / most) * (height - 2)) : 0),
          height: count > 0 ? Math.max(1.5, (count / most) * (height - 2)) : 0,
          fill: outside(index) ? "var(--chakra-colors-warning-solid)" : "var(--chakra-colors-brand-emphasized)",
        },
        h("title", null, `${f.exact(edges[index])} – ${f.exact(edges[index + 1])}: ${f.number(count)}`),
      ),
    ),
    ...marks.map((value, index) =>
      h("line", {
        key: `mark${index}`,
        x1: place(value),
        x2: place(value),
        y1: 0,
        y2: height,
        stroke: "var(--chakra-colors-danger-solid)",
        strokeWidth: 2,
        strokeDasharray: "4 3",
        vectorEffect: "non-scaling-stroke",
      }),
    ),
  );
  if (!axis) return picture;
  return box(
    {},
    picture,
    row(
      { justifyContent: "space-between", fontSize: "xs", color: "fg.muted", borderTopWidth: 1, borderColor: "border.emphasized", pt: 1 },
      text({}, f.exact(edges[0])),
      text({ color: "fg" }, bound(t, f, rule)),
      text({}, f.exact(edges[bars])),
    ),
    box(
      { fontSize: "xs", color: "fg.muted", mt: 1 },
      t("rules.histogram_note"),
      typeof measured === "number" && ` ${t("rules.histogram_count", { count: f.number(measured) })}`,
    ),
  );
}
