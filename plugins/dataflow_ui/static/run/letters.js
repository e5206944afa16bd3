// Dead letters: documents that could not be read, grouped by error; a group opens to its letters.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { Denied } from "../kit/action.js";
import { Tag } from "../kit/badge.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { useLanding } from "../kit/landing.js";
import { LETTERS } from "../kit/links.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { untilComplete, usePoll } from "../kit/poll.js";
import { Name } from "../kit/words.js";
import { useAnswers } from "./letter_answers.js";
import { LETTER_TONES, LetterList } from "./letter_list.js";

/** They come seldom, and counting them reads more than a row. */
const REFRESH_MS = 10000;

function Head({ group, open, onToggle }) {
  const { t, f } = useText();
  return h(
    UI.Box,
    {
      as: "button",
      type: "button",
      "aria-expanded": open,
      title: t(open ? "letters.hide" : "letters.show"),
      onClick: onToggle,
      flex: "1 1 18rem",
      minW: 0,
      textAlign: "start",
      cursor: "pointer",
      _focusVisible: { outline: "2px solid", outlineColor: "brand.focusRing" },
    },
    row(
      { rowGap: 1 },
      h(Icon, { name: open ? "up" : "down", color: "fg.muted" }),
      text({ fontWeight: "semibold", fontSize: "sm" }, group.error),
      text({ fontSize: "xs", color: "fg.muted" }, [group.step, group.parser].filter(Boolean).join(" · ")),
      ...Object.entries(LETTER_TONES)
        .filter(([state]) => group.states[state] > 0)
        .map(([state, tone]) => h(Tag, { key: state, tone }, t(`letters.${state}`, { count: f.number(group.states[state]) }))),
      group.messages > 1 && text({ fontSize: "xs", color: "fg.muted" }, t("letters.messages", { count: f.number(group.messages) })),
    ),
    !open &&
      group.example &&
      box(
        { fontSize: "sm", mt: 0.5, overflowWrap: "anywhere" },
        group.example.message,
        box({ color: "fg.muted", fontSize: "xs" }, `${group.example.source} · `, h(Name, { length: 70 }, group.example.path)),
      ),
  );
}

function Group({ group, run, rights }) {
  const { t, f } = useText();
  const [open, setOpen] = useState(false);
  const body = { run, error: group.error, step: group.step };
  const waiting = group.states.open;
  const { buttons, below } = useAnswers({
    body,
    open: waiting,
    mayRetry: waiting > 0,
    why: t("letters.nothing_open"),
    drop: {
      title: t("letters.drop_title", { count: f.number(waiting) }),
      text: t("letters.drop_text"),
      confirm: t("letters.drop_now"),
    },
    rights,
  });
  return box(
    { px: 3, py: 2.5, borderTopWidth: 1, borderColor: "border", _first: { borderTopWidth: 0 } },
    row(
      { gap: 3, alignItems: "flex-start" },
      box(
        { width: "3.5rem", fontSize: "lg", fontWeight: "semibold", textAlign: "end", fontVariantNumeric: "tabular-nums", lineHeight: "short" },
        f.compact(group.count),
      ),
      h(Head, { group, open, onToggle: () => setOpen(!open) }),
      buttons,
    ),
    ...below,
    open && h(LetterList, { group: body, rights }),
  );
}

export function Letters({ run, layer, every, rights }) {
  const { t, f } = useText();
  const poll = usePoll("run/letters", { run: run.run, layer }, { every: untilComplete(Math.max(every, REFRESH_MS)), keep: true });
  useLanding(LETTERS, poll.data !== null);
  const groups = poll.data?.groups ?? [];
  const total = groups.reduce((sum, group) => sum + group.count, 0);
  return h(
    Panel,
    {
      id: LETTERS,
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
            rights.known && rights.whyAct && box({ px: 3, pt: 2 }, h(Denied, { why: rights.whyAct })),
            ...groups.map((group) => h(Group, { key: `${group.step} ${group.error}`, group, run: run.run, rights })),
          ),
    ),
  );
}
