// The tab of a run of the samples DAG: its sample tasks, one below the other.
import { h } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { productPath, PageLink } from "../kit/links.js";
import { Empty, ErrorBox, Loading, PageError } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { FAST_MS, SLOW_MS, usePoll } from "../kit/poll.js";
import { useRights } from "../kit/rights.js";
import { isMoving } from "./state.js";
import { Task } from "./task.js";

/** The DAG that makes sample tasks. */
export const SAMPLES = "samples";

export function SamplesRun({ runId }) {
  const { t } = useText();
  const poll = usePoll("samples/run", { dag_run: runId }, {
    // Before its first task has begun there is nothing to show: look often, it begins any moment.
    every: (data) => (data === null || data.tasks.length === 0 || data.tasks.some(isMoving) ? FAST_MS : SLOW_MS),
  });
  const dataset = poll.data?.tasks[0]?.dataset ?? "";
  const rights = useRights(dataset);
  if (poll.data === null) return h(Panel, null, poll.error ? h(ErrorBox, poll) : h(Loading, { lines: 5 }));
  const { tasks } = poll.data;
  return [
    h(PageError, { key: "error", ...poll }),
    h(
      Panel,
      {
        key: "tasks",
        title: t("samples.run_title"),
        note: dataset,
        flush: tasks.length > 0,
        aside: dataset && h(PageLink, { to: productPath({ view: "samples", dataset }), fontSize: "sm" }, t("samples.all_of", { dataset })),
      },
      tasks.length === 0
        ? h(Empty, { title: t("samples.not_begun"), icon: "clock" }, t("samples.not_begun_next"))
        : tasks.map((task) => h(Task, { key: task.task, task, rights })),
    ),
  ];
}
