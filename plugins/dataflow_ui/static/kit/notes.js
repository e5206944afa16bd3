// What a block shows when it has no data: loading, nothing, an error.
import { box, column, h, row, text, UI } from "./h.js";
import { hostUrl } from "./api.js";
import { useText } from "./i18n.js";
import { Icon } from "./icons.js";
import { serverWords } from "./said.js";

/** Grey lines in place of what is on its way. */
export function Loading({ lines = 3 }) {
  return column(
    { gap: 2, "data-dataflow-loading": "", "aria-hidden": true },
    ...Array.from({ length: lines }, (_, index) =>
      h(UI.Skeleton, { key: index, height: 4, width: `${92 - index * 17}%` }),
    ),
  );
}

/** Nothing to show, and what to do next. */
export function Empty({ title, children, icon = "check" }) {
  return row(
    { color: "fg.muted", fontSize: "sm", flexWrap: "nowrap", alignItems: "flex-start" },
    h(Icon, { name: icon, mt: 0.5 }),
    box({}, title && text({ color: "fg", fontWeight: "medium", mr: 2 }, title), children),
  );
}

/** Whether nothing sensible answered: the whole page says that once, its blocks need not. */
const isSilent = (error) => error.status === 0 || error.status >= 502;

/** What went wrong, in the server's own words where it said any. */
export function ErrorBox({ error, failedAt, hasData, compact = false }) {
  const words = useText();
  const { t, f } = words;
  if (!error) return null;
  const signedOut = error.status === 401;
  const silent = isSilent(error);
  const told = serverWords(error, words);
  let message = told || t("error.unknown", { status: error.status });
  if (signedOut) message = t("error.signed_out");
  else if (error.status === 403) message = told || t("error.no_right");
  else if (silent) message = t("error.silent", { since: f.time(failedAt) });
  return h(
    UI.Alert.Root,
    { status: silent || hasData ? "warning" : "error", size: compact ? "sm" : "md", role: "status", alignItems: "center" },
    h(UI.Alert.Indicator, { boxSize: 4 }, h(Icon, { name: "alert" })),
    h(
      UI.Alert.Content,
      { display: "block", fontSize: "sm" },
      message,
      hasData && !signedOut ? ` ${t("error.old_data")}` : "",
      signedOut &&
        h(
          UI.Link,
          {
            ml: 2,
            href: hostUrl(`auth/login?next=${encodeURIComponent(location.href)}`),
            color: "fg.info",
          },
          t("error.sign_in"),
        ),
    ),
  );
}

/** An error of the whole page: it stays in view while one scrolls. */
export function PageError(poll) {
  if (!poll.error) return null;
  return box({ position: "sticky", top: 0, zIndex: 1 }, h(ErrorBox, { ...poll, hasData: poll.data !== null }));
}

/** Loading, an error, or the block itself; the last data stay on show under an error. */
export function Loaded({ poll, children, lines }) {
  const told = poll.error && isSilent(poll.error) && poll.data !== null;
  const problem = poll.error && !told
    ? h(ErrorBox, { error: poll.error, failedAt: poll.failedAt, hasData: poll.data !== null, compact: true })
    : null;
  if (poll.data === null) return problem ?? h(Loading, { lines });
  return column(
    { gap: 2, opacity: poll.stale ? 0.6 : 1, transition: "opacity 0.15s" },
    problem,
    children(poll.data),
  );
}
