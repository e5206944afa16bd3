// How a version's shares and lengths moved against the full version before it.
import { column, h, row, text, UI, useState } from "../kit/h.js";
import { Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Table } from "../kit/table.js";

/** Measures that are shares of the whole; a distance is a plain number. */
const SHARES = ["documents", "tokens"];

export function Drift({ drift }) {
  const { t, f } = useText();
  const beyond = drift.filter((entry) => entry.beyond);
  const within = drift.filter((entry) => !entry.beyond);
  const [all, setAll] = useState(false);
  const isShare = (entry) => SHARES.includes(entry.measure);
  const value = (entry, number) => (isShare(entry) ? f.share(number) : f.exact(number));
  const columns = [
    {
      name: "what",
      title: t("versions.drift_what"),
      cell: (entry) =>
        row(
          { gap: 1.5, rowGap: 0 },
          text({ color: entry.name ? "fg.muted" : "fg" }, t(`drift.${entry.what}`)),
          entry.name && text({ fontWeight: entry.beyond ? "semibold" : undefined }, entry.name),
        ),
    },
    { name: "measure", title: t("versions.drift_measure"), cell: (entry) => t(`drift_measure.${entry.measure}`) },
    { name: "old", title: t("versions.drift_old"), end: true, cell: (entry) => (isShare(entry) ? value(entry, entry.old) : "–") },
    { name: "new", title: t("versions.drift_new"), end: true, cell: (entry) => value(entry, entry.new) },
    {
      name: "limit",
      title: t("versions.drift_limit"),
      end: true,
      cell: (entry) => {
        if (typeof entry.limit !== "number") return "–";
        return isShare(entry) ? t("versions.drift_points", { limit: f.exact(entry.limit * 100) }) : `≤ ${f.exact(entry.limit)}`;
      },
    },
    {
      name: "beyond",
      title: "",
      cell: (entry) =>
        entry.beyond
          ? h(Tag, { tone: "warning", icon: "alert" }, t("versions.beyond"))
          : text({ color: "fg.muted", fontSize: "xs" }, t("versions.within")),
    },
  ];
  const rows = all ? [...beyond, ...within] : beyond;
  return column(
    { gap: 2, alignItems: "flex-start" },
    rows.length > 0 &&
      h(
        UI.Box,
        { width: "full" },
        h(Table, {
          label: t("versions.drift"),
          rows,
          id: (entry) => `${entry.what} ${entry.name} ${entry.measure}`,
          columns,
        }),
      ),
    within.length > 0 &&
      h(
        UI.Button,
        { size: "xs", variant: "outline", "aria-expanded": all, onClick: () => setAll(!all) },
        h(Icon, { name: all ? "up" : "down" }),
        t(all ? "versions.drift_fold" : "versions.drift_within", { count: within.length }),
      ),
  );
}
