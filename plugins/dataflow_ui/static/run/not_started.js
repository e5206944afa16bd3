// A run that is not in our books: queued still, or a dry run, which never gets there.
import { h, useEffect, useState } from "../kit/h.js";
import { hostUrl } from "../kit/api.js";
import { useText } from "../kit/i18n.js";
import { Empty } from "../kit/notes.js";
import { FAST_MS } from "../kit/poll.js";

/** What the run's first task gave on, by the host's own API; null until it has ended, or where one may not see it. */
async function firstTask(dagId, runId, signal) {
  const of = [dagId, runId].map(encodeURIComponent);
  const path = `api/v2/dags/${of[0]}/dagRuns/${of[1]}/taskInstances/start/xcomEntries/return_value`;
  const response = await fetch(hostUrl(path), { credentials: "same-origin", signal });
  if (!response.ok) return null;
  const { value } = await response.json();
  return typeof value === "string" ? JSON.parse(value) : value;
}

function useFirstTask(dagId, runId) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    let timer = null;
    const ask = async () => {
      try {
        const value = await firstTask(dagId, runId, abort.signal);
        if (value !== null) return setFound(value);
      } catch (error) {
        if (abort.signal.aborted) return undefined;
        // The page says by itself when the server is away; here is only nothing to add.
      }
      timer = setTimeout(ask, 2 * FAST_MS);
      return undefined;
    };
    ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [dagId, runId]);
  return found;
}

export function NotStarted({ dagId, runId }) {
  const { t, f } = useText();
  const looked = useFirstTask(dagId, runId)?.looked;
  if (!looked) return h(Empty, { title: t("run.not_started"), icon: "clock" }, t("run.not_started_next"));
  const sums = Object.fromEntries(Object.entries(looked).map(([name, value]) => [name, f.compact(value)]));
  return h(Empty, { title: t("run.dry") }, t("run.dry_found", sums));
}
