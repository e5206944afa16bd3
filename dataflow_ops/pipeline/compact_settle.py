"""What becomes of a compacted version: current in the place of the one it holds, or left for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dataflow_ops.errors import VersionError
from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.pipeline.publish import Published
from dataflow_ops.pipeline.reporting import refresh_report
from dataflow_ops.pipeline.session import Session
from dataflow_ops.pipeline.settle import chosen_instead
from dataflow_ops.pipeline.version_states import BECAME_CURRENT, PUBLISHED, REJECTED, WAITING
from dataflow_ops.state import version_events as events

CURRENT: Final = "current"
WAITS: Final = "waits"
KEPT: Final = "kept"
"""Outcomes: it is the current version; another one is, and a person may approve it; it was current before and
another one is now, or a person decided that it is not to be."""


def settle_compaction(session: Session, made: Published, chain: Sequence[str]) -> tuple[str, str]:
    """Move the pointer from the version that was compacted, and from that one only.

    Doing it again changes nothing; killed anywhere, the next attempt goes on.

    Args:
        session: the compaction's run.
        made: its version.
        chain: versions that it was put together from, the lowest first.

    Returns:
        ``(outcome, why it is not current)``.
    """
    state, dataset, run_id = session.state, session.settings.dataset.id, session.context.run_id
    name, old = made.version_id, chain[-1]
    note = f"from {chain[0]} to {old}, {len(chain)} versions"
    state.add_version_event(dataset, name, events.COMPACTED, run_id, note)
    now = state.current(dataset)
    if now is None or now.version_id != name:
        if made.before == REJECTED:
            return KEPT, "somebody rejected this very version before"
        choice = chosen_instead(session, made)
        if choice is not None:
            told = f": {choice.note}" if choice.note else ""
            return KEPT, f"{choice.who} chose {choice.version_id} instead of it{told}"
        if not _moved(session, made, old):
            now = state.current(dataset)
            other = "no version" if now is None else now.version_id
            why = f"{other} is current now, and not {old}, whose documents it holds"
            if made.before == PUBLISHED:
                return KEPT, why
            state.add_version_event(dataset, name, events.PUBLISHED, run_id, why)
            return WAITS, why
    _mark(session, name)
    # Written each time: a kill between the pointer and its mirror must not leave them apart.
    mirror = {"dataset": dataset, "version": name, "manifest": made.manifest_uri}
    session.chunks.blobs.put(f"versions/current_{dataset}.json", canonical_json(mirror), replace=True)
    replaced = next(v for v in state.versions(dataset) if v.version_id == old)
    refresh_report(session.chunks.blobs, replaced, note=session.driver.reporter.note)
    return CURRENT, ""


def _moved(session: Session, made: Published, old: str) -> bool:
    """Take the old version's place, in one transaction with the event that says so; False: it has none."""
    state, dataset, run_id = session.state, session.settings.dataset.id, session.context.run_id
    name = made.version_id
    said = any(
        (event.version_id, event.action) == (name, events.PUBLISHED)
        for event in state.version_events(dataset, limit=100_000)
    )
    action, note = (events.PROMOTED, "") if said else (events.PUBLISHED, BECAME_CURRENT)
    session.context.hooks.reached("before pointer publish")
    try:
        state.set_current(dataset, name, run_id, action, note, instead_of=old)
    except VersionError:
        now = state.current(dataset)
        if now is not None and now.version_id in (name, old):
            raise  # something else is wrong with it
        return False
    session.context.hooks.reached("after pointer publish")
    return True


def _mark(session: Session, name: str) -> None:
    dataset = session.settings.dataset.id
    if any(v.version_id == name and v.state == WAITING for v in session.state.versions(dataset)):
        session.state.set_version_state(dataset, name, PUBLISHED)
