// Small line drawings on a grid of 24.
import { h, UI } from "./h.js";

const PATHS = {
  alert: ["M12 4 3 20h18L12 4z", "M12 10v4", "M12 17v.5"],
  arrow: ["M5 12h14", "m13 6 6 6-6 6"],
  bolt: ["M13 3 5 14h6l-1 7 8-11h-6l1-7z"],
  check: ["m5 12 5 5 9-10"],
  clock: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M12 7v5l3 2"],
  copy: ["M9 9h11v11H9z", "M5 15H4V4h11v1"],
  cross: ["M6 6l12 12", "M18 6 6 18"],
  down: ["m6 9 6 6 6-6"],
  filter: ["M4 5h16l-6 8v6l-4-2v-4L4 5z"],
  minus: ["M6 12h12"],
  open: ["M14 4h6v6", "M20 4 10 14", "M18 14v6H4V6h6"],
  pause: ["M9 5v14", "M15 5v14"],
  person: ["M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M4 21c1-5 4-7 8-7s7 2 8 7"],
  play: ["M7 4v16l13-8L7 4z"],
  running: ["M12 3a9 9 0 1 1-8.5 6"],
  search: ["M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14z", "m16 16 5 5"],
  stop: ["M6 6h12v12H6z"],
  swap: ["M4 8h15", "m15 4 4 4-4 4", "M20 16H5", "m9 12-4 4 4 4"],
  undo: ["M4 9h10a6 6 0 0 1 0 12h-3", "m8 5-4 4 4 4"],
  up: ["m6 15 6-6 6 6"],
};

/** A drawing beside a word; hidden from screen readers, because the word says it. */
export function Icon({ name, size = "1em", ...props }) {
  return h(
    UI.Box,
    {
      as: "svg",
      viewBox: "0 0 24 24",
      width: size,
      height: size,
      flexShrink: 0,
      fill: "none",
      stroke: "currentColor",
      strokeWidth: 2,
      strokeLinecap: "round",
      strokeLinejoin: "round",
      "aria-hidden": true,
      ...props,
    },
    ...PATHS[name].map((d) => h("path", { d, key: d })),
  );
}
