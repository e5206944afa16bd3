// One entry of a failure queue: what was sent, what came back, why it is no result, and the prompt to be edited.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { ActionButton, Said, useAction } from "../kit/action.js";
import { Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { ErrorBox, Loaded } from "../kit/notes.js";
import { Label } from "../kit/panel.js";
import { usePoll } from "../kit/poll.js";
import { Quoted } from "./quoted.js";

/** States in which an entry can still be edited and answered. */
const WAITING = ["OPEN", "REQUEUED", "DROPPED"];

function Editor({ messages, entry, task, onDone }) {
  const { t } = useText();
  // A call of a tool has no text; it is sent as it was.
  const isText = (message) => typeof message.content === "string";
  const [texts, setTexts] = useState(messages.map((message) => (isText(message) ? message.content : "")));
  const edit = useAction("samples/failure/edit");
  const save = async () => {
    const prompt = messages.map((message, index) => (isText(message) ? { ...message, content: texts[index] } : message));
    if (await edit.send({ dataset: task.dataset, task: task.task, key: entry.key, prompt })) onDone();
  };
  return column(
    {
      gap: 2,
      // The host listens for keys too; what is typed here is not meant for it.
      onKeyDown: (event) => event.nativeEvent.stopPropagation(),
    },
    ...messages.map((message, index) =>
      isText(message)
        ? box(
        { key: index },
        h(Label, null, message.role),
        h(UI.Textarea, {
          "aria-label": t("failures.message_of", { role: message.role }),
          size: "sm",
          rows: Math.min(12, 2 + texts[index].split("\n").length),
          value: texts[index],
          onChange: (event) => setTexts(texts.map((old, at) => (at === index ? event.target.value : old))),
        }),
      )
        : h(Quoted, { key: index, role: message.role, content: message }),
    ),
    row(
      {},
      h(UI.Button, { size: "sm", colorPalette: "brand", loading: edit.busy, onClick: save }, t("failures.save")),
      h(UI.Button, { size: "sm", variant: "ghost", onClick: onDone }, t("action.cancel")),
    ),
    edit.error && h(ErrorBox, { error: edit.error, compact: true }),
  );
}

function Whole({ entry, task, rights }) {
  const { t } = useText();
  const [editing, setEditing] = useState(false);
  const poll = usePoll("samples/failure", { dataset: task.dataset, task: task.task, key: entry.key }, { every: 0, keep: true });
  return h(Loaded, { poll, lines: 4 }, (data) => {
    const messages = data.edited_prompt ?? data.prompt;
    const waiting = WAITING.includes(data.state);
    return column(
      { gap: 2 },
      h(Label, null, t(data.edited_prompt ? "failures.prompt_edited" : "failures.prompt")),
      editing
        ? h(Editor, { messages, entry, task, onDone: () => setEditing(false) })
        : box({}, ...messages.map((message, index) => h(Quoted, { key: index, role: message.role, content: message.content }))),
      !editing &&
        waiting &&
        row({}, h(ActionButton, { size: "xs", denied: rights.whyAct, onClick: () => setEditing(true) }, t("failures.edit"))),
      h(Label, null, t("failures.answer")),
      data.raw_answer === null
        ? text({ fontSize: "sm", color: "fg.muted" }, t("failures.no_answer"))
        : h(Quoted, { content: data.raw_answer }),
      text({ fontSize: "xs", color: "fg.muted" }, `${data.model} · ${JSON.stringify(data.parameters)}`),
    );
  });
}

export function Failure({ entry, task, rights, tones }) {
  const { t, f } = useText();
  const [open, setOpen] = useState(false);
  const requeue = useAction("samples/failures/requeue");
  const drop = useAction("samples/failures/drop");
  const which = { dataset: task.dataset, task: task.task, error: "", key: entry.key };
  const waiting = WAITING.includes(entry.state);
  return box(
    { as: "li", py: 2, borderTopWidth: 1, borderColor: "border", _first: { borderTopWidth: 0 } },
    row(
      { gap: 2, rowGap: 1, alignItems: "flex-start" },
      h(Tag, { tone: tones[entry.state] ?? "gray" }, t(`failure_one.${entry.state}`)),
      box(
        { flex: "1 1 18rem", minW: 0, fontSize: "sm", overflowWrap: "anywhere" },
        entry.message ?? entry.error,
        box(
          { fontSize: "xs", color: "fg.muted" },
          t("failures.facts", { sample: f.number(entry.sample_id), draw: f.number(entry.draw + 1), attempts: f.number(entry.attempts) }),
          " ",
          text({ fontFamily: "mono" }, entry.key.slice(0, 12)),
        ),
      ),
      entry.edited && h(Tag, { tone: "brand" }, t("failures.edited")),
      h(
        ActionButton,
        { size: "xs", denied: rights.whyText, "aria-expanded": open, onClick: () => setOpen(!open) },
        h(Icon, { name: open ? "up" : "down" }),
        t("failures.show"),
      ),
      waiting &&
        entry.state !== "REQUEUED" &&
        h(
          ActionButton,
          { size: "xs", icon: "undo", denied: rights.whyAct, loading: requeue.busy, onClick: () => requeue.send(which) },
          t("failures.requeue"),
        ),
      waiting &&
        entry.state !== "DROPPED" &&
        h(
          ActionButton,
          { size: "xs", variant: "ghost", denied: rights.whyAct, loading: drop.busy, onClick: () => drop.send(which) },
          t("failures.drop"),
        ),
    ),
    (requeue.done || requeue.error) && h(Said, { action: requeue }),
    (drop.done || drop.error) && h(Said, { action: drop }),
    open && box({ mt: 2 }, h(Whole, { entry, task, rights })),
  );
}
