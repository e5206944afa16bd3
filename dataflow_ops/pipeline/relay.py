"""The relay: sends the events of the outbox to the outside systems that ``webhooks.yaml`` names.

At least once, in order for each subject, by any number of relays at a time.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from dataflow_ops.engine.owner import owner_is_gone, owner_name
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.relay_lane import Lane, Tally
from dataflow_ops.pipeline.webhooks import Webhook, file_of, load_webhooks
from dataflow_ops.state.store import StateStore

_TOLD_EVERY_S: Final = 0.5
_FILE_EVERY_S: Final = 5.0


@dataclass(slots=True)
class Relay:
    """A relay of one home.

    Attributes:
        home: an opened home.
        environment: where the file and the secrets are named.
        once: end when nothing is due any more.
        log: told what a person should know.
        progress: told twice a second what was done so far, by endpoint.
        tallies: what was done so far, by endpoint.
    """

    home: Home
    environment: Mapping[str, str]
    once: bool = False
    log: Callable[[str], Any] = print
    progress: Callable[[Mapping[str, Tally]], Any] = lambda tallies: None
    tallies: dict[str, Tally] = field(default_factory=dict)

    def run(self, patience_s: float = 0.0) -> None:
        """Send until SIGTERM or Ctrl-C; with ``once`` until nothing is due.

        A changed file is taken up by itself; one that can't be used is told, and the webhooks stay as they
        were.

        Raises:
            ConfigError: no webhooks, or a secret that is not set.
            StateError: the database is away.
        """
        webhooks = self._load()
        if not webhooks:
            raise ConfigError(
                f"{file_of(self.home.path, self.environment)}: names no webhooks;"
                " docs/webhooks.md has an example"
            )
        with StateStore(self.home.state_url, patience_s) as state:
            free_left_behind(state, self.log)
            try:
                asyncio.run(self._serve(state, webhooks))
            except ExceptionGroup as e:  # of the lanes; the first fault ended the others
                raise e.exceptions[0] from e

    async def _serve(self, state: StateStore, webhooks: Sequence[tuple[Webhook, bytes]]) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, ended.set)
        most = sum(one.concurrency for one, _ in webhooks)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=most)
        async with httpx.AsyncClient(limits=limits) as client:
            while True:
                again = await self._send(state, client, webhooks, ended)
                if again is None:
                    return
                webhooks = again

    async def _send(
        self,
        state: StateStore,
        client: httpx.AsyncClient,
        webhooks: Sequence[tuple[Webhook, bytes]],
        ended: asyncio.Event,
    ) -> Sequence[tuple[Webhook, bytes]] | None:
        """Run the lanes until the end, or until the file says something else: that is returned."""
        stop = asyncio.Event()
        owner = owner_name()
        lanes = [
            Lane(state, client, one, secret, owner, stop, once=self.once, log=self.log)
            for one, secret in webhooks
        ]
        for (one, _), lane in zip(webhooks, lanes, strict=True):
            lane.tally = self.tallies.setdefault(one.name, lane.tally)
        names = ", ".join(f"{one.name} ({', '.join(one.topics)})" for one, _ in webhooks)
        self.log(f"relaying to {names}")
        changed: Sequence[tuple[Webhook, bytes]] | None = None
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(lane.run()) for lane in lanes]
            stamp, look_at = self._stamp(), asyncio.get_running_loop().time() + _FILE_EVERY_S
            while not all(task.done() for task in running):
                self.progress(self.tallies)
                if ended.is_set():
                    stop.set()
                await _first(running, ended, _TOLD_EVERY_S)
                now = asyncio.get_running_loop().time()
                if now >= look_at and not stop.is_set() and not self.once:
                    look_at = now + _FILE_EVERY_S
                    if self._stamp() != stamp:
                        stamp = self._stamp()
                        changed = self._changed(webhooks)
                        if changed is not None:
                            stop.set()
        self.progress(self.tallies)
        return None if ended.is_set() else changed

    def _load(self) -> list[tuple[Webhook, bytes]]:
        found = load_webhooks(self.home.path, self.environment)
        return [(one, one.secret(self.environment)) for one in found]

    def _changed(self, now: Sequence[tuple[Webhook, bytes]]) -> Sequence[tuple[Webhook, bytes]] | None:
        try:
            found = self._load()
        except ConfigError as e:
            self.log(f"{e}; the relay goes on with the webhooks that it had")
            return None
        if not found:
            self.log("the file names no webhooks any more; the relay goes on with those that it had")
            return None
        return found if found != list(now) else None

    def _stamp(self) -> tuple[int, int, int] | None:
        path: Path = file_of(self.home.path, self.environment)
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def free_left_behind(state: StateStore, log: Callable[[str], Any]) -> None:
    """End the claims of relays of this host that were killed, so that nobody waits for them."""
    for owner in state.delivery_owners():
        if owner_is_gone(owner):
            number = state.free_deliveries(owner)
            log(f"{number} event(s) were in flight when the relay {owner} was killed: they are sent again")


async def _first(running: Sequence[asyncio.Task[None]], ended: asyncio.Event, seconds: float) -> None:
    """Wait until a lane has ended, the relay is to end, or the time is over."""
    waiter = asyncio.create_task(ended.wait()) if not ended.is_set() else None
    waits = {task for task in running if not task.done()}
    await asyncio.wait(
        waits if waiter is None else {*waits, waiter},
        timeout=seconds,
        return_when=asyncio.FIRST_COMPLETED,
    )
    if waiter is not None:
        waiter.cancel()
