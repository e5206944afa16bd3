// Today: how fresh each data set is, what runs, what waits for somebody.
import { box, column, h, row, text } from "../kit/h.js";
import { StateBadge, Tag } from "../kit/badge.js";
import { ProgressBar } from "../kit/bar.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { dagPath, LETTERS, LinkButton, PageLink, productPath, runPath } from "../kit/links.js";
import { Label, NARROW, Panel } from "../kit/panel.js";
import { reasonWords } from "../kit/reasons.js";
import { RUN_TONES } from "../kit/tones.js";
import { Name } from "../kit/words.js";

const GRID = {
  display: "grid",
  gridTemplateColumns: "minmax(0, 1.5fr) minmax(0, 1.3fr) minmax(0, 1.4fr) minmax(0, 1.3fr)",
  gap: 4,
  px: 3,
  py: 3,
  css: { [NARROW]: { gridTemplateColumns: "repeat(2, minmax(0, 1fr))" } },
};

/** In orange for those who may decide; for others only the way to where it stands. */
function Decision({ decision, dataset, act }) {
  const words = useText();
  const { t } = words;
  const label = t(`decision.${decision.kind}`, { count: decision.count, version: decision.version ?? "" });
  const title = [label, ...(decision.reasons ?? []).map((reason) => reasonWords(reason, words))].join("\n");
  if (decision.kind !== "approve" && !decision.dag_run_id) {
    // A run from the command line has no page here.
    return h(Tag, { tone: act ? "warning" : "gray", icon: "alert", title }, label);
  }
  const to =
    decision.kind === "approve"
      ? productPath({ view: "versions", dataset, version: decision.version })
      : runPath(decision.dag_id, decision.dag_run_id) + (decision.kind === "dead_letters" ? `#${LETTERS}` : "");
  return h(
    LinkButton,
    {
      to,
      ...(act ? { variant: "solid", colorPalette: "warning" } : { variant: "outline" }),
      size: "xs",
      maxW: "100%",
      title,
    },
    text({ truncate: true }, label),
    h(Icon, { name: "arrow" }),
  );
}

function Current({ entry }) {
  const { t, f } = useText();
  const version = entry.current;
  if (!version) return box({ fontSize: "sm", color: "fg.muted" }, t("today.no_version"));
  return box(
    { fontSize: "sm", minW: 0 },
    row(
      { gap: 1.5, rowGap: 0 },
      text({ fontWeight: "medium", fontSize: "md" }, t("today.age", { age: f.duration(entry.age_s) })),
      text({ color: "fg.muted", fontSize: "xs" }, f.time(version.published_at)),
    ),
    box(
      { fontVariantNumeric: "tabular-nums" },
      t("today.size", {
        count: version.documents,
        documents: f.compact(version.documents),
        tokens: `${version.tokens_estimated ? "≈ " : ""}${f.compact(version.tokens)}`,
      }),
    ),
    h(
      PageLink,
      { to: productPath({ view: "versions", dataset: entry.dataset, version: version.version }), fontSize: "xs", fontFamily: "mono" },
      h(Name, { length: 40 }, version.version),
    ),
  );
}

/** A run's name as a link to its page, where it has one. */
function RunName({ run, children }) {
  if (!run.dag_run_id) return text({ fontWeight: "medium", title: run.run }, children);
  return h(PageLink, { to: runPath(run.dag_id, run.dag_run_id), fontWeight: "medium" }, children);
}

