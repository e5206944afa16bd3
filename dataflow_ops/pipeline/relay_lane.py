"""One endpoint's deliveries: claimed, sent, recorded, until told to stop.

A slot is free again only once its outcome is recorded. So what a killed relay may send again is what was in
flight, at most as many events as the endpoint's ``concurrency``.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx

from dataflow_ops.clients.webhook import Answer, Target, message_of, send
from dataflow_ops.errors import CommitUnknown, DatabaseUnavailable, StateError
from dataflow_ops.pipeline.webhooks import Webhook
from dataflow_ops.state.deliveries import DEAD, PENDING, SENT, Due, Outcome
from dataflow_ops.state.store import StateStore

FIRST_WAIT_S: Final = 1.0
MOST_WAIT_S: Final = 1800.0
"""Longest pause between two tries of an event, seconds."""
MOST_AWAY_S: Final = 30.0
"""Longest pause of an endpoint that can't be reached, seconds: so long it may be back unnoticed."""
LOOK_EVERY_S: Final = 1.0
_GRACE_S: Final = 30.0
"""How much longer than a request a claim holds: time to record what became of it."""
_MARGIN_S: Final = 5.0
_LATE_S: Final = 60.0
"""A transaction is thought to be over this long after it wrote an event; see :data:`_SWEEP_S`."""
_SWEEP_S: Final = 600.0
"""How often all kept events are looked through, for one whose transaction took longer than that."""
_STOP_S: Final = 10.0
_MOST_LINES: Final = 50

T = TypeVar("T")


@dataclass(slots=True)
class Tally:
    """What a lane did so far.

    Attributes:
        sent: events that were accepted.
        failed: tries that failed and are repeated.
        dead: events that were refused or given up.
        trouble: why nothing is sent at present; empty where all is well.
    """

    sent: int = 0
    failed: int = 0
    dead: int = 0
    trouble: str = ""

    @property
    def told(self) -> str:
        """For a person."""
        done = f"{self.sent:,} sent, {self.failed:,} failed and repeated, {self.dead:,} dead"
        return f"{done} ({self.trouble})" if self.trouble else done


def back_off(failures: int, most_s: float, draw: Callable[[], float]) -> float:
    """Seconds until the next try: doubled with each failure up to a bound, less up to half of it by chance.

    Args:
        failures: in a row, from 1.
        most_s: the bound.
        draw: a number from [0, 1).
    """
    whole = min(most_s, FIRST_WAIT_S * 2.0 ** min(failures - 1, 30))
    return whole * (1.0 - draw() / 2.0)


