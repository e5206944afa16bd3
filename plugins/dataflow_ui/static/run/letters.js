// Dead letters: documents that could not be read, grouped by error; one retry per group.
import { box, column, h, row, text, useState } from "../kit/h.js";
import { ActionButton, Question, Said, useAction } from "../kit/action.js";
import { Tag } from "../kit/badge.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { untilComplete, usePoll } from "../kit/poll.js";
import { Name } from "../kit/words.js";

/** They come seldom, and counting them reads more than a row. */
const REFRESH_MS = 10000;
const STATES = { open: "warning", retried: "brand", dropped: "gray" };

function Group({ group, run, rights }) {
  const { t, f } = useText();
  const retry = useAction("run/letters/retry");
  const drop = useAction("run/letters/drop");
  const [asking, setAsking] = useState(false);
  const body = { run, error: group.error, step: group.step };
  const open = group.states.open;
  const confirm = async () => {
    if (await drop.send(body)) setAsking(false);
  };
  return box(
    { px: 3, py: 2.5, borderTopWidth: 1, borderColor: "border", _first: { borderTopWidth: 0 } },
    row(
      { gap: 3, alignItems: "flex-start" },
      box(
        { width: "3.5rem", fontSize: "lg", fontWeight: "semibold", textAlign: "end", fontVariantNumeric: "tabular-nums", lineHeight: "short" },
        f.compact(group.count),
      ),
      box(
        { flex: "1 1 18rem", minW: 0 },
        row(
          { rowGap: 1 },
          text({ fontWeight: "semibold", fontSize: "sm" }, group.error),
          text({ fontSize: "xs", color: "fg.muted" }, [group.step, group.parser].filter(Boolean).join(" · ")),
          ...Object.entries(STATES)
            .filter(([state]) => group.states[state] > 0)
            .map(([state, tone]) =>
              h(Tag, { key: state, tone }, t(`letters.${state}`, { count: f.number(group.states[state]) })),
            ),
        ),
        group.example &&
          box(
            { fontSize: "sm", mt: 0.5, overflowWrap: "anywhere" },
            group.example.message,
            box({ color: "fg.muted", fontSize: "xs" }, `${group.example.source} · `, h(Name, { length: 70 }, group.example.path)),
          ),
      ),
      row(
        {},
        h(
          ActionButton,
          {
            icon: "undo",
            denied: rights.whyAct,
            disabled: open === 0,
            title: open === 0 ? t("letters.nothing_open") : t("letters.retry_title"),
            loading: retry.busy,
            onClick: () => retry.send(body),
          },
          t("letters.retry"),
        ),
        h(
          ActionButton,
          {
            variant: "ghost",
            denied: rights.whyAct,
            disabled: open === 0,
            "aria-expanded": asking,
            onClick: () => setAsking(!asking),
          },
          t("letters.drop"),
        ),
      ),
    ),
    asking &&
      box(
        { mt: 2 },
        h(Question, {
          ask: {
            title: t("letters.drop_title", { count: f.number(open) }),
            text: t("letters.drop_text"),
            confirm: t("letters.drop_now"),
            tone: "danger",
          },
          busy: drop.busy,
          error: drop.error,
          onConfirm: confirm,
          onCancel: () => setAsking(false),
        }),
      ),
    (retry.done || retry.error) &&
      box({ mt: 1 }, h(Said, { action: retry, fallback: t("letters.retried_now", { count: retry.done?.retried ?? 0 }) })),
    drop.done && box({ mt: 1 }, h(Said, { action: drop })),
  );
}

export function Letters({ run, layer, every, rights }) {
  const { t, f } = useText();
  const poll = usePoll("run/letters", { run: run.run, layer }, { every: untilComplete(Math.max(every, REFRESH_MS)), keep: true });
  const groups = poll.data?.groups ?? [];
  const total = groups.reduce((sum, group) => sum + group.count, 0);
  return h(
    Panel,
    {
      id: "dataflow-letters",
      title: t("letters.title"),
      note: total > 0 ? t("letters.note", { count: f.number(total) }) : null,
      flush: groups.length > 0,
      aside: groups.length > 0 && h(CliLine, { command: poll.data.cli, maxW: "22rem" }),
    },
    h(Loaded, { poll, lines: 2 }, () =>
      groups.length === 0
        ? h(Empty, null, t("letters.none"))
        : column(
            { gap: 0 },
            ...groups.map((group) => h(Group, { key: `${group.step} ${group.error}`, group, run: run.run, rights })),
          ),
    ),
  );
}
