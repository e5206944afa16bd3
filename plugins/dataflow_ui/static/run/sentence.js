// How the run goes and what it wants, in one sentence.
import { box, h, row, text, UI } from "../kit/h.js";
import { StateBadge, Tag } from "../kit/badge.js";
import { ProgressBar } from "../kit/bar.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { LETTERS, LinkButton, productPath } from "../kit/links.js";
import { Panel } from "../kit/panel.js";
import { reasonWords } from "../kit/reasons.js";
import { hasEnded, RUN_TONES } from "../kit/tones.js";

/** The sentence's first half: what the run does, or how it ended. */
export function progressWords(run, { t, f }) {
  const layer = run.layer ? t(`layer.${run.layer}`) : "";
  const values = {
    layer,
    progress: f.progress(run.progress),
    done: f.number(run.layer_done),
    total: f.number(run.layer_tasks),
    count: run.layer_tasks,
    eta: f.time(run.eta),
    at: f.time(run.ended_at),
    took: f.duration(run.ended_at - run.started_at),
    version: run.version ?? "",
  };
  if (run.state === "PLANNED") return t("sentence.planned");
  if (run.state === "RUNNING" || run.state === "PAUSED") {
    const parts = [t("progress.layer", values)];
    if (run.layer_tasks) parts.push(t("sentence.progress", values));
    if (run.state === "PAUSED") parts.unshift(t(run.pause ? "sentence.paused" : "sentence.resuming"));
    else if (run.eta) parts.push(t("sentence.eta", values));
    return parts.join(t("sentence.comma"));
  }
  if (run.state === "FAILED") return t(run.layer ? "sentence.failed_in" : "sentence.failed", values);
  if (run.state === "CANCELLED") return t("sentence.cancelled", values);
  const parts = [t("sentence.ended", values)];
  const waits = run.decisions?.some((one) => one.kind === "approve" && one.version === run.version);
  if (run.version && (waits || run.state === "AWAITING_APPROVAL")) parts.push(t("sentence.waits", values));
  else if (run.version) parts.push(t(run.current ? "sentence.current" : "sentence.version", values));
  else if (run.until) parts.push(t("sentence.until", { layer: t(`layer.${run.until}`) }));
  return parts.join(t("sentence.comma"));
}

function jump(id) {
  const target = document.getElementById(id);
  target?.scrollIntoView({ behavior: "smooth", block: "start" });
  target?.querySelector("button, a, [tabindex]")?.focus({ preventScroll: true });
}

/** In orange for those who may decide; for others only the way to where it stands. */
function Decision({ decision, run, rights }) {
  const words = useText();
  const { t } = words;
  const label = t(`decision.${decision.kind}`, { count: decision.count, version: decision.version ?? "" });
  const look = rights.act ? { variant: "solid", colorPalette: "warning" } : { variant: "outline" };
  const props = { size: "sm", ...look, title: decision.reasons?.map((reason) => reasonWords(reason, words)).join("\n") };
  const inside = [label, h(Icon, { name: "arrow", key: "icon" })];
  if (decision.kind === "approve") {
    const to = productPath({ view: "versions", dataset: run.dataset, version: decision.version });
    return h(LinkButton, { to, ...props }, ...inside);
  }
  const place = decision.kind === "dead_letters" ? LETTERS : "dataflow-where";
  return h(UI.Button, { ...props, onClick: () => jump(place) }, ...inside);
}

export function Sentence({ run, rights }) {
  const words = useText();
  const { t, f } = words;
  const decisions = run.decisions ?? [];
  const ended = hasEnded(run);
  // A pause is somebody's wish: it waits for nobody's decision, and it doesn't end by itself.
  const held = run.state === "PAUSED" && run.pause;
  const calm = run.state === "FAILED" ? "" : t(held ? "sentence.held" : "sentence.calm");
  const waits = run.detail ? [] : decisions.filter((one) => one.kind === "approve").flatMap((one) => one.reasons ?? []);
  return h(
    Panel,
    null,
    row(
      { gap: 3, alignItems: "flex-start" },
      h(StateBadge, { state: run.state, tones: RUN_TONES, words: "run_state" }),
      box(
        { flex: "1 1 22rem", minW: 0 },
        box(
          { as: "p", fontSize: "lg", fontWeight: "medium", lineHeight: "short", "aria-live": "polite" },
          progressWords(run, words),
          decisions.length === 0 && calm && text({ color: "fg.muted", fontWeight: "normal" }, t("sentence.semicolon"), calm),
        ),
        run.detail &&
          hasEnded(run) &&
          box({ color: "fg.muted", fontSize: "sm", mt: 1, lineClamp: 3, title: run.detail, overflowWrap: "anywhere" }, run.detail),
        run.dag_gone &&
          box({ color: "warning.fg", fontSize: "sm", mt: 1, overflowWrap: "anywhere" }, t("sentence.dag_gone", { run: run.run })),
        waits.length > 0 &&
          box(
            { color: "fg.muted", fontSize: "sm", mt: 1, overflowWrap: "anywhere" },
            t("sentence.because", { reasons: waits.map((reason) => reasonWords(reason, words)).join(t("sentence.semicolon")) }),
          ),
        row(
          { mt: 1.5, fontSize: "xs", color: "fg.muted", gap: 3, rowGap: 1 },
          text({ color: "fg", fontWeight: "medium" }, run.dataset),
          text({}, t(`mode.${run.mode}`)),
          run.data_date && text({}, t("run.day", { day: run.data_date })),
          run.until && text({}, t("run.until", { layer: t(`layer.${run.until}`) })),
          run.started_at && text({}, t("run.started", { at: f.time(run.started_at) })),
          !ended && text({}, t("run.workers", { count: run.workers ?? 0 })),
          run.urgent && h(Tag, { tone: "warning", icon: "bolt" }, t("run.urgent")),
        ),
      ),
      decisions.length > 0 &&
        row(
          { gap: 2 },
          text({ fontSize: "sm", fontWeight: "medium" }, t("decision.wait", { count: decisions.length })),
          ...decisions.map((decision) => h(Decision, { key: `${decision.kind}${decision.version}`, decision, run, rights })),
        ),
    ),
    !ended &&
      box(
        { mt: 3 },
        h(ProgressBar, {
          value: run.run_progress ?? run.progress,
          label: t("run.progress"),
          tone: run.state === "PAUSED" ? "deferred" : "brand",
        }),
        box({ mt: 1, fontSize: "xs", color: "fg.muted" }, t("progress.run", { progress: f.progress(run.run_progress ?? run.progress) })),
      ),
  );
}
