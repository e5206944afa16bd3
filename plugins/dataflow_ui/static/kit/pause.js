// A pause: how far it is to reach, and who asked for it.
import { box, h, row, text } from "./h.js";
import { useText } from "./i18n.js";
import { Icon } from "./icons.js";
import { Select } from "./select.js";

/** What a pause is of; `words` is the group of words that name it. */
export function Scope({ words, scopes, value, onChange, dataset }) {
  const { t } = useText();
  return h(Select, {
    label: t(`${words}.scope`),
    value,
    onChange,
    options: scopes.map((scope) => [scope, t(`${words}.scope_${scope}`, { dataset })]),
    bg: "bg",
    maxW: "20rem",
  });
}

/** Who paused, when and why, behind a sentence (`children`) about what holds already. */
export function Held({ words, pause, dataset, children }) {
  const { t, f } = useText();
  return row(
    {
      colorPalette: "deferred",
      bg: "colorPalette.subtle",
      borderWidth: 1,
      borderColor: "colorPalette.muted",
      borderRadius: "md",
      px: 3,
      py: 2,
      fontSize: "sm",
      alignItems: "flex-start",
      flexWrap: "nowrap",
      role: "status",
    },
    h(Icon, { name: "pause", mt: 0.5, color: "colorPalette.fg" }),
    box(
      { minW: 0, overflowWrap: "anywhere" },
      text({ fontWeight: "semibold" }, children),
      " ",
      text({}, t(`${words}.by_${pause.scope}`, { who: pause.who, at: f.time(pause.since), dataset })),
      pause.why && text({ color: "fg.muted" }, ` ${t(`${words}.why`, { why: pause.why })}`),
    ),
  );
}
