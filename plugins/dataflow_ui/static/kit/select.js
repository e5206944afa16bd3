// A list to choose from.
import { h, UI } from "./h.js";

/** `options`: pairs of a value and its words. What else is given is for the frame: size, widths, disabled. */
export function Select({ label, value, onChange, options, bg, ...frame }) {
  return h(
    UI.NativeSelect.Root,
    { size: "sm", ...frame },
    h(
      UI.NativeSelect.Field,
      { "aria-label": label, value, onChange: (event) => onChange(event.target.value), bg },
      ...options.map(([key, words]) => h("option", { key, value: key }, words)),
    ),
    h(UI.NativeSelect.Indicator),
  );
}
