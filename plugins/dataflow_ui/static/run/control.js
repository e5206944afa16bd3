// Pause, resume, urgent, cancel; beside each the command that does the same.
import { box, column, h, row, useState } from "../kit/h.js";
import { ActionButton, Denied, Question, Said, useAction } from "../kit/action.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Panel } from "../kit/panel.js";
import { Held, Scope } from "../kit/pause.js";
import { hasEnded } from "../kit/tones.js";

const SCOPES = ["run", "dataset", "all"];

/** How many tasks hold already. */
function holding(pause, { t, f }) {
  if (pause.tasks_open === 0) return t("control.held_none");
  const numbers = { paused: f.number(pause.tasks_paused), open: f.number(pause.tasks_open) };
  return t("control.held", { ...numbers, count: pause.tasks_open });
}

function Line({ button, command }) {
  return row(
    { flexWrap: "nowrap", gap: 3, minW: 0 },
    box({ minW: "8.5rem", flexShrink: 0 }, button),
    h(CliLine, { command }),
  );
}

export function Control({ run, rights }) {
  const words = useText();
  const { t } = words;
  const pause = useAction("run/pause");
  const resume = useAction("run/resume");
  const urgent = useAction("run/urgent");
  const cancel = useAction("run/cancel");
  const [asking, setAsking] = useState(false);
  const [ending, setEnding] = useState(false);
  const [scope, setScope] = useState("run");
  const cli = run.cli ?? {};
  if (hasEnded(run)) {
    return h(
      Panel,
      { title: t("control.title"), note: t("control.ended") },
      column({ gap: 2 }, h(CliLine, { command: cli.status })),
    );
  }
  const paused = run.pause !== null && run.pause !== undefined;
  const confirm = async (why) => {
    if (await pause.send({ run: run.run, scope, why })) setAsking(false);
  };
  const wide = { width: "full", justifyContent: "flex-start" };
  return h(
    Panel,
    { title: t("control.title"), note: t("control.note") },
    column(
      { gap: 2 },
      paused && h(Held, { words: "control", pause: run.pause, dataset: run.dataset }, holding(run.pause, words)),
      paused
        ? h(Line, {
            button: h(
              ActionButton,
              {
                ...wide,
                icon: "play",
                variant: "solid",
                denied: rights.whyAct,
                loading: resume.busy,
                onClick: () => resume.send({ run: run.run, scope: run.pause.scope }),
              },
              t("control.resume"),
            ),
            command: cli.resume,
          })
        : h(Line, {
            button: h(
              ActionButton,
              {
                ...wide,
                icon: "pause",
                denied: rights.whyAct,
                "aria-expanded": asking,
                onClick: () => setAsking(!asking),
              },
              t("control.pause"),
            ),
            command: cli.pause,
          }),
      asking &&
        !paused &&
        h(Question, {
          ask: {
            title: t("control.pause_title"),
            text: t("control.pause_text"),
            confirm: t("control.pause_now"),
            noteLabel: t("control.pause_why"),
            placeholder: t("control.pause_placeholder"),
            extra: h(Scope, { words: "control", scopes: SCOPES, value: scope, onChange: setScope, dataset: run.dataset }),
          },
          busy: pause.busy,
          error: pause.error,
          onConfirm: confirm,
          onCancel: () => setAsking(false),
        }),
      h(Line, {
        button: h(
          ActionButton,
          {
            ...wide,
            icon: run.urgent ? "undo" : "bolt",
            denied: rights.whyAct,
            loading: urgent.busy,
            title: t("control.urgent_title"),
            onClick: () => urgent.send({ run: run.run, urgent: !run.urgent }),
          },
          t(run.urgent ? "control.not_urgent" : "control.urgent"),
        ),
        command: cli.urgent,
      }),
      h(Line, {
        button: h(
          ActionButton,
          { ...wide, icon: "stop", denied: rights.whyAct, "aria-expanded": ending, onClick: () => setEnding(!ending) },
          t("control.cancel"),
        ),
        command: cli.cancel,
      }),
      ending &&
        h(Question, {
          ask: {
            title: t("control.cancel_title"),
            text: t("control.cancel_text"),
            confirm: t("control.cancel_now"),
            tone: "danger",
            noteLabel: t("control.cancel_why"),
          },
          busy: cancel.busy,
          error: cancel.error,
          onConfirm: (why) => cancel.send({ run: run.run, why }),
          onCancel: () => setEnding(false),
        }),
      rights.known && h(Denied, { why: rights.whyAct }),
      resume.error && h(Said, { action: resume }),
      urgent.error && h(Said, { action: urgent }),
    ),
  );
}
