"""The work of one claim: batches of ten, as many calls at once as allowed, the cursor behind whole batches.

Threads ask and make each answer durable; this thread reads batches, moves the cursor, keeps the lease, looks
at the pause flag and says how far it is. While the oldest batch waits for a slow answer the next ones are
begun, but the cursor passes them only in order.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol

from dataflow_ops.control.pause import Flag
from dataflow_ops.errors import CommitUnknown, DatabaseUnavailable, DataFlowError
from dataflow_ops.samples.augment.batches import Batch, Batches
from dataflow_ops.samples.augment.calls import Ask, Outcome
from dataflow_ops.samples.augment.tally import Tally
from dataflow_ops.samples.running import until_there, write_batch
from dataflow_ops.state.samples.failures import requeue_keys
from dataflow_ops.state.samples.generations import spent
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore

log = logging.getLogger(__name__)
_TICK_S: Final = 0.2
_SHOWN_ERRORS: Final = 3
_MOST_OPEN: Final = 256
"""Batches begun behind the oldest one that has not ended."""


class BatchFailed(DataFlowError):
    """No question of a batch was answered, or the endpoint refuses all: the task fails; see the errors."""


@dataclass(frozen=True, slots=True)
class Pause:
    """What stops a task before its end.

    Attributes:
        by: a pause flag, the budget, or a signal (Ctrl-C, SIGTERM).
        why: for people.
    """

    by: Literal["flag", "budget", "interrupt"]
    why: str


class Watch(Protocol):
    """Tells whether somebody wants a pause: :class:`~dataflow_ops.control.pause.PauseWatch`."""

    def flag(self) -> Flag | None:
        """The flag that holds, or None."""


class Hears(Protocol):
    """Hears how far a task is."""

    def moved(self, tally: Tally) -> None:
        """Something ended, or time went by."""

    def note(self, message: str) -> None:
        """Something to read."""


@dataclass(slots=True)
class _Open:
    """A batch under way."""

    batch: Batch
    left: int
    outcomes: list[Outcome] = field(default_factory=list)


class AugmentStep:
    """Asks all that is left of a task.

    Args:
        store: with the patience of work that is under way.
        claim: of the task.
        batches: what is to be asked.
        ask: asks one question and makes its end durable; called by threads.
        tally: so far.
        watch: of pause flags.
        stop: that ``ask`` heeds.
        concurrency: most questions at once.
        hears: of the progress.
    """

    def __init__(
        self,
        store: SampleStore,
        claim: Claim,
        batches: Batches,
        ask: Ask,
        tally: Tally,
        watch: Watch,
        stop: threading.Event,
        concurrency: int,
        hears: Hears,
    ) -> None:
        self._store = store
        self._claim = claim
        self._batches: Iterator[Batch] = iter(batches)
        self._ask = ask
        self._tally = tally
        self._watch = watch
        self._stop = stop
        self._concurrency = concurrency
        self._hears = hears
        self._open: deque[_Open] = deque()
        self._running: dict[Future[Outcome], _Open] = {}
        self._beat_at = time.monotonic()
        self._exhausted = False
        self._refused = ""
        self.at = claim.cursor
        """The cursor as it is recorded."""
        self.pause: Pause | None = None
        """Why it stopped before its end; None where it did not."""

    def run(self) -> None:
        """Ask until all is done, or until somebody or the budget stops it (:attr:`pause`).

        Raises:
            BatchFailed: the task has failed; what failed for the endpoint's sake is put back.
            LeaseLost: somebody else owns the task now.
            StateError: the database stayed away.
        """
        with ThreadPoolExecutor(self._concurrency, "ask") as pool:
            try:
                self._drive(pool)
            except KeyboardInterrupt:
                self._pause(Pause("interrupt", "interrupted"))
                self._drain()
            except BaseException:
                self._stop.set()
                raise

    def _drive(self, pool: ThreadPoolExecutor) -> None:
        while True:
            flag = self._watch.flag()
            if flag is not None:
                self._pause(Pause("flag", told_of(flag)))
            if self._refused:
                self._wait_for_all()
                self._fail([], f"the endpoint refuses all questions: {self._refused}")
            self._close()
            more = self._begin(pool)
            if self._running and not more:
                self._wait()
            elif self._stop.is_set() or (self._exhausted and not self._open):
                return
            self._tend()

    def _begin(self, pool: ThreadPoolExecutor) -> bool:
        """Begin batches until as many questions are under way as may be.

        Returns:
            Whether there is more to begin at once: a batch in which all was known has nothing to wait for.
        """
        while len(self._running) < self._concurrency and len(self._open) < _MOST_OPEN:
            if self._stop.is_set() or self._exhausted:
                return False
            batch = next(self._batches, None)
            if batch is None:
                self._exhausted = True
                return False
            begun = _Open(batch, len(batch.requests))
            self._open.append(begun)
            for request in batch.requests:
                self._running[pool.submit(self._ask, request)] = begun
            if not batch.requests:
                return True
        return False

    def _wait(self) -> None:
        """Until a question has ended, or a moment has gone by."""
        done, _ = wait(self._running, timeout=_TICK_S, return_when=FIRST_COMPLETED)
        for future in done:
            begun = self._running.pop(future)
            outcome = future.result()
            begun.outcomes.append(outcome)
            self._tally.add(outcome)
            if outcome.how == "budget":
                self._pause(Pause("budget", outcome.message))
            if outcome.final:
                self._refused = outcome.message
            if outcome.how in ("answered", "failed"):
                begun.left -= 1

    def _tend(self) -> None:
        """What is due now and then: the lease, and a word to whoever watches."""
        if time.monotonic() - self._beat_at > self._claim.lease_s / 3:
            self._beat()
        self._hears.moved(self._tally)

    def _drain(self) -> None:
        """Wait for the questions that are out: their answers are paid for."""
        if self._running:
            self._hears.note(f"waiting for answers that are under way: {len(self._running)}")
        self._wait_for_all()
        until_there(self._store, self._reread)

    def _reread(self) -> None:
        """An interruption may have come between a commit and the counting of it: the database knows."""
        task_id = self._claim.task.task_id
        with self._store.read() as connection:
            sums = spent(connection, task_id)
        self._tally.reread(sums, self._store.sample_task(task_id).counts)
        self.at = self._store.sample_cursor(task_id)

    def _wait_for_all(self) -> None:
        while self._running:
            self._wait()
            self._tend()

    def _pause(self, pause: Pause) -> None:
        self.pause = self.pause or pause
        self._stop.set()

    def _beat(self) -> None:
        try:
            self._store.beat(self._claim.task.task_id, self._claim.epoch, self._claim.lease_s)
        except (DatabaseUnavailable, CommitUnknown) as e:
            # Whoever writes next waits for it; the epoch says whether the task is still ours.
            log.warning("the lease was not renewed: %s", e)
        self._beat_at = time.monotonic()

    def _close(self) -> None:
        """Move the cursor over the oldest batches that have ended."""
        while self._open and self._open[0].left == 0:
            ended = self._open.popleft()
            fault = _fault(ended)
            if fault:
                self._fail(ended.outcomes, fault)
            self._record(ended.batch)

    def _record(self, batch: Batch) -> None:
        self._tally.reuse(self._claim.task.task_id, batch.known.values())
        # The cursor tells whether a batch was written; a batch of failures put back moves its number alone.
        number = self.at.detail.get("batch", 0) if self.at is not None else 0
        numbered = (number if isinstance(number, int) else 0) + 1
        after = replace(batch.after, detail={**batch.after.detail, "batch": numbered})
        write_batch(self._store, self._claim, after, lambda _: self._tally.difference())
        self.at = after
        self._tally.recorded_now()
        self._beat_at = time.monotonic()

    def _fail(self, ended: list[Outcome], fault: str) -> None:
        """Let questions under way end, put back what is the endpoint's fault, and say so.

        Raises:
            BatchFailed: always.
        """
        self._stop.set()
        self._wait_for_all()
        outcomes = [*ended, *(outcome for other in self._open for outcome in other.outcomes)]
        keys = [o.request.key for o in outcomes if o.how == "failed" and o.about_all]
        until_there(self._store, lambda: self._requeue(keys))
        back = f"; {len(keys)} that are the endpoint's fault are asked again by the next run" if keys else ""
        raise BatchFailed(f"{fault}{back}")

    def _requeue(self, keys: list[str]) -> None:
        with self._store.write() as connection:
            requeue_keys(connection, self._store.db, keys)


def told_of(flag: Flag) -> str:
    """A pause for people: by whom, what it covers, why."""
    covers = {"dataset": f", with all of {flag.target}", "all": ", with everything"}.get(flag.scope, "")
    return f"paused by {flag.who or 'somebody'}{covers}{': ' if flag.why else ''}{flag.why}"


def _fault(ended: _Open) -> str:
    """Why a batch that has ended fails its task; empty where it does not."""
    failed = [outcome for outcome in ended.outcomes if outcome.how == "failed"]
    succeeded = len(ended.outcomes) - len(failed)
    succeeded += sum(one.how == "answered" or one.state == "SOLVED" for one in ended.batch.known.values())
    if not failed or succeeded:
        return ""
    kinds: dict[str, list[Outcome]] = {}
    for outcome in failed:
        kinds.setdefault(outcome.error, []).append(outcome)
    told = [f"{len(some)} × {name}: {some[0].message}" for name, some in kinds.items()]
    more = f" and {len(told) - _SHOWN_ERRORS} kinds more" if len(told) > _SHOWN_ERRORS else ""
    return f"no answer in a batch of {len(ended.outcomes)}: {'; '.join(told[:_SHOWN_ERRORS])}{more}"
