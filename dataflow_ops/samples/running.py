"""The one way in which a sample task runs: claim, batch by batch, and how it ends.

A batch is worked out first and then written in one transaction with its cursor and its counts. So a process
killed at any moment loses at most the batch that it was at, and none is written twice. The pause flag is
looked at after every batch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

import sqlalchemy as sa

from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.engine.context import owner_is_gone, owner_name
from dataflow_ops.errors import CommitUnknown, DatabaseUnavailable, LeaseLost
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.samples.records import Claim, SampleTask
from dataflow_ops.state.samples.store import SampleStore

log = logging.getLogger(__name__)

LEASE_S: Final = 60.0
_FIRST_PAUSE_S: Final = 0.25
_MOST_PAUSE_S: Final = 5.0

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class Batch(Generic[Content]):
    """Work that is done and not yet written.

    Attributes:
        file_id: the file that it is from.
        end: first record of the file behind it: where the cursor goes on.
        rows: turns in it.
        content: whatever the step made of them.
        detail: what the step needs to go on behind it, beside file and record; kept with the cursor.
    """

    file_id: str
    end: int
    rows: int
    content: Content
    detail: Mapping[str, object] = field(default_factory=dict)


class Interrupted(Exception):
    """A step that looks at the pause flag itself gives up its batch; the cursor stays at the last one."""


class SampleStep(Protocol[Content]):
    """What one kind of task does."""

    def batches(self, claim: Claim) -> Iterator[Batch[Content]]:
        """What is left to do from the claim's cursor on, worked out batch by batch. Writes no rows.

        Raises:
            Interrupted: a pause is wanted, and the batch takes too long to wait for its end.
        """

    def keep(self, connection: sa.Connection, claim: Claim, batch: Batch[Content]) -> Mapping[str, float]:
        """Write a batch in the caller's transaction; the counts to be added.

        It may be called again for a batch whose transaction was undone.
        """


Told = Callable[[int], None]
"""Is told how many turns are done in all."""


def run_task(
    store: SampleStore,
    task_id: str,
    step: SampleStep[Content],
    watch: PauseWatch | None = None,
    *,
    owner: str | None = None,
    lease_s: float = LEASE_S,
    told: Told | None = None,
) -> SampleTask:
    """Run a task until it is done or paused.

    Args:
        store: open, patient with a database that goes away (``patience_s``).
        task_id: a task that waits, failed or was paused, or whose owner died.
        step: what its kind does.
        watch: its pause flags; made here when None.
        owner: who runs it; this process when None.
        lease_s: seconds of silence after which others may take it.
        told: is told how far it is.

    Returns:
        The task as it stands then: SUCCESS or PAUSED.

    Raises:
        LeaseLost: another took it, or it was cancelled; what was committed stays.
        DataFlowError: it failed; it is FAILED, and goes on from its cursor when it is run again.
    """
    free_if_dead(store, task_id)
    claim = store.claim_task(task_id, owner or owner_name(), lease_s)
    watch = watch or PauseWatch(store, task_id, claim.task.dataset)
    at = claim.cursor
    with _beating(store, claim):
        try:
            if watch.flag() is None:
                for batch in step.batches(claim):
                    done = batch.rows + (at.processed_rows if at else 0)
                    after = CursorRecord(batch.file_id, batch.end, done, batch.detail)
                    _write(store, claim, step, batch, after)
                    at = after
                    if told is not None:
                        told(done)
                    if watch.flag() is not None:
                        break
                else:
                    store.finish_task(claim)
                    return store.sample_task(task_id)
            store.pause_task(claim, at)
        except LeaseLost:
            raise
        except Interrupted:
            store.pause_task(claim, at)
        except KeyboardInterrupt:
            # Given back, neither failed nor done. The cursor is what was committed, if anything was just now.
            store.pause_task(claim, None)
            raise
        except Exception as e:
            _fail(store, claim, e)
            raise
    return store.sample_task(task_id)


def free_if_dead(store: SampleStore, task_id: str) -> None:
    """Let a task whose owner was a process of this host that is gone be taken at once."""
    task = store.sample_task(task_id)
    if task.state == "RUNNING" and owner_is_gone(task.owner):
        try:
            store.beat(task_id, task.epoch, 0.0)
        except LeaseLost:
            return  # somebody was faster


def _write(
    store: SampleStore, claim: Claim, step: SampleStep[Content], batch: Batch[Content], at: CursorRecord
) -> None:
    """One batch, once; a database that went away in the middle is waited for while the store is patient."""
    until, pause = time.monotonic() + store.db.patience_s, _FIRST_PAUSE_S
    while True:
        try:
            with store.write() as connection:
                store.hold(connection, claim)
                counts = step.keep(connection, claim, batch)
                store.progress(connection, claim, at, counts)
        except CommitUnknown:
            if store.sample_cursor(claim.task.task_id) == at:
                return
        except DatabaseUnavailable as e:
            if time.monotonic() + pause > until:
                raise
            log.warning("the batch is written again: %s", e)
            time.sleep(pause)
            pause = min(_MOST_PAUSE_S, 2 * pause)
        else:
            return


def _fail(store: SampleStore, claim: Claim, error: Exception) -> None:
    try:
        store.fail_task(claim, error)
    except (LeaseLost, DatabaseUnavailable) as e:
        # What is raised to the caller is the fault itself; the lease runs out by itself.
        log.warning("sample task %s: its failure could not be written down: %s", claim.task.task_id, e)


@contextmanager
def _beating(store: SampleStore, claim: Claim) -> Iterator[None]:
    """Renew the lease from a thread while the block runs."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(claim.lease_s / 3):
            try:
                store.beat(claim.task.task_id, claim.epoch, claim.lease_s)
            except (DatabaseUnavailable, CommitUnknown):
                continue  # whoever writes under the lease meets the same fault and says so
            except LeaseLost:
                return  # as above: the next write is refused

    thread = threading.Thread(target=beat, name=f"lease-{claim.task.task_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
