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
from dataclasses import dataclass, field, replace
from functools import partial
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
Done = TypeVar("Done")


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
    at = _Place(claim.cursor)
    with beating(store, claim):
        try:
            if watch.flag() is None:
                for batch in _batches(store, claim, step, at):
                    done = batch.rows + (at.cursor.processed_rows if at.cursor else 0)
                    after = CursorRecord(batch.file_id, batch.end, done, batch.detail)
                    write_batch(store, claim, after, partial(step.keep, claim=claim, batch=batch))
                    at.cursor = after
                    if told is not None:
                        told(done)
                    if watch.flag() is not None:
                        break
                else:
                    give_back(store, claim, "SUCCESS", lambda: store.finish_task(claim))
                    return store.sample_task(task_id)
            give_back(store, claim, "PAUSED", lambda: store.pause_task(claim, at.cursor))
        except LeaseLost:
            raise
        except Interrupted:
            give_back(store, claim, "PAUSED", lambda: store.pause_task(claim, at.cursor))
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


def until_there(store: SampleStore, do: Callable[[], Done]) -> Done:
    """Do what may be done twice until the database has taken it, as long as the store is patient.

    Args:
        store: whose patience counts.
        do: reads, or writes so that a second time changes nothing.

    Raises:
        DatabaseUnavailable: it stayed away.
        CommitUnknown: it stayed away, and did not say whether it had committed.
    """
    wait = _Wait(store)
    while True:
        try:
            return do()
        except (DatabaseUnavailable, CommitUnknown) as e:
            wait.after(e)


def write_batch(
    store: SampleStore, claim: Claim, at: CursorRecord, write: Callable[[sa.Connection], Mapping[str, float]]
) -> None:
    """A batch, its counts and the cursor behind it in one transaction, once, whatever breaks.

    Args:
        store: open.
        claim: of the task.
        at: where the cursor stands behind the batch: nowhere else.
        write: writes the rows, and says what is to be counted; called again where it was undone.

    Raises:
        LeaseLost: another owns the task; nothing was written.
        EndlessRead: it reads what it writes; nothing was written.
        StateError: the database stayed away.
    """

    def once() -> None:
        try:
            with store.write() as connection:
                store.hold(connection, claim)
                store.progress(connection, claim, at, write(connection))
        except CommitUnknown:
            # Every batch moves the cursor, so that it tells whether this one was written.
            if store.sample_cursor(claim.task.task_id) != at:
                raise

    until_there(store, once)


def give_back(store: SampleStore, claim: Claim, state: str, move: Callable[[], None]) -> None:
    """End the claim, once; where it is not known whether that was written, the task's row tells.

    Args:
        store: open.
        claim: of the task.
        state: in which the task is then.
        move: ends it.

    Raises:
        LeaseLost: another owns the task; nothing was written.
        StateError: the database stayed away.
    """

    def once() -> None:
        try:
            move()
        except CommitUnknown:
            task = store.sample_task(claim.task.task_id)
            if (task.state, task.epoch) != (state, claim.epoch):
                raise

    until_there(store, once)


@dataclass(slots=True)
class _Place:
    """What is committed: the cursor behind the last batch."""

    cursor: CursorRecord | None


class _Wait:
    """How long a database that went away is waited for: as long as the store is patient, again and again.

    Args:
        store: whose patience counts.
    """

    def __init__(self, store: SampleStore) -> None:
        self._patience = store.db.patience_s
        self.over()

    def over(self) -> None:
        """It is there: the patience is whole again."""
        self._until: float | None = None
        self._pause = _FIRST_PAUSE_S

    def after(self, error: DatabaseUnavailable | CommitUnknown) -> None:
        """Wait a while.

        Raises:
            DatabaseUnavailable: there is no patience left.
        """
        now = time.monotonic()
        self._until = now + self._patience if self._until is None else self._until
        if now + self._pause > self._until:
            raise error
        log.warning("tried again: %s", error)
        time.sleep(self._pause)
        self._pause = min(_MOST_PAUSE_S, 2 * self._pause)


def _batches(
    store: SampleStore,
    claim: Claim,
    step: SampleStep[Content],
    at: _Place,
) -> Iterator[Batch[Content]]:
    """The step's batches; one whose reading met a database that went away begins anew at the cursor."""
    wait = _Wait(store)
    while True:
        try:
            for batch in step.batches(replace(claim, cursor=at.cursor)):
                wait.over()
                yield batch
        except (DatabaseUnavailable, CommitUnknown) as e:
            wait.after(e)
        else:
            return


def _fail(store: SampleStore, claim: Claim, error: Exception) -> None:
    try:
        store.fail_task(claim, error)
    except (LeaseLost, DatabaseUnavailable) as e:
        # What is raised to the caller is the fault itself; the lease runs out by itself.
        log.warning("sample task %s: its failure could not be written down: %s", claim.task.task_id, e)


@contextmanager
def beating(store: SampleStore, claim: Claim) -> Iterator[None]:
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
