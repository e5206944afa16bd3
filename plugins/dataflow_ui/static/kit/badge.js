import { h, UI } from "./h.js";
import { useText } from "./i18n.js";
import { Icon } from "./icons.js";
import { ICONS } from "./tones.js";

/** A state as the host shows states: a rounded mark with a drawing and a word. */
export function StateBadge({ state, tones, words, size = "md" }) {
  const { t } = useText();
  return h(
    UI.Badge,
    {
      colorPalette: tones[state] ?? "none",
      variant: "solid",
      borderRadius: "full",
      px: size === "sm" ? 1.5 : 2,
      py: size === "sm" ? 0 : 1,
      fontSize: size === "sm" ? "xs" : "sm",
      flexShrink: 0,
    },
    h(Icon, { name: ICONS[state] ?? "clock" }),
    t(`${words}.${state}`),
  );
}

/** A quiet mark beside a name. */
export function Tag({ children, tone = "brand", icon, ...props }) {
  return h(
    UI.Badge,
    { colorPalette: tone, variant: "subtle", borderRadius: "sm", flexShrink: 0, ...props },
    icon && h(Icon, { name: icon }),
    children,
  );
}