function Now({ entry }) {
  const { t, f } = useText();
  if (entry.live.length > 0) {
    return column(
      { gap: 2 },
      ...entry.live.map((run) =>
        box(
          { key: run.run, fontSize: "sm", minW: 0 },
          row(
            { gap: 1.5, rowGap: 0 },
            h(StateBadge, { state: run.state, tones: RUN_TONES, words: "run_state", size: "sm" }),
            h(RunName, { run }, t(`mode.${run.mode}`)),
            text({ fontVariantNumeric: "tabular-nums" }, t("progress.run", { progress: f.progress(run.run_progress) })),
            run.urgent && h(Tag, { tone: "warning", icon: "bolt" }, t("run.urgent")),
          ),
          box({ mt: 1 }, h(ProgressBar, { value: run.run_progress, label: t("run.progress"), tone: run.state === "PAUSED" ? "deferred" : "brand", height: 1.5 })),
          run.layer &&
            box(
              { fontSize: "xs", color: "fg.muted", mt: 0.5 },
              t("progress.layer", { layer: t(`layer.${run.layer}`), progress: f.progress(run.progress) }),
            ),
          run.pause &&
            box(
              { fontSize: "xs", color: "fg.muted", overflowWrap: "anywhere" },
              t("today.paused_by", { who: run.pause.who || "–" }),
              run.pause.why && ` ${t("control.why", { why: run.pause.why })}`,
            ),
        ),
      ),
    );
  }
  const last = entry.last;
  if (!last) return box({ fontSize: "sm", color: "fg.muted" }, t("today.never_ran"));
  return box(
    { fontSize: "sm" },
    row(
      { gap: 1.5, rowGap: 0 },
      h(StateBadge, { state: last.state, tones: RUN_TONES, words: "run_state", size: "sm" }),
      last.dag_id && h(PageLink, { to: runPath(last.dag_id, last.dag_run_id) }, t("today.last_run")),
    ),
    box({ fontSize: "xs", color: "fg.muted", mt: 0.5 }, f.time(last.ended_at)),
  );
}

function Next({ entry }) {
  const { t, f } = useText();
  if (entry.dags.length === 0) return box({ fontSize: "sm", color: "fg.muted" }, t("today.no_dag"));
  return column(
    { gap: 1 },
    ...entry.dags.map((dag) =>
      box(
        { key: dag.dag_id, fontSize: "sm" },
        row(
          { gap: 1.5, rowGap: 0 },
          h(PageLink, { to: dagPath(dag.dag_id) }, t(`mode.${dag.mode}`)),
          dag.is_paused && h(Tag, { tone: "warning", title: t("today.dag_off_next") }, t("today.dag_off")),
        ),
        box(
          { fontSize: "xs", color: "fg.muted" },
          dag.is_paused || !dag.next_run ? dag.schedule || t("today.by_hand") : t("today.next_at", { at: f.time(dag.next_run) }),
        ),
      ),
    ),
  );
}

function Dataset({ entry }) {
  const { t } = useText();
  return box(
    { borderTopWidth: 1, borderColor: "border", _first: { borderTopWidth: 0 } },
    box(
      GRID,
      box(
        { minW: 0 },
        box({ fontWeight: "semibold", overflowWrap: "anywhere" }, entry.dataset),
        entry.description && box({ fontSize: "sm", color: "fg.muted" }, entry.description),
        entry.decisions.length > 0 &&
          row(
            { mt: 2, gap: 1.5 },
            ...entry.decisions.map((decision) =>
              h(Decision, { key: `${decision.kind}${decision.version}${decision.run}`, decision, dataset: entry.dataset, act: entry.act !== false }),
            ),
          ),
      ),
      box({ minW: 0 }, h(Label, null, t("today.current")), h(Current, { entry })),
      box({ minW: 0 }, h(Label, null, t(entry.live.length > 0 ? "today.now" : "today.last")), h(Now, { entry })),
      box({ minW: 0 }, h(Label, null, t("today.next")), h(Next, { entry })),
    ),
  );
}

export function Today({ datasets }) {
  const { t } = useText();
  const waiting = datasets.reduce((sum, entry) => sum + entry.decisions.length, 0);
  const live = datasets.flatMap((entry) => entry.live);
  const paused = live.filter((run) => run.state === "PAUSED").length;
  const going = live.length - paused;
  const parts = [
    t("today.datasets", { count: datasets.length }),
    going > 0 || paused === 0 ? t(going > 0 ? "today.live" : "today.live_none", { count: going }) : "",
    paused > 0 ? t("today.paused", { count: paused }) : "",
    waiting > 0 ? t("today.waiting", { count: waiting }) : t("sentence.calm"),
  ];
  // What waits for somebody comes first, then what runs.
  const rank = (entry) => (entry.decisions.length > 0 ? 0 : entry.live.length > 0 ? 1 : 2);
  const ordered = [...datasets].sort((a, b) => rank(a) - rank(b) || a.dataset.localeCompare(b.dataset));
  return column(
    { gap: 3 },
    box({ as: "p", fontSize: "lg", fontWeight: "medium", px: 1 }, parts.filter(Boolean).join(t("sentence.comma"))),
    h(Panel, { flush: true, "aria-label": t("nav.today") }, ...ordered.map((entry) => h(Dataset, { key: entry.dataset, entry }))),
  );
}
