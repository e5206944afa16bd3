// Just removed: a few documents that a rule has dropped, to be judged by a person with two keys.
import { box, h, row, text, UI, useEffect, useMemo, useRef, useState } from "../kit/h.js";
import { ActionButton, Denied, Said, useAction } from "../kit/action.js";
import { Tag } from "../kit/badge.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Empty, Loaded } from "../kit/notes.js";
import { NARROW, Panel, SURFACE } from "../kit/panel.js";
import { untilComplete, usePoll } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { Select } from "../kit/select.js";
import { shorten } from "../kit/words.js";
import { RemovedDocument } from "./removed_document.js";

const SHOWN = 6;
const REFRESH_MS = 10000;

function RuleChoice({ rules, value, onChange }) {
  const { t, f } = useText();
  const known = rules.map((rule) => [rule.rule, `${rule.rule} (${f.compact(rule.hits)})`]);
  return h(Select, {
    label: t("removed.rule"),
    value,
    onChange,
    options: [["", t("removed.all_rules")], ...known],
    size: "xs",
    width: "auto",
    maxW: "16rem",
  });
}

function ListEntry({ document, chosen, onChoose }) {
  const { t } = useText();
  const verdict = document.review?.verdict;
  return h(
    UI.Box,
    {
      as: "button",
      type: "button",
      role: "option",
      "aria-selected": chosen,
      tabIndex: -1,
      onClick: onChoose,
      display: "block",
      width: "100%",
      textAlign: "start",
      px: 3,
      py: 1.5,
      cursor: "pointer",
      borderLeftWidth: 3,
      borderLeftColor: chosen ? "brand.solid" : "transparent",
      bg: chosen ? "brand.subtle" : undefined,
      _hover: { bg: chosen ? "brand.subtle" : SURFACE },
    },
    row(
      { flexWrap: "nowrap", gap: 1 },
      text({ fontSize: "sm", fontWeight: "medium", truncate: true, flex: 1 }, document.rule),
      verdict &&
        h(
          Tag,
          { tone: verdict === "keep" ? "warning" : "success", icon: verdict === "keep" ? "undo" : "check" },
          t(`removed.verdict_${verdict}`),
        ),
    ),
    box({ fontSize: "xs", color: "fg.muted", truncate: true, title: document.path }, shorten(document.path, 46)),
  );
}

/** How the reviews of this run stand: whether the rules are right. */
function Verdicts({ run, rule }) {
  const { t, f } = useText();
  const { data } = usePoll("run/reviews", { run }, { keep: true });
  if (!data || data.keep + data.drop === 0) return null;
  const own = data.by_rule.find((entry) => entry.rule === rule);
  return text(
    { fontSize: "xs", color: "fg.muted" },
    t("removed.verdicts", { keep: f.number(data.keep), drop: f.number(data.drop) }),
    own && ` ${t("removed.verdicts_rule", { rule, keep: f.number(own.keep), drop: f.number(own.drop) })}`,
  );
}

const nameOf = (document) => `${document.rule} ${document.doc_id}`;

/** Whether keys typed there mean what is written there. */
const TAKES_KEYS = "input, textarea, select, [contenteditable], [role=dialog], [role=menu]";

/**
 * `focus` says whether the reader asked for these: then the keys work at once. They also do while the pointer is
 * `over` the block.
 */
