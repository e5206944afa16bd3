"""What one attempt has done since it last saved: staged every few seconds, and when it must pause."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pyarrow as pa

from dataflow_ops.engine.context import Hooks
from dataflow_ops.engine.progress import Totals
from dataflow_ops.errors import StateError
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.staging import Staging
from dataflow_ops.values import Claim, StepResult


class Checkpoints:
    """Results of one attempt that are not staged yet, and the position behind the last of them.

    What can't be staged is not held: a reduce may give more than memory takes. Paused, it begins anew.

    Args:
        state: keeps the cursor.
        staging: keeps the rows.
        claim: of the attempt.
        step: its name.
        hooks: crash points.
        totals: of all results so far; the engine adds to them before :meth:`add`.
        start: position that the attempt began at.
    """

    def __init__(
        self,
        state: StateStore,
        staging: Staging,
        claim: Claim,
        step: str,
        hooks: Hooks,
        totals: Totals,
        start: int,
    ) -> None:
        self._state = state
        self._staging = staging
        self._claim = claim
        self._step = step
        self._hooks = hooks
        self._totals = totals
        self._staged_to = start
        self._position = start
        self._pending: list[StepResult] = []
        self._resumable: bool | None = None
        self._saved_at = time.monotonic()

    def add(self, end: int | None, result: StepResult) -> None:
        """Take one result; ``end`` is the position behind it, ``None`` where the step can't resume.

        Raises:
            StateError: some results of the step have a position and others have none.
        """
        if (end is not None) != self._resumable and self._resumable is not None:
            raise StateError(f"step '{self._step}' gives a cursor with some of its results only")
        self._resumable = end is not None
        if end is not None:
            self._pending.append(result)
            self._position = end

    def due(self, every_s: float) -> bool:
        """Whether something has not been saved for so many seconds."""
        return bool(self._pending) and time.monotonic() - self._saved_at > every_s

    def save(self) -> None:
        """Stage what is pending, then move the cursor.

        Raises:
            LeaseLost: another attempt owns the task.
        """
        self._stage()
        totals = self._totals
        self._state.checkpoint(self._claim, self._position, totals.counts.documents_in, totals.as_json())
        self._saved_at = time.monotonic()

    def pause(self) -> None:
        """Stage what is pending, then give the task back with its cursor. Uses no attempt.

        Raises:
            LeaseLost: another attempt owns the task.
        """
        if self._resumable is False:
            self._state.pause_task(self._claim, 0)
            return
        self._stage()
        totals = self._totals
        self._state.pause_task(self._claim, self._position, totals.counts.documents_in, totals.as_json())

    def _stage(self) -> None:
        if not self._pending:
            return
        self._hooks.reached(f"before stage {self._step}")
        self._staging.save(self._claim.epoch, self._staged_to, self._position, _joined(self._pending))
        self._hooks.reached(f"after stage {self._step}")
        self._pending, self._staged_to = [], self._position


def _joined(pending: list[StepResult]) -> Mapping[str, pa.Table]:
    kinds = sorted({k for r in pending for k in r.outputs})
    return {k: pa.concat_tables([r.outputs[k] for r in pending if k in r.outputs]) for k in kinds}