class Lane:
    """Sends the events of one endpoint.

    Args:
        state: shared with the other lanes.
        client: shared, too.
        webhook: the endpoint.
        secret: key of its signatures.
        owner: who claims; one name for each process.
        stop: set when the relay is to end.
        once: end when nothing is due any more.
        log: told what a person should know.
        clock: seconds since 1970 (UTC).
        draw: a number from [0, 1), for the pauses.
    """

    def __init__(
        self,
        state: StateStore,
        client: httpx.AsyncClient,
        webhook: Webhook,
        secret: bytes,
        owner: str,
        stop: asyncio.Event,
        *,
        once: bool = False,
        log: Callable[[str], Any] = print,
        clock: Callable[[], float] = time.time,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.tally = Tally()
        self._state = state
        self._client = client
        self._webhook = webhook
        self._target = Target(webhook.url, secret, webhook.timeout_s)
        self._owner = owner
        self._stop = stop
        self._once = once
        self._log = log
        self._clock = clock
        self._draw = draw
        self._flying: dict[asyncio.Task[Answer], Due] = {}
        self._outcomes: list[Outcome] = []
        self._aways = 0
        self._not_before = 0.0
        self._look_at = self._sweep_at = 0.0
        self._settled = 0
        self._page: int | None = None
        self._minute_ends, self._said = 0.0, 0

    async def run(self) -> None:
        """Send until stopped; with ``once`` until nothing is due.

        Raises:
            StateError: the database is away, and the relay is to end; what was accepted last may not be
                recorded, and is sent again.
        """
        stopped = asyncio.create_task(self._stop.wait())
        try:
            while not self._stop.is_set():
                more = await self._hand_out()
                due = await self._turn()
                if self._once and not (more or due or self._flying):
                    return
                await self._wait(stopped, at_once=more)
        finally:
            stopped.cancel()
            await self._land()

    async def _hand_out(self) -> bool:
        """Make deliveries of new events, a page at a time; return whether there are more."""
        now = time.monotonic()
        if self._page is None and now < self._look_at:
            return False
        if self._page is None:
            if now >= self._sweep_at:
                self._settled, self._sweep_at = 0, now + _SWEEP_S
            self._page = self._settled
        _, self._page = await self._ask(self._state.hand_out, self._webhook.interest, self._page)
        if self._page is None:
            self._settled = await self._ask(self._state.settled_event, self._settled, _LATE_S)
            self._look_at = time.monotonic() + LOOK_EVERY_S
        return self._page is not None

    async def _turn(self) -> list[Due]:
        """Record what came back, claim what comes next, and send it."""
        now = time.monotonic()
        held = now < self._not_before
        # Whoever was away is asked with one event first.
        most = 0 if held else 1 if self._aways else self._webhook.concurrency
        room = most - len(self._flying)
        if room <= 0 and not self._outcomes:
            return []
        lease_s = self._webhook.timeout_s + _GRACE_S
        due = await self._ask(
            self._state.exchange, self._webhook.name, self._owner, tuple(self._outcomes), room, lease_s
        )
        self._outcomes.clear()
        if time.monotonic() - now > _GRACE_S - _MARGIN_S:
            # The claim could end while it is sent, and another relay would send it at the same time.
            return []
        for one in due:
            event = one.event
            message = message_of(event.id, event.topic, event.subject, event.payload, event.created_at)
            sending = send(self._client, self._target, message, self._clock)
            self._flying[asyncio.create_task(sending)] = one
        return due

    async def _wait(self, stopped: asyncio.Task[bool], *, at_once: bool) -> None:
        """Until an answer comes, it is time to look for new events, or the relay is to end."""
        pause = 0.0 if at_once else max(0.0, min(LOOK_EVERY_S, self._look_at - time.monotonic()))
        done, _ = await asyncio.wait(
            {*self._flying, stopped}, timeout=pause, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            if task is not stopped:
                self._landed(task)  # type: ignore[arg-type]

    def _landed(self, task: asyncio.Task[Answer]) -> None:
        due = self._flying.pop(task)
        self._outcomes.append(self._judged(due, task.result()))

    def _judged(self, due: Due, answer: Answer) -> Outcome:
        event, name = due.event, self._webhook.name
        if answer.verdict not in ("away", "busy"):
            if self._aways:
                self._log(f"{name}: is back")
            self._aways, self.tally.trouble = 0, ""
        if answer.verdict == "accepted":
            self.tally.sent += 1
            return Outcome(event.id, SENT)
        if answer.verdict == "refused":
            return self._dead(due, answer.told)
        if answer.verdict in ("away", "busy"):
            self.tally.failed += 1
            wait_s = self._hold(answer)
            return Outcome(event.id, PENDING, answer.told, wait_s, counted=False)
        tries = due.attempts + 1
        if tries >= self._webhook.max_attempts:
            return self._dead(due, f"given up after {tries} tries; the last one {answer.told}")
        self.tally.failed += 1
        wait_s = max(back_off(tries, MOST_WAIT_S, self._draw), answer.wait_s or 0.0)
        self._say(f"{event.topic} of {event.subject} {answer.told}; tried again in {wait_s:.0f} s")
        return Outcome(event.id, PENDING, answer.told, wait_s)

    def _dead(self, due: Due, why: str) -> Outcome:
        self.tally.dead += 1
        event = due.event
        self._say(
            f"event {event.id} ({event.topic} of {event.subject}) is dead: {why};"
            f" `dataflow relay retry {event.id}` tries it again"
        )
        return Outcome(event.id, DEAD, why)

    def _hold(self, answer: Answer) -> float:
        """Leave the whole endpoint alone for a while; return how long, in seconds."""
        now = time.monotonic()
        if now < self._not_before and answer.wait_s is None:
            return self._not_before - now  # several that were in flight tell the same
        self._aways += 1
        wait_s = back_off(self._aways, MOST_AWAY_S, self._draw) if answer.wait_s is None else answer.wait_s
        self._not_before = max(self._not_before, now + wait_s)
        self.tally.trouble = answer.told
        self._log(f"{self._webhook.name}: {answer.told}; asked again in {wait_s:.0f} s")
        return wait_s

    def _say(self, line: str) -> None:
        """Tell of one event, unless many were told of within the last minute."""
        now = time.monotonic()
        if now >= self._minute_ends:
            if self._said > _MOST_LINES:
                self._log(f"{self._webhook.name}: {self._said - _MOST_LINES:,} more like these")
            self._minute_ends, self._said = now + 60.0, 0
        self._said += 1
        if self._said <= _MOST_LINES:
            self._log(f"{self._webhook.name}: {line}")

    async def _land(self) -> None:
        """Wait for what is in flight, but not for long, and record all that is known."""
        if self._flying:
            await asyncio.wait(self._flying, timeout=_STOP_S)
        for task, due in list(self._flying.items()):
            if task.done() and not task.cancelled() and task.exception() is None:
                self._landed(task)
                continue
            task.cancel()
            self._outcomes.append(
                Outcome(due.event.id, PENDING, "the relay ended before the answer came", counted=True)
            )
        self._flying.clear()
        if not self._outcomes:
            return
        try:
            await asyncio.to_thread(
                self._state.exchange, self._webhook.name, self._owner, tuple(self._outcomes), 0, 0.0
            )
        except StateError:
            known = sum(one.state == SENT for one in self._outcomes)
            self._log(
                f"{self._webhook.name}: {known} accepted event(s) can't be recorded: they are sent again"
            )
            raise
        self._outcomes.clear()

    async def _ask(self, call: Callable[..., T], *arguments: Any) -> T:
        """Ask the state from a thread; while the database is away, again and again.

        All that is asked here may be asked twice.
        """
        failures = 0
        while True:
            try:
                return await asyncio.to_thread(call, *arguments)
            except (DatabaseUnavailable, CommitUnknown) as e:
                if self._once or self._stop.is_set():
                    raise
                failures += 1
                wait_s = back_off(failures, MOST_AWAY_S, self._draw)
                why = " ".join(str(e).split())
                self._log(f"{self._webhook.name}: {why}; asked again in {wait_s:.0f} s")
                try:
                    await asyncio.wait_for(self._stop.wait(), wait_s)
                except TimeoutError:
                    continue
