// States of sample tasks.

const OPEN = ["PENDING", "RUNNING", "PAUSED", "FAILED"];

/** Whether something may still come of a task. */
export const isOpen = (task) => OPEN.includes(task.state);

/** Whether a task moves, or is about to: then its page asks often. */
export const isMoving = (task) => task.state === "PENDING" || task.state === "RUNNING";
