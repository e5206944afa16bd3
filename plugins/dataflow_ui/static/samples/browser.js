// Turns of a data set: what matches, page by page, with sums; one dialogue whole beside it.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { StateBadge, Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Empty, ErrorBox, Loaded } from "../kit/notes.js";
import { Label, Panel, Stat } from "../kit/panel.js";
import { SLOW_MS, usePoll } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { ROW_TONES } from "../kit/tones.js";
import { Name } from "../kit/words.js";
import { Dialogue } from "./dialogue.js";
import { askedFor, Filter } from "./filter.js";

const SHOWN = 160;

function Parts({ name, parts, words }) {
  const { t, f } = useText();
  const entries = Object.entries(parts).filter(([, count]) => count > 0);
  if (entries.length === 0) return null;
  return box(
    {},
    h(Label, null, t(`browse.by_${name}`)),
    row(
      { gap: 1.5, rowGap: 1 },
      ...entries.map(([key, count]) => h(Tag, { key, tone: "gray" }, `${words ? words(key) : key}: ${f.number(count)}`)),
    ),
  );
}

function Sums({ asked, files }) {
  const { t, f } = useText();
  const poll = usePoll("samples/stats", asked, { every: 0, keep: true });
  const paths = Object.fromEntries(files.map((file) => [file.id, file.path.split("/").pop()]));
  return h(Loaded, { poll, lines: 2 }, (data) =>
    column(
      { gap: 2 },
      row(
        { gap: 6 },
        h(Stat, { label: t("browse.turns"), value: f.number(data.turns) }),
        h(Stat, { label: t("browse.dialogues"), value: f.number(data.dialogues) }),
        h(Stat, { label: t("browse.characters"), value: f.compact(data.characters) }),
      ),
      row(
        { gap: 6, rowGap: 2, alignItems: "flex-start" },
        h(Parts, { name: "status", parts: data.by_status, words: (status) => t(`row_state.${status}`) }),
        h(Parts, { name: "role", parts: data.by_role }),
        h(Parts, { name: "file", parts: data.by_file, words: (file) => paths[file] ?? file.slice(0, 12) }),
        h(Parts, {
          name: "length",
          parts: Object.fromEntries(
            data.by_length.map((band) => [
              band.to === null
                ? t("browse.from", { from: f.number(band.from) })
                : t("browse.band", { from: f.number(band.from), to: f.number(band.to - 1) }),
              band.turns,
            ]),
          ),
        }),
      ),
    ),
  );
}

function Turn({ turn, chosen, onOpen }) {
  const { t, f } = useText();
  return h(
    UI.Box,
    {
      as: "button",
      type: "button",
      "aria-pressed": chosen,
      onClick: onOpen,
      width: "100%",
      textAlign: "start",
      cursor: "pointer",
      px: 3,
      py: 1.5,
      borderTopWidth: 1,
      borderColor: "border",
      bg: chosen ? "bg.emphasized" : undefined,
      _focusVisible: { outline: "2px solid", outlineColor: "brand.focusRing" },
    },
    row(
      { gap: 1.5, rowGap: 0, fontSize: "xs", color: "fg.muted" },
      h(StateBadge, { state: turn.status, tones: ROW_TONES, words: "row_state", size: "sm" }),
      text({ fontWeight: "semibold", color: "fg" }, turn.role),
      text({}, t("browse.place", { record: f.number(turn.record), turn: f.number(turn.turn) })),
      text({}, t("browse.length", { count: turn.length, length: f.number(turn.length) })),
      turn.rule && h(Name, { length: 60 }, turn.rule),
      turn.deleted_at !== null && h(Tag, { tone: "danger" }, t("browse.is_deleted")),
    ),
    turn.content !== undefined &&
      box({ fontSize: "sm", truncate: true }, turn.content.length > SHOWN ? `${turn.content.slice(0, SHOWN)}…` : turn.content),
  );
}

/** One page; the last one offers the next, by the key of its last turn. */
function Turns({ asked, after, last, onMore, chosen, onOpen }) {
  const { t } = useText();
  const poll = usePoll("samples/turns", { ...asked, after, limit: 50 }, { every: 0, keep: true });
  return h(Loaded, { poll, lines: 4 }, (data) =>
    box(
      {},
      ...data.turns.map((turn) =>
        h(Turn, {
          key: turn.id,
          turn,
          chosen: chosen === `${turn.file}:${turn.record}`,
          onOpen: () => onOpen(turn),
        }),
      ),
      data.turns.length === 0 && after === "" && box({ p: 3 }, h(Empty, null, t("browse.nothing"))),
      last &&
        data.next !== null &&
        box({ p: 2 }, h(UI.Button, { size: "xs", variant: "outline", onClick: () => onMore(data.next) }, t("browse.more"))),
    ),
  );
}

function Pages({ asked, chosen, onOpen }) {
  const [pages, setPages] = useState([""]);
  return box(
    {},
    ...pages.map((after, index) =>
      h(Turns, {
        key: after,
        asked,
        after,
        last: index === pages.length - 1,
        onMore: (next) => setPages((old) => [...old, next]),
        chosen,
        onOpen,
      }),
    ),
  );
}

export function Browser({ dataset, rights }) {
  const { t } = useText();
  const [read, write] = useQuery();
  const poll = usePoll("samples/files", { dataset }, { every: SLOW_MS });
  const files = poll.data?.files ?? [];
  const asked = askedFor(read, dataset);
  const [file, record] = read("record").split(":");
  if (poll.error && poll.data === null) return h(Panel, null, h(ErrorBox, poll));
  return [
    h(
      Panel,
      { key: "filter", title: t("browse.title"), note: rights.known && rights.whyText ? rights.whyText : null },
      column({ gap: 3 }, h(Filter, { files, read, write, rights }), h(Sums, { asked, files })),
    ),
    record && h(Dialogue, { key: `${file} ${record}`, dataset, file, record, rights, onClose: () => write({ record: "" }) }),
    h(
      Panel,
      { key: "turns", title: t("browse.turns"), flush: true },
      h(Pages, {
        key: JSON.stringify(asked),
        asked,
        chosen: read("record"),
        onOpen: (turn) => write({ record: `${turn.file}:${turn.record}` }),
      }),
    ),
  ];
}
