// The failure queue of an augmentation: by error, then entry by entry; each can be read, edited, asked again, dropped.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { ActionButton, Question, Said, useAction } from "../kit/action.js";
import { Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Label } from "../kit/panel.js";
import { FAST_MS, SLOW_MS, usePoll } from "../kit/poll.js";
import { Failure } from "./failure.js";
import { isMoving } from "./state.js";

export const FAILURE_TONES = { OPEN: "warning", REQUEUED: "brand", DROPPED: "gray", SOLVED: "success", REPLACED: "gray" };

/** Both answers to all entries that `which` names, so many in each state: ask again, or give up after a question. */
function Answers({ which, states, rights }) {
  const { t, f } = useText();
  const open = states.OPEN ?? 0;
  const again = open + (states.DROPPED ?? 0);
  const up = open + (states.REQUEUED ?? 0);
  const requeue = useAction("samples/failures/requeue");
  const drop = useAction("samples/failures/drop");
  const [asking, setAsking] = useState(false);
  return column(
    { gap: 2 },
    row(
      {},
      h(
        ActionButton,
        {
          icon: "undo",
          size: "xs",
          denied: rights.whyAct,
          disabled: again === 0,
          title: t("failures.requeue_title"),
          loading: requeue.busy,
          onClick: () => requeue.send(which),
        },
        t("failures.requeue"),
      ),
      h(
        ActionButton,
        {
          size: "xs",
          variant: "ghost",
          denied: rights.whyAct,
          disabled: up === 0,
          "aria-expanded": asking,
          onClick: () => setAsking(!asking),
        },
        t("failures.drop"),
      ),
    ),
    asking &&
      h(Question, {
        ask: {
          title: t("failures.drop_title", { count: f.number(up) }),
          text: t("failures.drop_text"),
          confirm: t("failures.drop_now"),
          tone: "danger",
        },
        busy: drop.busy,
        error: drop.error,
        onConfirm: async () => {
          if (await drop.send(which)) setAsking(false);
        },
        onCancel: () => setAsking(false),
      }),
    (requeue.done || requeue.error) && h(Said, { action: requeue }),
    drop.done && h(Said, { action: drop }),
  );
}

function Page({ task, error, after, last, onMore, rights }) {
  const { t } = useText();
  const asked = { dataset: task.dataset, task: task.task, error, after };
  const poll = usePoll("samples/failures", asked, { every: 0, keep: true });
  return h(Loaded, { poll, lines: 3 }, (data) =>
    box(
      {},
      ...data.failures.map((entry) => h(Failure, { key: entry.key, entry, task, rights, tones: FAILURE_TONES })),
      last &&
        data.next &&
        box({ py: 2 }, h(UI.Button, { size: "xs", variant: "outline", onClick: () => onMore(data.next) }, t("failures.more"))),
    ),
  );
}

function Pages({ task, error, rights }) {
  const { t } = useText();
  const [pages, setPages] = useState([""]);
  return box(
    { as: "ul", listStyleType: "none", "aria-label": t("failures.list") },
    ...pages.map((after, index) =>
      h(Page, {
        key: after,
        task,
        error,
        after,
        last: index === pages.length - 1,
        onMore: (next) => setPages((old) => [...old, next]),
        rights,
      }),
    ),
  );
}

/** One error: how many entries of it are in which state, and both answers to all that wait. */
function Kind({ error, states, chosen, onChoose, task, rights }) {
  const { t, f } = useText();
  return row(
    { gap: 3, rowGap: 1, py: 1, alignItems: "flex-start" },
    row(
      { rowGap: 1, minH: 7 },
      h(
        UI.Button,
        { size: "xs", variant: chosen ? "solid" : "outline", "aria-pressed": chosen, onClick: onChoose },
        error,
      ),
      ...Object.entries(states).map(([state, count]) =>
        h(Tag, { key: state, tone: FAILURE_TONES[state] ?? "gray" }, t(`failure_state.${state}`, { count: f.number(count) })),
      ),
    ),
    h(Answers, { which: { dataset: task.dataset, task: task.task, error }, states, rights }),
  );
}

function byError(groups) {
  const found = new Map();
  for (const { error, state, failures } of groups) found.set(error, { ...found.get(error), [state]: failures });
  return [...found.entries()];
}

export function Failures({ task, rights }) {
  const { t } = useText();
  const [error, setError] = useState(null);
  const poll = usePoll("samples/failures", { dataset: task.dataset, task: task.task }, {
    every: isMoving(task) ? FAST_MS : SLOW_MS,
    keep: true,
  });
  return box(
    {},
    h(Label, null, t("failures.title")),
    h(Loaded, { poll, lines: 1 }, (data) => {
      const kinds = byError(data.groups);
      if (kinds.length === 0) return h(Empty, null, t("failures.none"));
      return column(
        { gap: 1 },
        rights.known && rights.whyText && box({ fontSize: "xs", color: "fg.muted" }, rights.whyText),
        ...kinds.map(([name, states]) =>
          h(Kind, {
            key: name,
            error: name,
            states,
            chosen: error === name,
            onChoose: () => setError(error === name ? null : name),
            task,
            rights,
          }),
        ),
        error === null
          ? text({ fontSize: "xs", color: "fg.muted" }, t("failures.choose"))
          : h(Pages, { key: `entries ${error}`, task, error, rights }),
      );
    }),
  );
}
