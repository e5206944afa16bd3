// One dialogue, whole: its turns, what was changed in each, and whether it is deleted.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { ActionButton, Denied, Question, Said, useAction } from "../kit/action.js";
import { StateBadge, Tag } from "../kit/badge.js";
import { useText } from "../kit/i18n.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { usePoll } from "../kit/poll.js";
import { ROW_TONES } from "../kit/tones.js";
import { Name } from "../kit/words.js";
import { Quoted } from "./quoted.js";

function Change({ change }) {
  const { t, f } = useText();
  // When a turn was deleted is kept as seconds since 1970.
  const shown = (value) => (change.field === "deleted_at" && value !== null ? f.time(Number(value)) : value ?? "–");
  return box(
    { borderTopWidth: 1, borderColor: "border", py: 1.5, fontSize: "xs" },
    row(
      { gap: 1.5, rowGap: 0 },
      text({ fontWeight: "semibold" }, change.rule),
      text({ color: "fg.muted" }, change.field),
      text({ color: "fg.muted" }, t("browse.changed_by", { who: change.who ?? "–", at: f.time(change.created_at) })),
      h(Name, { length: 50, color: "fg.muted" }, change.task_id),
    ),
    (change.before !== null || change.after !== null) &&
      column(
        { gap: 0 },
        box({ as: "del", whiteSpace: "pre-wrap", overflowWrap: "anywhere", color: "fg.muted" }, shown(change.before)),
        box({ as: "ins", whiteSpace: "pre-wrap", overflowWrap: "anywhere", textDecoration: "none" }, shown(change.after)),
      ),
  );
}

function History({ dataset, turn }) {
  const { t } = useText();
  const poll = usePoll("samples/history", { dataset, turn }, { every: 0, keep: true });
  return h(Loaded, { poll, lines: 1 }, (data) =>
    data.changes.length === 0
      ? h(Empty, null, t("browse.no_changes"))
      : box({}, ...data.changes.map((change) => h(Change, { key: `${change.task_id} ${change.ordinal}`, change }))),
  );
}

function Turn({ turn, dataset, rights }) {
  const { t, f } = useText();
  const [open, setOpen] = useState(false);
  const more = turn.meta && Object.keys(turn.meta).length > 0 ? JSON.stringify(turn.meta, null, 2) : "";
  return box(
    { opacity: turn.deleted_at === null ? 1 : 0.6 },
    row(
      { gap: 1.5, rowGap: 0, fontSize: "xs", color: "fg.muted", mb: 0.5 },
      text({ fontWeight: "semibold", color: "fg" }, turn.role),
      h(StateBadge, { state: turn.status, tones: ROW_TONES, words: "row_state", size: "sm" }),
      text({}, t("browse.length", { count: turn.length, length: f.number(turn.length) })),
      turn.rule && h(Name, { length: 60 }, turn.rule),
      turn.deleted_at !== null && h(Tag, { tone: "danger" }, t("browse.deleted_at", { at: f.time(turn.deleted_at) })),
      h(UI.Button, { size: "2xs", variant: "ghost", "aria-expanded": open, onClick: () => setOpen(!open) }, t("browse.history")),
    ),
    turn.content === undefined
      ? text({ fontSize: "sm", color: "fg.muted" }, rights.whyText)
      : h(Quoted, { content: turn.content }),
    more && h(Quoted, { content: more }),
    open && h(History, { dataset, turn: turn.id }),
  );
}

export function Dialogue({ dataset, file, record, rights, onClose }) {
  const { t, f } = useText();
  const poll = usePoll("samples/dialogue", { dataset, file, record }, { every: 0, keep: true });
  const remove = useAction("samples/delete");
  const restore = useAction("samples/restore");
  const [asking, setAsking] = useState(false);
  const named = { dataset, file: [file], record: [Number(record)] };
  const gone = poll.data?.turns.some((turn) => turn.deleted_at !== null);
  return h(
    Panel,
    {
      title: t("browse.dialogue", { record: f.number(Number(record)) }),
      note: poll.data?.path,
      aside: h(UI.Button, { size: "xs", variant: "ghost", onClick: onClose }, t("browse.close")),
    },
    h(Loaded, { poll, lines: 4 }, (data) =>
      column(
        { gap: 2 },
        ...data.turns.map((turn) => h(Turn, { key: turn.id, turn, dataset, rights })),
        data.own && Object.keys(data.own).length > 0 && h(Quoted, { role: t("browse.own"), content: JSON.stringify(data.own, null, 2) }),
        row(
          {},
          gone
            ? h(
                ActionButton,
                { icon: "undo", denied: rights.whyAct, loading: restore.busy, onClick: () => restore.send({ ...named, deleted: true }) },
                t("browse.restore"),
              )
            : h(
                ActionButton,
                { icon: "cross", denied: rights.whyAct, "aria-expanded": asking, onClick: () => setAsking(!asking) },
                t("browse.delete"),
              ),
        ),
        asking &&
          !gone &&
          h(Question, {
            ask: { title: t("browse.delete_title"), text: t("browse.delete_text"), confirm: t("browse.delete_now"), tone: "danger" },
            busy: remove.busy,
            error: remove.error,
            onConfirm: async () => {
              if (await remove.send(named)) setAsking(false);
            },
            onCancel: () => setAsking(false),
          }),
        rights.known && h(Denied, { why: rights.whyAct }),
        restore.error && h(Said, { action: restore }),
      ),
    ),
  );
}
