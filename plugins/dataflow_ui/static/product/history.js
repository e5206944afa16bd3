// Who decided what about the versions of a data set.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { Empty } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { Name } from "../kit/words.js";

const SHOWN = 8;
/** A version is published once, but that does not always make it current. */
const BECAME = { waiting: "event.built", increment: "event.increment" };

function Event({ event }) {
  const { t, f } = useText();
  const became = BECAME[event.became];
  return box(
    { display: "grid", gridTemplateColumns: "6.5rem minmax(0, 1fr)", columnGap: 3, fontSize: "sm" },
    text({ color: "fg.muted", fontSize: "xs", fontVariantNumeric: "tabular-nums", pt: 0.5 }, f.time(event.at)),
    box(
      { minW: 0 },
      row(
        { gap: 1.5, rowGap: 0, alignItems: "baseline" },
        h(Name, { length: 44, mono: false, fontWeight: "medium" }, event.who || "–"),
        text({}, became ? t(became) : t(`event.${event.action}`)),
        h(Name, { length: 48 }, event.version),
      ),
      event.note && box({ color: "fg.muted", lineClamp: 2, overflowWrap: "anywhere", title: event.note }, event.note),
    ),
  );
}

export function History({ events }) {
  const { t } = useText();
  const [all, setAll] = useState(false);
  const shown = all ? events : events.slice(0, SHOWN);
  return h(
    Panel,
    {
      title: t("versions.history"),
      aside:
        events.length > SHOWN &&
        h(
          UI.Button,
          { size: "xs", variant: "outline", "aria-expanded": all, onClick: () => setAll(!all) },
          all ? t("versions.history_fewer") : t("versions.history_all", { count: events.length }),
        ),
    },
    events.length === 0
      ? h(Empty, { icon: "clock" }, t("versions.history_none"))
      : column({ gap: 2 }, ...shown.map((event, index) => h(Event, { key: index, event }))),
  );
}
