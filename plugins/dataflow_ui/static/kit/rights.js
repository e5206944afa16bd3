import { usePoll } from "./poll.js";
import { useText } from "./i18n.js";

const MINUTE_MS = 60000;

/**
 * What the reader may do with a data set: `{read, text, act, whyText, whyAct}`.
 * Until the answer is there, acting is off without a reason; the server decides in any case.
 */
export function useRights(dataset) {
  const { t } = useText();
  const { data } = usePoll(dataset ? "me" : null, { dataset }, { every: MINUTE_MS });
  const act = Boolean(data?.act);
  const seesText = Boolean(data?.text);
  return {
    known: data !== null,
    user: data?.user ?? "",
    act,
    text: seesText,
    whyAct: act ? "" : t(data ? "rights.no_act" : "rights.asking", { dataset }),
    whyText: seesText ? "" : t("rights.no_text", { dataset }),
  };
}
