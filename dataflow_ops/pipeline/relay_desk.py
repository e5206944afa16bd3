"""What a person asks about the relay: how far it is, which deliveries are dead; trying again, giving up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.webhooks import Webhook, load_webhooks
from dataflow_ops.state.deliveries import DELIVERY_STATES
from dataflow_ops.state.delivery_desk import Backlog
from dataflow_ops.state.store import StateStore

LATE_S: Final = 900.0
"""An event that waits longer than this is told by ``doctor``."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An endpoint, what it waits for, and where it lies; ``url`` is ``None`` where no file names it."""

    backlog: Backlog
    url: str | None

    @property
    def is_well(self) -> bool:
        """Whether nothing waits for long, and nothing for a person."""
        return not self.backlog.dead and (self.backlog.oldest_s or 0.0) <= LATE_S

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        fields = asdict(self.backlog) | {"last_sent_at": _when(self.backlog.last_sent_at)}
        return {**fields, "url": self.url, "configured": self.url is not None}

    @property
    def told(self) -> str:
        """For a person."""
        one = self.backlog
        parts = [f"{one.waiting:,} waiting"]
        if one.oldest_s is not None:
            parts.append(f"the oldest for {span(one.oldest_s)}")
        parts.append(f"{one.dead:,} dead")
        if one.waiting and self.url is None:
            parts.append(
                f"no file names it: name it again, or `dataflow relay drop --endpoint {one.endpoint}`"
            )
        elif one.last_error and one.waiting:
            parts.append(one.last_error)
        elif (one.oldest_s or 0.0) > LATE_S:
            parts.append("is a relay running? `dataflow relay run`")
        if one.dead:
            parts.append("`dataflow relay list` shows them")
        return "; ".join(parts)


def standings(home_path: Path, environment: Mapping[str, str]) -> list[Standing]:
    """All endpoints that are named now, or were sent to before; by name.

    Raises:
        ConfigError: no home here, or its file can't be used.
    """
    home = open_home(home_path, create=False)
    webhooks = load_webhooks(home.path, environment)
    with StateStore(home.state_url) as state:
        return standings_of(state, webhooks)


def standings_of(state: StateStore, webhooks: Sequence[Webhook]) -> list[Standing]:
    """:func:`standings` of an opened store."""
    urls = {one.name: one.url for one in webhooks}
    return [
        Standing(one, urls.get(one.endpoint)) for one in state.backlog([one.interest for one in webhooks])
    ]


def list_deliveries(
    home_path: Path, state: str | None, endpoint: str | None, limit: int
) -> list[dict[str, Any]]:
    """Deliveries, the oldest event first; times as ISO texts.

    Raises:
        ConfigError: no such state, or no home here.
    """
    if state is not None and state not in DELIVERY_STATES:
        raise ConfigError(f"--state {state!r}: use one of {', '.join(DELIVERY_STATES)}")
    with StateStore(open_home(home_path, create=False).state_url) as store:
        found = store.deliveries(state, endpoint, limit)
    times = ("next_attempt_at", "created_at", "updated_at")
    return [
        {
            "id": f"{one.event_id}/{one.endpoint}",
            **asdict(one),
            **{name: _when(getattr(one, name)) for name in times},
        }
        for one in found
    ]


def change_deliveries(
    home_path: Path,
    action: Literal["retry", "drop"],
    ids: Sequence[str],
    every: bool = False,
    endpoint: str | None = None,
) -> int:
    """Try deliveries anew, or give them up; return how many.

    Args:
        home_path: an existing home.
        action: what to do.
        ids: ``EVENT`` (to all endpoints) or ``EVENT/ENDPOINT``, as listed.
        every: all dead ones (retry); all dead and waiting ones of the endpoint (drop).
        endpoint: only to this one.

    Raises:
        ConfigError: neither ids nor all of something, or an id that is none.
    """
    wanted = [_parsed(one, endpoint) for one in ids]
    if bool(wanted) == every:
        raise ConfigError(f"relay {action}: name ids as `dataflow relay list` shows them, or all: see --help")
    with StateStore(open_home(home_path, create=False).state_url) as state:
        change = state.retry_deliveries if action == "retry" else state.drop_deliveries
        if every:
            return change(None, endpoint)
        return sum(change([event], name) for event, name in wanted)


def span(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3 h``, ``5 days``."""
    for size, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def _parsed(text: str, endpoint: str | None) -> tuple[int, str | None]:
    event, slash, name = text.partition("/")
    if not event.isascii() or not event.isdigit() or len(event) > 18 or (slash and not name):
        raise ConfigError(f"{text!r} is no delivery; `dataflow relay list` shows their ids, such as 17/desk")
    if slash and endpoint is not None and endpoint != name:
        raise ConfigError(f"{text!r} is no delivery to {endpoint}")
    return int(event), name or endpoint


def _when(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
