// The section of the page in the navigation: tasks of a data set of samples, and its dialogues.
import { box, h, row, UI } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { Empty, Loaded, PageError } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { FAST_MS, SLOW_MS, usePoll } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { useRights } from "../kit/rights.js";
import { Select } from "../kit/select.js";
import { Browser } from "./browser.js";
import { isMoving } from "./state.js";
import { Task } from "./task.js";
import { Upload } from "./upload.js";

const PARTS = ["tasks", "browse", "upload"];

function Choice({ datasets, value, onChange }) {
  const { t } = useText();
  return h(Select, {
    label: t("nav.dataset"),
    value,
    onChange,
    options: datasets.map((entry) => [entry.dataset, entry.dataset]),
    width: "18rem",
    maxW: "100%",
  });
}

function Tasks({ dataset, rights }) {
  const { t, f } = useText();
  const poll = usePoll("samples/tasks", { dataset }, {
    every: (data) => (data?.tasks.some(isMoving) ? FAST_MS : SLOW_MS),
  });
  const tasks = poll.data?.tasks ?? [];
  return h(
    Panel,
    {
      title: t("samples.tasks"),
      note: poll.data?.more ? t("samples.newest", { count: f.number(tasks.length) }) : null,
      flush: tasks.length > 0,
    },
    h(Loaded, { poll, lines: 4 }, () =>
      tasks.length === 0
        ? h(Empty, null, t("samples.no_tasks"))
        : box({}, ...tasks.map((task) => h(Task, { key: task.task, task, rights }))),
    ),
  );
}

export function Samples() {
  const { t, f } = useText();
  const [read, write] = useQuery();
  const poll = usePoll("samples/datasets", {}, { every: SLOW_MS });
  const datasets = poll.data?.datasets ?? [];
  const dataset = read("dataset") || datasets[0]?.dataset || "";
  const rights = useRights(dataset);
  const part = PARTS.includes(read("part")) ? read("part") : "tasks";
  const entry = datasets.find((one) => one.dataset === dataset);
  return [
    h(PageError, { key: "error", ...poll }),
    poll.data !== null &&
      datasets.length === 0 &&
      h(Panel, { key: "empty" }, h(Empty, { title: t("samples.none"), icon: "open" }, t("samples.none_next"))),
    datasets.length > 0 &&
      row(
        { key: "head" },
        h(Choice, { datasets, value: dataset, onChange: (name) => write({ dataset: name, file: "", record: "" }) }),
        ...PARTS.map((name) =>
          h(
            UI.Button,
            {
              key: name,
              size: "sm",
              variant: part === name ? "solid" : "outline",
              "aria-pressed": part === name,
              onClick: () => write({ part: name }),
            },
            t(`samples.part_${name}`),
          ),
        ),
        entry && box({ fontSize: "sm", color: "fg.muted" }, t("samples.size", { files: f.number(entry.files), count: entry.rows, rows: f.number(entry.rows) })),
      ),
    dataset && part === "tasks" && h(Tasks, { key: `tasks ${dataset}`, dataset, rights }),
    dataset && part === "upload" && h(Upload, { key: `upload ${dataset}`, dataset, rights }),
    dataset && part === "browse" && h(Browser, { key: `browse ${dataset}`, dataset, rights }),
  ];
}
