// What a task has done, in numbers: its sums, and lists of rules, changes and reasons.
import { box, h, row, text } from "../kit/h.js";
import { Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Label, Stat } from "../kit/panel.js";

/** Sums that have words, by kind of task, in the order in which they are shown. */
const SHOWN = {
  import: ["records", "rows", "refused"],
  clean: ["dialogues", "kept", "rejected", "duplicate", "turns_changed", "not_compared"],
  augment: [],
  export: ["dialogues", "records", "shards", "bytes"],
  delete: ["dialogues", "rows"],
  restore: ["dialogues", "rows"],
};
const LISTS = ["rules", "changes", "repaired", "left_out"];
const MOST = 12;

function List({ name, entries }) {
  const { t, f } = useText();
  if (!entries || entries.length === 0) return null;
  const rest = entries.length - MOST;
  return box(
    {},
    h(Label, null, t(`samples.list_${name}`)),
    row(
      { gap: 1.5, rowGap: 1 },
      ...entries
        .slice(0, MOST)
        .map((entry) => h(Tag, { key: entry.name, tone: "gray" }, `${entry.name}: ${f.number(entry.count)}`)),
      rest > 0 && text({ fontSize: "xs", color: "fg.muted" }, t("samples.more_kinds", { count: f.number(rest) })),
    ),
  );
}

/** Tokens and money of an augmentation, and how its questions ended. */
function Model({ model, budget }) {
  const { t, f } = useText();
  const money = (value) => `${f.exact(value)}${budget?.currency ? ` ${budget.currency}` : ""}`;
  const of = (value, most, show) => (typeof most === "number" ? t("samples.of_budget", { value: show(value), most: show(most) }) : show(value));
  return [
    h(Stat, { key: "model", label: t("samples.model"), value: model.model, hint: model.template }),
    h(Stat, { key: "answered", label: t("samples.answered"), value: f.number(model.answered) }),
    h(Stat, { key: "failed", label: t("samples.failed"), value: f.number(model.failed) }),
    model.reused > 0 && h(Stat, { key: "reused", label: t("samples.reused"), value: f.number(model.reused) }),
    h(Stat, {
      key: "tokens",
      label: t("samples.tokens"),
      value: of(model.tokens, budget?.budget_tokens, f.number),
      hint: t("samples.tokens_hint", { prompt: f.number(model.prompt_tokens), completion: f.number(model.completion_tokens) }),
    }),
    h(Stat, { key: "cost", label: t("samples.cost"), value: of(model.cost, budget?.budget_cost, money) }),
  ];
}

export function Counts({ task }) {
  const { t, f } = useText();
  const shown = (SHOWN[task.kind] ?? []).filter((name) => task.counts[name] !== undefined);
  return [
    (shown.length > 0 || task.model) &&
      row(
        { key: "sums", gap: 6, rowGap: 2, alignItems: "flex-start" },
        ...shown.map((name) =>
          h(Stat, { key: name, label: t(`samples.count_${name}`), value: f.number(task.counts[name]) }),
        ),
        task.model && h(Model, { model: task.model, budget: task.budget }),
      ),
    ...LISTS.map((name) => h(List, { key: name, name, entries: task[name] })),
  ];
}
