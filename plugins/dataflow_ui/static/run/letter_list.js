// The dead letters of a group, some at a time, each with its own answer.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { Tag } from "../kit/badge.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Loaded } from "../kit/notes.js";
import { usePoll } from "../kit/poll.js";
import { Name } from "../kit/words.js";
import { useAnswers } from "./letter_answers.js";

/** How a state is coloured. */
export const LETTER_TONES = { open: "warning", retried: "brand", dropped: "gray" };

function Letter({ letter, group, rights }) {
  const { t, f } = useText();
  const open = letter.state === "open" ? 1 : 0;
  const { buttons, below } = useAnswers({
    body: { ...group, letter: letter.id },
    open,
    mayRetry: letter.state !== "retried",
    why: t("letters.answered"),
    drop: { title: t("letters.drop_single"), text: t("letters.drop_single_text"), confirm: t("letters.drop_single_now") },
    rights,
    size: "xs",
  });
  return box(
    { as: "li", py: 2, borderTopWidth: 1, borderColor: "border", _first: { borderTopWidth: 0 } },
    row(
      { gap: 3, alignItems: "flex-start" },
      box(
        { flex: "1 1 18rem", minW: 0, fontSize: "sm" },
        row(
          { gap: 1.5, rowGap: 0 },
          h(Tag, { tone: LETTER_TONES[letter.state] ?? "gray" }, t(`letters.state_${letter.state}`)),
          text({ color: "fg.muted", fontSize: "xs" }, letter.source),
          h(Name, { length: 70 }, letter.path),
          letter.position !== null &&
            text({ color: "fg.muted", fontSize: "xs" }, t("letters.position", { position: f.number(letter.position) })),
        ),
        box({ overflowWrap: "anywhere" }, letter.message),
        letter.state === "open" && h(CliLine, { command: letter.cli.retry, mt: 1, maxW: "30rem" }),
      ),
      buttons,
    ),
    ...below,
  );
}

/** One page; the last one offers the next. */
function Page({ group, after, last, onMore, rights }) {
  const { t } = useText();
  const poll = usePoll("run/letters/group", { ...group, after }, { every: 0, keep: true });
  return h(Loaded, { poll, lines: 3 }, (data) =>
    box(
      {},
      ...data.letters.map((letter) => h(Letter, { key: letter.id, letter, group, rights })),
      last &&
        data.next &&
        box({ py: 2 }, h(UI.Button, { size: "xs", variant: "outline", onClick: () => onMore(data.next) }, t("letters.more"))),
    ),
  );
}

export function LetterList({ group, rights }) {
  const { t } = useText();
  const [pages, setPages] = useState([""]);
  return box(
    { as: "ul", listStyleType: "none", "aria-label": t("letters.list", { error: group.error }), mt: 2, pl: { base: 0, md: 16 } },
    column(
      { gap: 0 },
      ...pages.map((after, index) =>
        h(Page, {
          key: after,
          group,
          after,
          last: index === pages.length - 1,
          onMore: (next) => setPages((old) => [...old, next]),
          rights,
        }),
      ),
    ),
  );
}
