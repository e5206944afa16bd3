// Pause, resume and cancel of one sample task, each beside its command.
import { column, h, row, text, useState } from "../kit/h.js";
import { ActionButton, Denied, Question, Said, useAction } from "../kit/action.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Scope } from "../kit/pause.js";
import { isMoving, isOpen } from "./state.js";

const SCOPES = ["run", "dataset"];

export function Control({ task, rights }) {
  const { t } = useText();
  const pause = useAction("samples/task/pause");
  const resume = useAction("samples/task/resume");
  const cancel = useAction("samples/task/cancel");
  const [asking, setAsking] = useState("");
  const [scope, setScope] = useState("run");
  if (!isOpen(task)) return null;
  const named = { dataset: task.dataset, task: task.task };
  const toggle = (what) => setAsking(asking === what ? "" : what);
  const close = () => setAsking("");
  return column(
    { gap: 2 },
    row(
      {},
      task.pause &&
        h(
          ActionButton,
          {
            icon: "play",
            variant: "solid",
            denied: rights.whyAct,
            loading: resume.busy,
            onClick: () => resume.send({ ...named, scope: task.pause.scope }),
          },
          t("samples.resume"),
        ),
      !task.pause &&
        isMoving(task) &&
        h(
          ActionButton,
          { icon: "pause", denied: rights.whyAct, "aria-expanded": asking === "pause", onClick: () => toggle("pause") },
          t("samples.pause"),
        ),
      h(
        ActionButton,
        {
          icon: "stop",
          variant: "ghost",
          denied: rights.whyAct,
          "aria-expanded": asking === "cancel",
          onClick: () => toggle("cancel"),
        },
        t("samples.cancel"),
      ),
      h(CliLine, { command: task.pause || !isMoving(task) ? task.cli.resume : task.cli.pause, maxW: "28rem" }),
    ),
    !task.pause && !isMoving(task) && text({ fontSize: "xs", color: "fg.muted" }, t("samples.nobody")),
    asking === "pause" &&
      !task.pause &&
      h(Question, {
        ask: {
          title: t("samples.pause_title"),
          text: t("samples.pause_text"),
          confirm: t("samples.pause_now"),
          noteLabel: t("samples.pause_why"),
          extra: h(Scope, { words: "samples", scopes: SCOPES, value: scope, onChange: setScope, dataset: task.dataset }),
        },
        busy: pause.busy,
        error: pause.error,
        onConfirm: async (why) => {
          if (await pause.send({ ...named, scope, why })) close();
        },
        onCancel: close,
      }),
    asking === "cancel" &&
      h(Question, {
        ask: {
          title: t("samples.cancel_title"),
          text: t("samples.cancel_text"),
          confirm: t("samples.cancel_now"),
          tone: "danger",
        },
        busy: cancel.busy,
        error: cancel.error,
        onConfirm: async () => {
          if (await cancel.send(named)) close();
        },
        onCancel: close,
      }),
    rights.known && h(Denied, { why: rights.whyAct }),
    resume.error && h(Said, { action: resume }),
  );
}
