// Bars: progress, parts of a whole.
import { box, h, row, text, UI } from "./h.js";
import { useText } from "./i18n.js";

/** How far something is, 0..1. `label` says of what. */
export function ProgressBar({ value, label, tone = "brand", height = 2 }) {
  const { f } = useText();
  const share = Math.max(0, Math.min(1, value ?? 0));
  return box(
    {
      role: "progressbar",
      "aria-label": label,
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": Math.floor(share * 100),
      "aria-valuetext": f.progress(value),
      colorPalette: tone,
      bg: "bg.emphasized",
      borderRadius: "full",
      overflow: "hidden",
      height,
      width: "100%",
    },
    box({
      bg: "colorPalette.solid",
      height: "100%",
      borderRadius: "full",
      style: { width: `${share * 100}%` },
      transition: "width 0.6s ease",
    }),
  );
}

/**
 * Parts of a whole side by side; `parts` are `{name, value, tone, title}`, `width` 0..1 of the room.
 * A part that is wide enough bears its name, so that colour is not all there is to tell them apart.
 */
export function StackedBar({ parts, width = 1, height = 5, label }) {
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  return box(
    { bg: "bg.muted", borderRadius: "sm", overflow: "hidden", height, role: "img", "aria-label": label },
    h(
      UI.Flex,
      { height: "100%", style: { width: `${Math.max(0.005, width) * 100}%` }, gap: "1px" },
      ...parts
        .filter((part) => part.value > 0)
        .map((part) =>
          box(
            {
              key: part.name,
              title: part.title,
              colorPalette: part.tone,
              bg: "colorPalette.muted",
              borderTopWidth: 3,
              borderColor: "colorPalette.solid",
              color: "colorPalette.fg",
              fontSize: "2xs",
              lineHeight: 1.4,
              px: (part.value / total) * width > 0.08 ? 1 : 0,
              overflow: "hidden",
              whiteSpace: "nowrap",
              textOverflow: "ellipsis",
              style: { width: `${(part.value / total) * 100}%` },
            },
            (part.value / total) * width > 0.08 ? part.name : "",
          ),
        ),
    ),
  );
}

/** Names and colours of parts. */
export function Legend({ parts }) {
  return row(
    { gap: 3, rowGap: 1, fontSize: "xs", color: "fg.muted" },
    ...parts.map((part) =>
      row(
        { key: part.name, gap: 1 },
        box({ boxSize: 2.5, borderRadius: "2px", colorPalette: part.tone, bg: "colorPalette.solid" }),
        text({ color: "fg" }, part.name),
        part.hint && text({}, part.hint),
      ),
    ),
  );
}
