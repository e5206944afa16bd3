"""Which version came before which, by what was decided and not by dates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dataflow_ops.pipeline.version_states import PUBLISHED, became
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.version_events import VersionEvent


@dataclass(frozen=True, slots=True)
class Trail:
    """What the history of a data set says about the order of its versions.

    Attributes:
        before: version -> the one that was current before it became so; of one that never was, the one that
            was current when it was made; of an increment the one before it. Left out where there was none.
            None of them was rejected, cleared away or left.
        left: version -> the decision by which somebody went back from it to an older one, and which nothing
            has undone since.
    """

    before: Mapping[str, str]
    left: Mapping[str, VersionEvent]


def trail(versions: Sequence[VersionRecord], history: Iterable[VersionEvent]) -> Trail:
    """Follow the decisions, the oldest first.

    Args:
        versions: of the data set.
        history: of the data set, newest first, as the state store gives it.

    Returns:
        For each version, the one that came before it, and who left it.
    """
    known = {version.version_id: version for version in versions}
    line: list[str] = []
    made_on: dict[str, list[str]] = {}
    left: dict[str, VersionEvent] = {}
    for event in reversed(list(history)):
        name = event.version_id
        if event.action == events.PUBLISHED:
            made_on.setdefault(name, list(line))
        if name not in known or not _moves(event, known[name]):
            continue
        now = line[-1] if line else ""
        if event.action == events.ROLLED_BACK and now not in ("", name) and _is_back(known, line, left, name):
            left[now] = event
            # Whatever came after it is passed over as well: the line goes on from here.
            line = line[: line.index(name)] if name in line else _older(known, line, name)
        line = [*(one for one in line if one != name), name]
        left.pop(name, None)
    whole = {
        name for name, one in known.items() if one.state == PUBLISHED and not one.is_increment
    } - left.keys()
    days = [one.version_id for one in versions if one.is_increment and one.state == PUBLISHED]
    found = {}
    for name, version in known.items():
        if version.is_increment:
            earlier = [one for one in days if known[one].created_at < version.created_at]
            earlier.sort(key=lambda one: known[one].created_at)
        else:
            line_before = line[: line.index(name)] if name in line else made_on.get(name, [])
            earlier = [one for one in line_before if one in whole and one != name]
        last = earlier[-1] if earlier else None
        if last is not None:
            found[name] = last
    return Trail(found, left)


def _moves(event: VersionEvent, version: VersionRecord) -> bool:
    """Whether the event made the version current."""
    if version.is_increment:
        return False
    if event.action == events.PUBLISHED:
        return became(event.note) == "current"
    return event.action in (events.PROMOTED, events.APPROVED, events.ROLLED_BACK)


def _is_back(
    known: Mapping[str, VersionRecord], line: Sequence[str], left: Mapping[str, VersionEvent], name: str
) -> bool:
    """Whether a version lies behind the present one. To one that was left it is a way forward again."""
    if name in line or name in left:
        return name in line
    return known[name].created_at < known[line[-1]].created_at


def _older(known: Mapping[str, VersionRecord], line: Sequence[str], name: str) -> list[str]:
    """Of those that were current, the ones older than a version."""
    return [one for one in line if known[one].created_at < known[name].created_at]
