// The frame of a page and of its blocks.
import { box, h, row, text, UI } from "./h.js";

/** Widths of the page itself, not of the window: the run tab sits beside the host's grid. */
export const NARROW = "@container page (max-width: 759px)";
export const WIDE = "@container page (min-width: 1100px)";

/** The ground of headings and quotations: a shade off the page, in the dark too. */
export const SURFACE = { base: "bg.subtle", _dark: "whiteAlpha.50" };

export function Page({ children, name }) {
  return box(
    {
      "data-dataflow": name,
      css: { containerType: "inline-size", containerName: "page" },
      height: "100%",
      overflowY: "auto",
      overflowAnchor: "none",
      px: 3,
      py: 3,
    },
    h(UI.Flex, { direction: "column", gap: 3, maxW: "1600px" }, children),
  );
}

/** A block with a heading. `aside` stands at the right of the heading, `note` explains it in grey. */
export function Panel({ title, note, aside, id, children, flush = false, ...props }) {
  return box(
    {
      as: "section",
      id,
      "aria-label": title,
      borderWidth: 1,
      borderColor: "border",
      borderRadius: "md",
      bg: "bg",
      overflow: "hidden",
      scrollMarginTop: 4,
      flexShrink: 0,
      ...props,
    },
    title &&
      row(
        { px: 3, py: 2, borderBottomWidth: 1, borderColor: "border", bg: SURFACE, minH: 10, rowGap: 1 },
        h(UI.Heading, { as: "h3", size: "sm", lineHeight: "short" }, title),
        note && text({ color: "fg.muted", fontSize: "xs" }, note),
        box({ flex: 1 }),
        aside,
      ),
    box(flush ? {} : { px: 3, py: 3 }, children),
  );
}

/** A number with its name above it. */
export function Stat({ label, value, hint, title }) {
  return box(
    { title, minW: 0 },
    box({ color: "fg.muted", fontSize: "xs", fontWeight: "semibold" }, label),
    box({ fontSize: "md", fontVariantNumeric: "tabular-nums", lineHeight: "short" }, value),
    hint && box({ color: "fg.muted", fontSize: "xs" }, hint),
  );
}

/** A small heading inside a block. */
export function Label({ children, ...props }) {
  return box({ color: "fg.muted", fontSize: "xs", fontWeight: "semibold", mb: 1, ...props }, children);
}
