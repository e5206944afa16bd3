import { h, row, text, UI, useEffect, useState } from "./h.js";
import { useText } from "./i18n.js";
import { Icon } from "./icons.js";

/** The command line that does the same as the button beside it, to be copied. */
export function CliLine({ command, ...props }) {
  const { t } = useText();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  if (!command) return null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
      setCopied(true);
    } catch {
      // Without https a browser has no clipboard: the line can still be selected.
      setCopied(false);
    }
  };
  return row(
    { flexWrap: "nowrap", gap: 1, minW: 0, maxW: "100%", ...props },
    text(
      {
        as: "code",
        fontFamily: "mono",
        fontSize: "xs",
        color: "fg.muted",
        bg: { base: "bg.muted", _dark: "whiteAlpha.100" },
        px: 1.5,
        py: 0.5,
        borderRadius: "sm",
        whiteSpace: "nowrap",
        overflow: "hidden",
        textOverflow: "ellipsis",
        minW: 0,
        title: command,
        userSelect: "all",
      },
      command,
    ),
    h(
      UI.IconButton,
      {
        size: "2xs",
        variant: "ghost",
        "aria-label": t("cli.copy", { command }),
        title: copied ? t("cli.copied") : t("cli.copy_short"),
        onClick: copy,
      },
      h(Icon, { name: copied ? "check" : "copy" }),
    ),
  );
}
