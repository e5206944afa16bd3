// Which of the host's palettes a state has. A tone never stands alone: an icon or a word goes with it.

export const RUN_TONES = {
  PLANNED: "queued",
  RUNNING: "running",
  PAUSED: "deferred",
  SUCCEEDED: "success",
  SUCCEEDED_WITH_DEAD: "warning",
  AWAITING_APPROVAL: "awaiting_input",
  FAILED: "failed",
  CANCELLED: "none",
};

export const SAMPLE_TONES = {
  PENDING: "queued",
  RUNNING: "running",
  PAUSED: "deferred",
  SUCCESS: "success",
  FAILED: "failed",
  CANCELLED: "none",
};

/** What became of a turn in a clean-up. */
export const ROW_TONES = { NEW: "brand", KEPT: "success", REJECTED: "warning", DUPLICATE: "gray" };

export const LAYER_TONES = {
  waiting: "none",
  running: "running",
  paused: "deferred",
  done: "success",
  failed: "failed",
};

export const VERSION_TONES = { PUBLISHED: "success", WAITING: "awaiting_input", REJECTED: "none", REMOVED: "none" };

export const DOCUMENT_TONES = { kept: "success", removed: "warning", dead: "failed", not_sampled: "none" };

export const ICONS = {
  NEW: "clock",
  KEPT: "check",
  DUPLICATE: "copy",
  PENDING: "clock",
  SUCCESS: "check",
  PLANNED: "clock",
  RUNNING: "running",
  PAUSED: "pause",
  SUCCEEDED: "check",
  SUCCEEDED_WITH_DEAD: "alert",
  AWAITING_APPROVAL: "person",
  FAILED: "cross",
  CANCELLED: "stop",
  waiting: "clock",
  running: "running",
  paused: "pause",
  done: "check",
  failed: "cross",
  PUBLISHED: "check",
  WAITING: "person",
  REJECTED: "cross",
  REMOVED: "minus",
  kept: "check",
  removed: "minus",
  dead: "alert",
  not_sampled: "minus",
};

/** Palettes for parts of a whole, in the order in which they are given out. */
export const PARTS = ["blue", "teal", "amber", "purple", "pink", "lime", "cyan", "orange", "slate", "indigo", "rose"];

/** How loud it is that a share is lost which was kept before: quiet below half a point, loud above five. */
export function lossTone(lost) {
  if (lost < 0.005) return null;
  return lost < 0.05 ? "warning" : "danger";
}

/** Whether a run still moves: then its page asks often. */
export function isLive(run) {
  if (!run) return false;
  // Still stopping, or about to go on: only a pause that has come to rest is quiet.
  if (run.state === "PAUSED") return !run.pause || run.pause.tasks_paused < run.pause.tasks_open;
  return run.state === "RUNNING" || run.state === "PLANNED";
}

export function hasEnded(run) {
  return ["SUCCEEDED", "SUCCEEDED_WITH_DEAD", "AWAITING_APPROVAL", "FAILED", "CANCELLED"].includes(run.state);
}
