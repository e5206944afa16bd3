/** What the server says of a version that nothing else holds back. The form has other words for it. */
export const HELD = "it was run with --set";

/** Why a version waits, in the words of the form where it is the form's doing. */
export function reasonWords(reason, { t }) {
  return reason === HELD ? t("waits.held") : reason;
}
