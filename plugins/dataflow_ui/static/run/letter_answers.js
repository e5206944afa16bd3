// The two answers to dead letters, a group of them or one: try again, or give up after a question.
import { box, h, row, useState } from "../kit/h.js";
import { ActionButton, Question, Said, useAction } from "../kit/action.js";
import { useText } from "../kit/i18n.js";

/**
 * `body` names the letters, `open` says how many wait, `mayRetry` is false where none can be tried again; then `why`
 * tells the reason. `drop` holds the question's words: `{title, text, confirm}`.
 * Gives `{buttons, below}`: the second is what opens below them.
 */
export function useAnswers({ body, open, mayRetry, why, drop: words, rights, size = "sm" }) {
  const { t } = useText();
  const retry = useAction("run/letters/retry");
  const drop = useAction("run/letters/drop");
  const [asking, setAsking] = useState(false);
  const confirm = async () => {
    if (await drop.send(body)) setAsking(false);
  };
  const buttons = row(
    { flexShrink: 0 },
    h(
      ActionButton,
      {
        icon: "undo",
        size,
        denied: rights.whyAct,
        disabled: !mayRetry,
        title: mayRetry ? t("letters.retry_title") : why,
        loading: retry.busy,
        onClick: () => retry.send(body),
      },
      t("letters.retry"),
    ),
    h(
      ActionButton,
      {
        variant: "ghost",
        size,
        denied: rights.whyAct,
        disabled: open === 0,
        "aria-expanded": asking,
        onClick: () => setAsking(!asking),
      },
      t("letters.drop"),
    ),
  );
  const question = {
    ask: { ...words, tone: "danger" },
    busy: drop.busy,
    error: drop.error,
    onConfirm: confirm,
    onCancel: () => setAsking(false),
  };
  const below = [
    asking && box({ key: "question", mt: 2 }, h(Question, question)),
    (retry.done || retry.error) && box({ key: "retry", mt: 1 }, h(Said, { action: retry })),
    drop.done && box({ key: "drop", mt: 1 }, h(Said, { action: drop })),
  ];
  return { buttons, below };
}
