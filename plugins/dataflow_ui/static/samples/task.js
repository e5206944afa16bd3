// One sample task: its state, where it stands, how fast, until when, what it did.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { StateBadge, Tag } from "../kit/badge.js";
import { ProgressBar } from "../kit/bar.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Held } from "../kit/pause.js";
import { SAMPLE_TONES } from "../kit/tones.js";
import { Name } from "../kit/words.js";
import { Control } from "./control.js";
import { Counts } from "./counts.js";
import { Failures } from "./failures.js";
import { isOpen } from "./state.js";

/** Rows done, share, pace and time left in one line. */
export function paceWords(task, { t, f }) {
  const parts = [];
  const known = typeof task.total === "number";
  const values = { rows: f.number(task.rows), total: f.number(task.total), count: known ? task.total : task.rows };
  parts.push(t(known ? "samples.rows_of" : "samples.rows", values));
  if (typeof task.progress === "number" && task.state !== "SUCCESS") parts.push(f.progress(task.progress));
  if (task.state === "RUNNING" && typeof task.rate === "number") parts.push(t("samples.rate", { rate: f.rate(task.rate) }));
  if (task.state === "RUNNING" && typeof task.eta === "number") parts.push(t("samples.eta", { eta: f.duration(task.eta) }));
  if (task.state === "SUCCESS" && task.ended_at) {
    parts.push(t("samples.took", { at: f.time(task.ended_at), took: f.duration(task.ended_at - task.started_at) }));
  }
  return parts.join(t("sentence.comma"));
}

function Where({ task }) {
  const { t, f } = useText();
  const { at } = task;
  if (!at || task.state === "SUCCESS") return null;
  return row(
    { gap: 1.5, rowGap: 0, fontSize: "sm", color: "fg.muted" },
    text({}, t("samples.at_file", { number: f.number(at.number), of: f.number(at.of) })),
    h(Name, { length: 70, color: "fg" }, at.path),
    text({}, t("samples.at_record", { offset: f.number(at.offset) })),
  );
}

function Problem({ error }) {
  if (!error) return null;
  return row(
    { fontSize: "sm", flexWrap: "nowrap", alignItems: "flex-start", color: "fg.error" },
    h(Icon, { name: "alert", mt: 0.5 }),
    box({ minW: 0, overflowWrap: "anywhere" }, error.type ? `${error.type}: ${error.message}` : error.message),
  );
}

function Head({ task, open, onToggle }) {
  const words = useText();
  const { t } = words;
  return h(
    UI.Box,
    {
      as: "button",
      type: "button",
      "aria-expanded": open,
      onClick: onToggle,
      width: "100%",
      textAlign: "start",
      cursor: "pointer",
      _focusVisible: { outline: "2px solid", outlineColor: "brand.focusRing" },
    },
    row(
      { rowGap: 1 },
      h(Icon, { name: open ? "up" : "down", color: "fg.muted" }),
      h(StateBadge, { state: task.state, tones: SAMPLE_TONES, words: "sample_state", size: "sm" }),
      text({ fontWeight: "semibold", fontSize: "sm" }, t(`samples.kind_${task.kind}`)),
      text({ fontSize: "sm", fontVariantNumeric: "tabular-nums" }, paceWords(task, words)),
      task.silent && h(Tag, { tone: "warning", icon: "alert" }, t("samples.silent")),
      task.failures?.OPEN > 0 && h(Tag, { tone: "warning", icon: "alert" }, t("samples.open_failures", { count: task.failures.OPEN })),
    ),
  );
}

export function Task({ task, rights }) {
  const { t, f } = useText();
  const [chosen, setChosen] = useState(null);
  const open = chosen ?? isOpen(task);
  return box(
    { px: 3, py: 2.5, borderTopWidth: 1, borderColor: "border", _first: { borderTopWidth: 0 } },
    h(Head, { task, open, onToggle: () => setChosen(!open) }),
    isOpen(task) &&
      typeof task.progress === "number" &&
      box({ mt: 2 }, h(ProgressBar, { value: task.progress, label: t("samples.progress"), tone: task.state === "PAUSED" ? "deferred" : "brand" })),
    open &&
      column(
        { gap: 3, mt: 2 },
        row(
          { gap: 1.5, rowGap: 0, fontSize: "xs", color: "fg.muted" },
          h(Name, { length: 70 }, task.task),
          text({}, t("samples.asked", { who: task.who, at: f.time(task.created_at) })),
          task.attempt > 1 && text({}, t("samples.attempt", { count: f.number(task.attempt) })),
        ),
        task.pause &&
          h(
            Held,
            { words: "samples", pause: task.pause, dataset: task.dataset },
            t(task.state === "RUNNING" ? "samples.stopping" : "samples.held"),
          ),
        h(Where, { task }),
        h(Problem, { error: task.error }),
        task.note && text({ fontSize: "sm", color: "fg.muted" }, t("samples.stopped", { why: task.note })),
        h(Counts, { task }),
        h(Control, { task, rights }),
        task.failures && h(Failures, { task, rights }),
      ),
  );
}