function Review({ data, run, rights, pin, focus, over }) {
  const { t } = useText();
  const action = useAction("run/review");
  // Which one is chosen goes by the document: after a renewal it may stand elsewhere.
  const [chosen, setChosen] = useState({ name: "", place: 0 });
  const [mine, setMine] = useState({});
  const list = useRef(null);
  const whole = useRef(null);
  const documents = useMemo(
    () =>
      data.documents.map((entry) => {
        const verdict = mine[nameOf(entry)];
        return verdict === undefined ? entry : { ...entry, review: verdict ? { verdict, who: rights.user } : null };
      }),
    [data, mine, rights.user],
  );
  const found = documents.findIndex((entry) => nameOf(entry) === chosen.name);
  const at = found >= 0 ? found : Math.min(chosen.place, documents.length - 1);
  const current = documents[at];
  const choose = (index) => {
    pin();
    moved.current = true;
    const place = Math.max(0, Math.min(documents.length - 1, index));
    setChosen({ name: nameOf(documents[place]), place });
  };
  const move = (step) => choose(at + step);

  const judge = async (verdict) => {
    if (!rights.act || !current || action.busy) return;
    pin();
    const body = { run, doc_id: current.doc_id, rule: current.rule, verdict, note: "" };
    if (await action.send(body)) {
      setMine((old) => ({ ...old, [nameOf(current)]: verdict }));
      if (verdict) move(1);
    }
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      k: () => judge("keep"),
      d: () => judge("drop"),
      u: () => judge(""),
      arrowdown: () => move(1),
      arrowright: () => move(1),
      arrowup: () => move(-1),
      arrowleft: () => move(-1),
    };
    const act = keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    // The host has keys of its own ("d" and others): these are ours while the focus or the pointer is here.
    (event.nativeEvent ?? event).stopPropagation();
    act();
  };
  const listen = useRef(onKey);
  listen.current = onKey;
  useEffect(() => {
    if (!over) return undefined;
    const onDocument = (event) => {
      if (whole.current?.contains(event.target) || event.target.closest?.(TAKES_KEYS)) return;
      listen.current(event);
    };
    globalThis.document.addEventListener("keydown", onDocument, true);
    return () => globalThis.document.removeEventListener("keydown", onDocument, true);
  }, [over]);
  const moved = useRef(false);
  useEffect(() => {
    // Not at first: a page that has just been opened stays at its top.
    if (moved.current) list.current?.children[at]?.scrollIntoView?.({ block: "nearest" });
  }, [at]);

  useEffect(() => {
    if (focus) whole.current?.focus({ preventScroll: true });
  }, [focus, data]);

  return box(
    {
      ref: whole,
      tabIndex: 0,
      onKeyDown: onKey,
      "aria-label": t("removed.keys_label"),
      display: "grid",
      gridTemplateColumns: "17rem minmax(0, 1fr)",
      _focusVisible: { outline: "2px solid", outlineColor: "brand.focusRing", outlineOffset: "-2px" },
      css: { [NARROW]: { gridTemplateColumns: "minmax(0, 1fr)" } },
    },
    box(
      {
        ref: list,
        role: "listbox",
        "aria-label": t("removed.title"),
        borderRightWidth: 1,
        borderColor: "border",
        py: 1,
        css: { [NARROW]: { borderRightWidth: 0, borderBottomWidth: 1, maxHeight: "9.5rem", overflowY: "auto" } },
      },
      ...documents.map((entry, index) =>
        h(ListEntry, {
          key: nameOf(entry),
          document: entry,
          chosen: index === at,
          onChoose: () => choose(index),
        }),
      ),
    ),
    box(
      { p: 3, minW: 0 },
      h(RemovedDocument, { document: current }),
      row(
        { mt: 3, gap: 2, rowGap: 1 },
        h(
          ActionButton,
          { icon: "undo", denied: rights.whyAct, onClick: () => judge("keep"), "aria-keyshortcuts": "k" },
          t("removed.keep"),
          h(UI.Kbd, { size: "sm" }, "K"),
        ),
        h(
          ActionButton,
          { icon: "check", denied: rights.whyAct, onClick: () => judge("drop"), "aria-keyshortcuts": "d" },
          t("removed.drop"),
          h(UI.Kbd, { size: "sm" }, "D"),
        ),
        current.review &&
          h(
            ActionButton,
            { variant: "ghost", denied: rights.whyAct, onClick: () => judge(""), "aria-keyshortcuts": "u" },
            t("removed.take_back"),
            h(UI.Kbd, { size: "sm" }, "U"),
          ),
        box({ flex: 1 }),
        h(
          UI.Button,
          { size: "sm", variant: "ghost", disabled: at >= documents.length - 1, onClick: () => move(1) },
          t("removed.next"),
          h(UI.Kbd, { size: "sm" }, "→"),
        ),
      ),
      action.error && box({ mt: 2 }, h(Said, { action })),
    ),
  );
}

function DeniedHere({ rights }) {
  return rights.known && rights.whyAct ? box({ px: 3, pb: 2 }, h(Denied, { why: rights.whyAct })) : null;
}

export function Removed({ run, layer, every, rights }) {
  const { t } = useText();
  const [read, write] = useQuery();
  const [seed, setSeed] = useState(0);
  const [near, setNear] = useState(false);
  const [over, setOver] = useState(false);
  const [pinned, setPinned] = useState("");
  const rule = read("rule");
  const allowed = rights.known && rights.text;
  const live = every < REFRESH_MS;
  const shown = `${layer}/${rule}/${seed}`;
  // What somebody is reading or judging must not change under the eyes: not until they ask for others.
  const held = near || pinned === shown;
  const poll = usePoll(
    allowed ? "run/removed" : null,
    { run: run.run, layer, rule, n: SHOWN, seed },
    { every: held ? 0 : untilComplete(live ? REFRESH_MS : 0), keep: true },
  );
  // Every action makes all blocks ask anew, so it is not enough to ask no more by the clock.
  const kept = useRef({ of: "", data: null });
  if (!held || kept.current.of !== shown) kept.current = { of: poll.data && !poll.stale ? shown : "", data: poll.data };
  const data = kept.current.data;
  const more = data !== null && data.documents.length > 0;
  return h(
    Panel,
    {
      id: "dataflow-removed",
      title: t("removed.title"),
      note: allowed && live ? t(held ? "removed.held" : "removed.live") : null,
      flush: more,
      onFocus: () => setNear(true),
      onBlur: (event) => setNear(event.currentTarget.contains(event.relatedTarget)),
      onMouseEnter: () => {
        setNear(true);
        setOver(true);
      },
      onMouseLeave: (event) => {
        setNear(event.currentTarget.contains(globalThis.document.activeElement));
        setOver(false);
      },
      aside:
        data &&
        row(
          {},
          h(RuleChoice, {
            rules: data.rules,
            value: rule,
            onChange: (name) => write({ rule: name }, { replace: true }),
          }),
          h(
            UI.Button,
            { size: "xs", variant: "outline", onClick: () => setSeed(seed + 1), loading: poll.stale, disabled: !more },
            t("removed.others"),
          ),
        ),
    },
    rights.known && !rights.text
      ? h(Empty, { icon: "person" }, rights.whyText)
      : h(Loaded, { poll: { ...poll, data }, lines: 5 }, () =>
          data.documents.length === 0
            ? h(Empty, { title: t("removed.none") }, t(run.state === "PLANNED" ? "removed.none_yet" : "removed.none_next"))
            : box(
                {},
                h(Review, { key: shown, data, run: run.run, rights, pin: () => setPinned(shown), focus: seed > 0 && !poll.stale, over }),
                h(DeniedHere, { rights }),
                row(
                  { px: 3, py: 2, borderTopWidth: 1, borderColor: "border", gap: 3 },
                  h(Verdicts, { run: run.run, rule }),
                  box({ flex: 1 }),
                  h(CliLine, { command: data.cli }),
                ),
              ),
        ),
  );
}
