// The rules: what each removed, how its numbers lie, and whether people agree with it.
import { box, h, row, text, UI, useState } from "../kit/h.js";
import { Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Empty, Loaded } from "../kit/notes.js";
import { NARROW, Panel, SURFACE } from "../kit/panel.js";
import { usePoll } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { lossTone } from "../kit/tones.js";
import { bound } from "../kit/words.js";
import { Histogram } from "./histogram.js";

const GRID = {
  display: "grid",
  gridTemplateColumns: "minmax(12rem, 1.6fr) 12rem 5.5rem 5rem 6.5rem 7rem",
  columnGap: 3,
  alignItems: "center",
  px: 3,
  css: {
    [NARROW]: { gridTemplateColumns: "minmax(9rem, 1fr) 5rem 4.5rem", "& [data-wide]": { display: "none" } },
  },
};

function Change({ rule, previous }) {
  const { t, f } = useText();
  if (typeof rule.previous_share !== "number") return text({ color: "fg.subtle" }, "–");
  const change = rule.share - rule.previous_share;
  const tone = lossTone(change);
  const title = t("rules.change_title", { now: f.share(rule.share), before: f.share(rule.previous_share), version: previous });
  return text(
    tone ? { colorPalette: tone, color: "colorPalette.fg", fontWeight: "semibold", title } : { color: "fg.muted", title },
    Math.abs(change) >= 0.005 && h(Icon, { name: change > 0 ? "up" : "down", display: "inline", verticalAlign: "-0.125em", mr: 0.5 }),
    t("funnel.points", { change: f.points(change) }),
  );
}

/** Bounds that differ by kind of text, such as code. */
function ByKind({ rule }) {
  const { t, f } = useText();
  const kinds = Object.entries(rule.by_kind ?? {});
  if (kinds.length === 0) return null;
  const told = kinds.map(([kind, [low, high]]) => t("rules.kind_bound", { kind, bound: bound(t, f, { low, high }) || t("rules.kind_off") }));
  return box({ fontSize: "sm", color: "fg.muted", mb: 2 }, t("rules.by_kind", { bounds: told.join(t("sentence.semicolon")) }));
}

function RuleRow({ rule, previous, open, onToggle }) {
  const { t, f, language } = useText();
  const cell = (props, ...children) =>
    box({ textAlign: "end", fontSize: "sm", fontVariantNumeric: "tabular-nums", whiteSpace: "nowrap", ...props }, ...children);
  const allowed = bound(t, f, rule);
  const reviews = rule.reviews ?? { keep: 0, drop: 0 };
  return box(
    { borderTopWidth: 1, borderColor: "border" },
    h(
      UI.Box,
      {
        as: "button",
        type: "button",
        "aria-expanded": open,
        onClick: onToggle,
        ...GRID,
        width: "100%",
        py: 2,
        textAlign: "start",
        cursor: "pointer",
        bg: open ? "brand.subtle" : undefined,
        _hover: { bg: open ? "brand.subtle" : SURFACE },
        _focusVisible: { outline: "2px solid", outlineColor: "brand.focusRing", outlineOffset: "-2px" },
      },
      box(
        { minW: 0 },
        box({ fontSize: "sm", fontWeight: "medium", _firstLetter: { textTransform: "uppercase" } }, rule.text?.[language] || rule.rule),
        row(
          { gap: 2, rowGap: 0, fontSize: "xs", color: "fg.muted" },
          text({ fontFamily: "mono" }, rule.rule),
          text({}, t(`layer.${rule.layer}`)),
          allowed && text({}, allowed),
        ),
      ),
      box({ "data-wide": "" }, rule.histogram && h(Histogram, { rule, height: 34 })),
      cell({ title: f.number(rule.hits) }, f.compact(rule.hits)),
      cell({}, f.share(rule.share)),
      cell({ "data-wide": "" }, h(Change, { rule, previous })),
      cell(
        { "data-wide": "", fontSize: "xs" },
        reviews.keep + reviews.drop > 0
          ? h(
              Tag,
              { tone: reviews.keep > reviews.drop ? "warning" : "success", icon: reviews.keep > reviews.drop ? "undo" : "check", title: t("rules.reviews_title", reviews) },
              t("rules.reviews", { right: reviews.drop, all: reviews.keep + reviews.drop }),
            )
          : text({ color: "fg.subtle" }, "–"),
      ),
    ),
    open &&
      box(
        { px: 3, pb: 3, pt: 1 },
        h(ByKind, { rule }),
        rule.histogram
          ? box({ maxW: "48rem" }, h(Histogram, { rule, height: 150, axis: true }))
          : box({ fontSize: "sm", color: "fg.muted" }, t("rules.no_histogram")),
      ),
  );
}

export function Rules({ dataset }) {
  const { t, f } = useText();
  const [read, write] = useQuery();
  const [order, setOrder] = useState("hits");
  const version = read("version");
  const chosen = read("rule");
  const poll = usePoll("rules", { dataset, version }, { every: 60000 });
  const change = (rule) => Math.abs(rule.share - (rule.previous_share ?? rule.share));
  const orders = { hits: (a, b) => b.hits - a.hits, change: (a, b) => change(b) - change(a), rule: (a, b) => a.rule.localeCompare(b.rule) };
  const heads = [
    ["rule", t("rules.rule"), {}],
    [null, t("rules.histogram"), { "data-wide": "" }],
    ["hits", t("rules.hits"), { textAlign: "end" }],
    [null, t("rules.share"), { textAlign: "end", title: t("rules.share_title") }],
    ["change", t("funnel.change"), { "data-wide": "", textAlign: "end" }],
    [null, t("rules.judged"), { "data-wide": "", textAlign: "end" }],
  ];
  return h(
    Panel,
    { title: t("rules.title"), note: t("rules.note"), flush: (poll.data?.rules.length ?? 0) > 0 },
    h(Loaded, { poll, lines: 8 }, (data) =>
      data.rules.length === 0
        ? h(Empty, { title: t("rules.none"), icon: "clock" }, t("rules.none_next"))
        : box(
            {},
            box(
              { px: 3, pt: 2, fontSize: "xs", color: "fg.muted", overflowWrap: "anywhere" },
              t("rules.of", { version: data.version }),
              data.run && ` ${t("rules.of_run", { run: data.run })}`,
              data.previous && ` ${t("rules.change_caption", { version: data.previous })}`,
            ),
            box(
              { ...GRID, py: 1.5 },
              ...heads.map(([name, title, props], index) =>
                box(
                  { key: index, fontSize: "xs", fontWeight: "semibold", color: "fg.muted", ...props },
                  name
                    ? h(
                        UI.Box,
                        {
                          as: "button",
                          type: "button",
                          cursor: "pointer",
                          fontWeight: "semibold",
                          color: order === name ? "fg" : "fg.muted",
                          "aria-pressed": order === name,
                          title: t("rules.sort"),
                          onClick: () => setOrder(name),
                        },
                        title,
                        order === name && " ↓",
                      )
                    : title,
                ),
              ),
            ),
            ...[...data.rules]
              .sort(orders[order])
              .map((rule) =>
                h(RuleRow, {
                  key: rule.rule,
                  rule,
                  previous: data.previous,
                  open: chosen === rule.rule,
                  onToggle: () => write({ rule: chosen === rule.rule ? "" : rule.rule }, { replace: true }),
                }),
              ),
            box({ px: 3, py: 2, fontSize: "xs", color: "fg.muted", borderTopWidth: 1, borderColor: "border" }, t("rules.count", { count: f.number(data.rules.length) })),
          ),
    ),
  );
}
