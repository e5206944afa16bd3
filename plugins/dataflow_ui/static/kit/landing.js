// An address that names a block leads to it, though the block comes later than the page.
import { Router, useEffect } from "./h.js";

/** What stands above it grows while it is filled: look again until then, unless the reader moves. */
const LOOKS_MS = [0, 400, 1200, 2500];
const MOVES = ["wheel", "pointerdown", "keydown", "touchstart"];

/** Brings the block called `id` into sight once it is `ready`, where the address ends in `#id`. */
export function useLanding(id, ready) {
  const { hash } = Router.useLocation();
  useEffect(() => {
    if (!ready || hash !== `#${id}`) return undefined;
    const timers = LOOKS_MS.map((wait) => setTimeout(() => document.getElementById(id)?.scrollIntoView({ block: "start" }), wait));
    const stop = () => timers.forEach(clearTimeout);
    MOVES.forEach((name) => globalThis.addEventListener(name, stop, { passive: true }));
    return () => {
      stop();
      MOVES.forEach((name) => globalThis.removeEventListener(name, stop));
    };
  }, [id, hash, ready]);
}
