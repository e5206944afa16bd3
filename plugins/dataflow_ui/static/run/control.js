// Pause, resume, urgent, cancel; beside each the command that does the same.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { ActionButton, Denied, Question, Said, useAction } from "../kit/action.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Panel } from "../kit/panel.js";
import { hasEnded } from "../kit/tones.js";

const SCOPES = ["run", "dataset", "all"];

function Scope({ value, onChange, run }) {
  const { t } = useText();
  return h(
    UI.NativeSelect.Root,
    { size: "sm", maxW: "20rem" },
    h(
      UI.NativeSelect.Field,
      { "aria-label": t("control.scope"), value, onChange: (event) => onChange(event.target.value), bg: "bg" },
      ...SCOPES.map((scope) =>
        h("option", { key: scope, value: scope }, t(`control.scope_${scope}`, { dataset: run.dataset })),
      ),
    ),
    h(UI.NativeSelect.Indicator),
  );
}

/** Who paused, when, why, and how many tasks hold already. */
function Held({ run }) {
  const { t, f } = useText();
  const { pause } = run;
  return row(
    {
      colorPalette: "deferred",
      bg: "colorPalette.subtle",
      borderWidth: 1,
      borderColor: "colorPalette.muted",
      borderRadius: "md",
      px: 3,
      py: 2,
      fontSize: "sm",
      alignItems: "flex-start",
      flexWrap: "nowrap",
      role: "status",
    },
    h(Icon, { name: "pause", mt: 0.5, color: "colorPalette.fg" }),
    box(
      { minW: 0, overflowWrap: "anywhere" },
      text(
        { fontWeight: "semibold" },
        pause.tasks_open > 0
          ? t("control.held", { paused: f.number(pause.tasks_paused), open: f.number(pause.tasks_open), count: pause.tasks_open })
          : t("control.held_none"),
      ),
      " ",
      text({}, t(`control.by_${pause.scope}`, { who: pause.who, at: f.time(pause.since), dataset: run.dataset })),
      pause.why && text({ color: "fg.muted" }, ` ${t("control.why", { why: pause.why })}`),
    ),
  );
}

function Line({ button, command }) {
  return row(
    { flexWrap: "nowrap", gap: 3, minW: 0 },
    box({ minW: "8.5rem", flexShrink: 0 }, button),
    h(CliLine, { command }),
  );
}

export function Control({ run, rights }) {
  const { t } = useText();
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
      paused && h(Held, { run }),
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
            extra: h(Scope, { value: scope, onChange: setScope, run }),
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
