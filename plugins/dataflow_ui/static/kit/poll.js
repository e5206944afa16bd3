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

/** How often to ask where the server may still be adding up: soon again while it says so. */
export const untilComplete = (every) => (data) => (data?.complete === false ? FAST_MS : every);

/**
 * Asks a route again and again.
 *
 * `every`: milliseconds, or a function of the last data that gives them; 0 asks once. It may change.
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
  const replan = useRef(() => {});

  useEffect(() => {
    if (key === null) return undefined;
    const abort = new AbortController();
    let timer = null;
    let asking = false;
    let known = null;

    const plan = (data) => {
      const wish = latest.current.every;
      const wait = typeof wish === "function" ? wish(data) : wish;
      if (wait > 0 && !abort.signal.aborted && !document.hidden) timer = setTimeout(ask, wait);
    };
    const ask = async () => {
      timer = null;
      asking = true;
      try {
        const data = await (send ? post : get)(path, latest.current.params, abort.signal);
        if (abort.signal.aborted) return;
        asking = false;
        known = data;
        setState({ key, data, error: null, failedAt: null });
        plan(data);
      } catch (error) {
        if (abort.signal.aborted) return;
        asking = false;
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
      } else if (timer === null && !asking) {
        ask();
      }
    };
    replan.current = () => {
      if (asking) return;
      clearTimeout(timer);
      timer = null;
      plan(known);
    };
    document.addEventListener("visibilitychange", onVisible);
    ask();
    return () => {
      replan.current = () => {};
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [key, tick, keep, send]);

  const current = state.key === key;
  // Who paused asking, or asks seldom, must hear of it when there is more to see.
  const wish = typeof every === "function" ? every(current ? state.data : null) : every;
  useEffect(() => replan.current(), [wish]);
  return {
    data: current || keep ? state.data : null,
    error: current ? state.error : null,
    failedAt: current ? state.failedAt : null,
    loading: key !== null && !current,
    stale: !current && keep && state.data !== null,
  };
}
