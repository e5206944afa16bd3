// The host shows a page's component through a lazy wrapper at first and without it from its next rendering on,
// which mounts everything anew: an open question or a place in a list would be lost at the first click.
// So that change is brought about at once, before there is anything to lose.
import { Router, useEffect, useState } from "./h.js";

const WAIT_MS = 300;
const seen = new Set();

/** Whether the page called `name` may show itself; false only in the first moment after it was loaded. */
export function useSteady(name) {
  const navigate = Router.useNavigate();
  const { pathname, search, hash } = Router.useLocation();
  const [steady, setSteady] = useState(seen.has(name));
  useEffect(() => {
    if (steady) return undefined;
    seen.add(name);
    navigate({ pathname, search, hash }, { replace: true, preventScrollReset: true });
    // A host without that habit mounts nothing anew: then this one stays and shows itself.
    const timer = setTimeout(() => setSteady(true), WAIT_MS);
    return () => clearTimeout(timer);
  }, []); // Once: what it answers to is being mounted.
  return steady;
}
