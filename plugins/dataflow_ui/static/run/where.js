// Where the run is now: who works on what, what is slow, what fails.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { ProgressBar } from "../kit/bar.js";
import { Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Label, Panel, WIDE } from "../kit/panel.js";
import { untilComplete, usePoll } from "../kit/poll.js";
import { Table } from "../kit/table.js";
import { Name } from "../kit/words.js";

/** A worker that has been silent this long may be lost: half of its lease. */
const SILENT_S = 30;

function Running({ tasks }) {
  const { t, f } = useText();
  const columns = [
    {
      name: "step",
      title: t("where.step_worker"),
      cell: (task) =>
        box({ minW: "8rem" }, box({ fontWeight: "medium" }, task.step), h(Name, { length: 26, color: "fg.muted" }, task.worker)),
    },
    {
      name: "file",
      title: t("where.file"),
      cell: (task) =>
        box(
          { minW: "13rem" },
          h(Name, { length: 44 }, task.file || task.partition),
          box({ fontSize: "xs", color: "fg.muted" }, [task.source, task.file && task.partition].filter(Boolean).join(" · ")),
        ),
    },
    {
      name: "row",
      title: t("where.row"),
      width: "6.5rem",
      end: true,
      cell: (task) =>
        task.rows
          ? box(
              {},
              t("where.rows", { row: f.compact(task.row), rows: f.compact(task.rows) }),
              box({ mt: 1 }, h(ProgressBar, { value: task.row / task.rows, label: t("where.row"), height: 1 })),
            )
          : f.number(task.row),
    },
    {
      name: "heartbeat",
      title: t("where.heartbeat"),
      end: true,
      cell: (task) =>
        task.heartbeat_age_s > SILENT_S
          ? h(Tag, { tone: "warning", icon: "alert", title: t("where.silent") }, f.duration(task.heartbeat_age_s))
          : f.duration(task.heartbeat_age_s),
    },
    {
      name: "attempt",
      title: t("where.attempt"),
      end: true,
      cell: (task) => (task.attempt > 1 ? h(Tag, { tone: "warning" }, f.number(task.attempt)) : f.number(task.attempt)),
    },
    { name: "seconds", title: t("where.since"), end: true, cell: (task) => f.duration(task.seconds) },
  ];
  return h(Table, {
    label: t("where.running"),
    columns,
    rows: tasks,
    id: (task) => `${task.step} ${task.partition}`,
  });
}

function Slowest({ tasks }) {
  const { t, f } = useText();
  const longest = Math.max(...tasks.map((task) => task.seconds), 0);
  return box(
    {},
    h(Label, null, t("where.slowest")),
    column(
      { gap: 1.5 },
      ...tasks.map((task) =>
        box(
          { key: `${task.step} ${task.partition}`, fontSize: "sm" },
          row(
            { flexWrap: "nowrap" },
            text({ fontWeight: "medium" }, task.step),
            h(Name, { length: 30, flex: 1, truncate: true }, task.partition),
            text({ color: "fg.muted", fontSize: "xs", whiteSpace: "nowrap" }, t("where.documents", { count: f.compact(task.documents) })),
            text({ fontVariantNumeric: "tabular-nums", whiteSpace: "nowrap" }, f.duration(task.seconds)),
          ),
          h(ProgressBar, { value: longest ? task.seconds / longest : 0, label: task.partition, height: 1 }),
        ),
      ),
    ),
  );
}

function Failures({ kind, entries }) {
  const { t, f } = useText();
  return box(
    { minW: 0 },
    h(Label, null, t(`where.failures_${kind}`)),
    column(
      { gap: 1.5 },
      ...entries.map((entry) =>
        box(
          { key: entry.name, fontSize: "sm", title: t("where.failed_of", { failed: f.number(entry.failed), documents: f.number(entry.documents), count: entry.documents }) },
          row(
            { flexWrap: "nowrap" },
            h(Name, { length: 34, mono: false, flex: 1 }, entry.name || t("where.unknown")),
            text({ fontVariantNumeric: "tabular-nums", whiteSpace: "nowrap" }, f.compact(entry.failed)),
            text({ color: "fg.muted", fontSize: "xs", width: "4rem", textAlign: "end" }, f.share(entry.share)),
          ),
          h(ProgressBar, { value: entry.share, label: entry.name, tone: entry.share > 0.05 ? "warning" : "gray", height: 1 }),
        ),
      ),
    ),
  );
}

function Broken({ tasks }) {
  const { t } = useText();
  const [open, setOpen] = useState("");
  return box(
    {},
    h(Label, null, t("where.broken")),
    column(
      { gap: 2 },
      ...tasks.map((task) => {
        const id = `${task.step} ${task.partition}`;
        const shown = open === id;
        return box(
          { key: id, borderLeftWidth: 3, borderColor: "danger.solid", pl: 3 },
          row(
            { rowGap: 0 },
            h(Tag, { tone: "danger", icon: "alert" }, t(`task_state.${task.state}`)),
            text({ fontWeight: "medium", fontSize: "sm" }, task.step),
            h(Name, null, task.partition),
            text({ fontSize: "xs", color: "fg.muted" }, t("where.attempts", { count: task.attempt })),
          ),
          box({ fontSize: "sm", overflowWrap: "anywhere", mt: 0.5 }, text({ fontWeight: "medium" }, task.error_type), " ", task.error_message),
          task.trace &&
            h(
              UI.Button,
              { size: "2xs", variant: "ghost", mt: 0.5, "aria-expanded": shown, onClick: () => setOpen(shown ? "" : id) },
              h(Icon, { name: shown ? "up" : "down" }),
              t("where.trace"),
            ),
          shown &&
            box(
              { as: "pre", fontSize: "xs", fontFamily: "mono", bg: "bg.muted", p: 2, borderRadius: "sm", overflow: "auto", maxHeight: "20rem", tabIndex: 0 },
              task.trace,
            ),
        );
      }),
    ),
  );
}

export function Where({ run, layer, every }) {
  const { t } = useText();
  const poll = usePoll("run/where", { run: run.run, layer }, { every: untilComplete(every), keep: true });
  return h(
    Panel,
    { id: "dataflow-where", title: t("where.title"), note: t("where.note") },
    h(Loaded, { poll, lines: 4 }, (data) => {
      const failed = (kind) => data.failures[kind].filter((entry) => entry.failed > 0);
      const kinds = ["parser", "host", "media_type"].filter((kind) => failed(kind).length > 0);
      const aside = (data.slowest.length > 0 ? 1 : 0) + kinds.length;
      return column(
        { gap: 4 },
        data.error_tasks.length > 0 && h(Broken, { tasks: data.error_tasks }),
        data.running.length > 0
          ? h(Running, { tasks: data.running })
          : h(Empty, { icon: "clock" }, t(run.state === "RUNNING" ? "where.idle" : "where.still")),
        aside > 0 &&
          h(
            UI.Grid,
            { gap: 5, templateColumns: "repeat(auto-fit, minmax(15rem, 1fr))", css: { [WIDE]: { gridTemplateColumns: `repeat(${Math.min(4, aside)}, minmax(0, 1fr))` } } },
            data.slowest.length > 0 && h(Slowest, { tasks: data.slowest }),
            ...kinds.map((kind) => h(Failures, { key: kind, kind, entries: failed(kind) })),
          ),
        aside > 0 && kinds.length === 0 && box({ fontSize: "sm", color: "fg.muted" }, t("where.no_failures")),
      );
    }),
  );
}
