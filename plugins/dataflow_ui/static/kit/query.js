// What is chosen on a page stands in its address, so that every view can be sent to somebody.
import { Router, useCallback } from "./h.js";

/** `[value of a name, set({name: value})]`; an empty value takes the name out of the address. */
export function useQuery() {
  const [params, setParams] = Router.useSearchParams();
  const read = useCallback((name) => params.get(name) ?? "", [params]);
  const write = useCallback(
    (changes, options) =>
      setParams((old) => {
        const next = new URLSearchParams(old);
        for (const [name, value] of Object.entries(changes)) {
          if (value === "" || value === null || value === undefined) next.delete(name);
          else next.set(name, value);
        }
        return next;
      }, options),
    [setParams],
  );
  return [read, write];
}
