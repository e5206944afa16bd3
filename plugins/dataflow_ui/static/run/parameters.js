// The run's settings as a difference from the run before.
import { box, h, text, UI, useState } from "../kit/h.js";
import { Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { usePoll } from "../kit/poll.js";
import { Table } from "../kit/table.js";

/** A setting's value as a job file would say it. */
export function settingText(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function Parameters({ run }) {
  const { t } = useText();
  const [all, setAll] = useState(false);
  const poll = usePoll("run/parameters", { run: run.run }, { every: 0 });
  const rows = poll.data?.rows ?? [];
  const changed = rows.filter((entry) => entry.changed);
  const shown = all ? rows : changed;
  const compared = Boolean(poll.data?.previous);
  const value = (content, props) => text({ fontFamily: "mono", fontSize: "xs", overflowWrap: "anywhere", ...props }, settingText(content));
  const columns = [
    { name: "key", title: t("parameters.key"), cell: (entry) => text({ fontFamily: "mono", fontSize: "xs", fontWeight: entry.changed ? "semibold" : undefined }, entry.key) },
    ...(compared ? [{ name: "previous", title: t("parameters.previous"), cell: (entry) => value(entry.previous, { color: "fg.muted" }) }] : []),
    {
      name: "value",
      title: t("parameters.now"),
      cell: (entry) => (entry.changed ? h(Tag, { tone: "warning", whiteSpace: "normal" }, value(entry.value)) : value(entry.value)),
    },
  ];
  let note = null;
  if (poll.data) note = compared ? t("parameters.note", { count: changed.length, run: poll.data.previous }) : t("parameters.first");
  return h(
    Panel,
    {
      title: t("parameters.title"),
      note,
      flush: shown.length > 0,
      aside:
        rows.length > changed.length &&
        h(
          UI.Button,
          { size: "xs", variant: "outline", "aria-expanded": all, onClick: () => setAll(!all) },
          all ? t("parameters.fewer") : t("parameters.all", { count: rows.length }),
        ),
    },
    h(Loaded, { poll, lines: 2 }, () =>
      shown.length === 0
        ? h(Empty, null, t(compared ? "parameters.same" : "parameters.none_compared"))
        : box({ px: 1, pb: 1 }, h(Table, { label: t("parameters.title"), columns, rows: shown, id: (entry) => entry.key })),
    ),
  );
}
