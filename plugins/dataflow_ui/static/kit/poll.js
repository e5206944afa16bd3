// Data that keeps itself fresh: often while something runs, seldom otherwise, never while the tab is hidden.
import { get, post } from "./api.js";
import { createContext, useCallback, useContext, useEffect, useRef, useState } from "./h.js";

export const FAST_MS = 2000;
export const SLOW_MS = 15000;

/** `{tick, pulse}`: `pulse()` after an action makes every block on the page ask again at once. */
export const Pulse = createContext({ tick: 0, pulse: () => {} });

export function usePulse() {
  const [tick, setTick] = useState(0);
  const pulse = useCallback(() => setTick((value) => value + 1), []);
  return { tick, pulse };
}

/**
 * Asks a route again and again.
 *
 * `every`: milliseconds, or a function of the last data that gives them; 0 asks once.
 * `send` posts the parameters instead: what is asked for may be longer than an address.
 * Returns `{data, error, failedAt, loading, stale}`: the last data stay while an error shows, and, with
 * `keep`, while other parameters load (then `stale`). A null `path` asks nothing.
 */
export function usePoll(path, params = {}, { every = SLOW_MS, keep = false, send = false } = {}) {
  const { tick } = useContext(Pulse);
  const key = path === null ? null : `${path}?${JSON.stringify(params)}`;
  const [state, setState] = useState({ key: null, data: null, error: null, failedAt: null });
  const latest = useRef({ every, params });
  latest.current = { every, params };

  useEffect(() => {
    if (key === null) return undefined;
    const abort = new AbortController();
    let timer = null;

    const plan = (data) => {
      const wish = latest.current.every;
      const wait = typeof wish === "function" ? wish(data) : wish;
      if (wait > 0 && !abort.signal.aborted && !document.hidden) timer = setTimeout(ask, wait);
    };
    const ask = async () => {
      timer = null;
      try {
        const data = await (send ? post : get)(path, latest.current.params, abort.signal);
        if (abort.signal.aborted) return;
        setState({ key, data, error: null, failedAt: null });
        plan(data);
      } catch (error) {
        if (abort.signal.aborted) return;
        setState((old) => ({
          key,
          data: old.key === key || keep ? old.data : null,
          error,
          failedAt: old.key === key && old.failedAt !== null ? old.failedAt : Date.now() / 1000,
        }));
        plan(null);
      }
    };
    const onVisible = () => {
      if (document.hidden) {
        clearTimeout(timer);
        timer = null;
      } else if (timer === null) {
        ask();
      }
    };
    document.addEventListener("visibilitychange", onVisible);
    ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [key, tick, keep, send]);

  const current = state.key === key;
  return {
    data: current || keep ? state.data : null,
    error: current ? state.error : null,
    failedAt: current ? state.failedAt : null,
    loading: key !== null && !current,
    stale: !current && keep && state.data !== null,
  };
}
