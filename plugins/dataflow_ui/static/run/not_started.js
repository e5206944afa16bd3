// A run that is not in our books: queued still, failed before it began, or a dry run, which never gets there.
import { box, h, useEffect, useState } from "../kit/h.js";
import { hostUrl } from "../kit/api.js";
import { useText } from "../kit/i18n.js";
import { Empty } from "../kit/notes.js";
import { FAST_MS } from "../kit/poll.js";
import { serverWords } from "../kit/said.js";

/** What the server knows of why a run has not begun. */
const QUEUED = ["queued_behind", "queued_approval"];

async function ask(path, signal) {
  const response = await fetch(hostUrl(`api/v2/dags/${path}`), { credentials: "same-origin", signal });
  return response.ok ? response.json() : null;
}

/**
 * What the host says of a run, by its own API: `{looked, failed}`, what the first task of a dry run found, and
 * whether the run has failed. Null where there is nothing to say yet, or where one may not see it.
 */
export async function hostSays(dagId, runId, signal) {
  const run = `${encodeURIComponent(dagId)}/dagRuns/${encodeURIComponent(runId)}`;
  const given = await ask(`${run}/taskInstances/start/xcomEntries/return_value`, signal);
  if (given) {
    const value = typeof given.value === "string" ? JSON.parse(given.value) : given.value;
    return { looked: value?.looked ?? null, failed: false };
  }
  const state = (await ask(run, signal))?.state;
  return state === "failed" ? { looked: null, failed: true } : null;
}

function useHost(dagId, runId) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    let timer = null;
    const look = async () => {
      try {
        const said = await hostSays(dagId, runId, abort.signal);
        if (abort.signal.aborted) return;
        setFound(said);
        if (said?.looked) return;
      } catch (error) {
        if (abort.signal.aborted) return;
        // The page says by itself when the server is away; here is only nothing to add.
      }
      // A run that failed may be cleared and begin after all.
      timer = setTimeout(look, 2 * FAST_MS);
    };
    look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [dagId, runId]);
  return found;
}

/** `error` is the answer that there is no such run; where the run was refused, it knows why. */
export function NotStarted({ dagId, runId, error }) {
  const words = useText();
  const { t, f } = words;
  const host = useHost(dagId, runId);
  const refused = error?.code === "not_begun";
  if (host?.looked) {
    const sums = Object.fromEntries(Object.entries(host.looked).map(([name, value]) => [name, f.compact(value)]));
    return h(Empty, { title: t("run.dry") }, t("run.dry_found", sums));
  }
  if (refused || host?.failed) {
    return h(
      Empty,
      { title: t("run.not_begun"), icon: "cross" },
      refused && box({ color: "fg", mb: 1, overflowWrap: "anywhere", whiteSpace: "pre-wrap" }, error.values?.why),
      t("run.not_begun_next"),
    );
  }
  const behind = QUEUED.includes(error?.code);
  return h(
    Empty,
    { title: t("run.not_started"), icon: "clock" },
    behind && box({ color: "fg", mb: 1, overflowWrap: "anywhere" }, serverWords(error, words)),
    t("run.not_started_next"),
  );
}
