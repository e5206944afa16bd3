"""What becomes of a version that a run has made: current, an increment, or held until a person decides."""

from __future__ import annotations

from collections.abc import Sequence

from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.pipeline.overtaken_days import supersede
from dataflow_ops.pipeline.publish import Published
from dataflow_ops.pipeline.reporting import refresh_report
from dataflow_ops.pipeline.session import Session
from dataflow_ops.pipeline.version_states import (
    BECAME_CURRENT,
    INCREMENT,
    INCREMENT_OF,
    PUBLISHED,
    REJECTED,
    WAITING,
    WITH_SET,
)
from dataflow_ops.state import version_events as events
from dataflow_ops.state.version_events import VersionEvent

CURRENT = "current"
WAITS = "waits"
HELD = "held"
REFUSED = "refused"
KEPT = "kept"
"""Outcomes, beside :data:`INCREMENT`: waits for reasons of its own; held, as the run was not to promote; kept
as it was, since a person chose another version instead of it."""


def settle(session: Session, made: Published, promote: bool, waits: Sequence[str]) -> str:
    """Move the pointer or leave it, and write down what was decided; doing it again changes nothing.

    Args:
        session: the run.
        made: the version.
        promote: whether it may become current (an increment: be published) by itself.
        waits: why a person must look first.

    Returns:
        ``current``, ``incremental`` (published as an increment), ``waits``, ``held``, ``refused`` (a person
        rejected this very version before) or ``kept`` (a person chose another one instead of it).
    """
    state, dataset, run_id = session.state, session.settings.dataset.id, session.context.run_id
    now = state.current(dataset)
    is_current = now is not None and now.version_id == made.version_id
    outcome = _outcome(session.is_increment, made.before, is_current, promote, bool(waits))
    if outcome == CURRENT and not is_current and chosen_instead(session, made) is not None:
        return KEPT
    notes = {
        CURRENT: BECAME_CURRENT,
        INCREMENT: f"{INCREMENT_OF}{session.row.data_date}",
        HELD: WITH_SET,
        WAITS: "; ".join(waits),
    }
    # Also after a kill right behind the version's first record; what was settled before has its event.
    first = made.before in ("", WAITING) and state.add_version_event(
        dataset, made.version_id, events.PUBLISHED, run_id, notes[outcome]
    )
    if outcome == CURRENT:
        if not is_current:
            session.context.hooks.reached("before pointer publish")
            told = first or _says_so(state.version_events(dataset), made.version_id, run_id)
            state.set_current(dataset, made.version_id, run_id, "" if told else events.PROMOTED)
            session.context.hooks.reached("after pointer publish")
        _mark(session, made.version_id, PUBLISHED)
        # Written each time: a kill between the pointer and its mirror must not leave them apart.
        mirror = {"dataset": dataset, "version": made.version_id, "manifest": made.manifest_uri}
        session.chunks.blobs.put(f"versions/current_{dataset}.json", canonical_json(mirror), replace=True)
        if now is not None and not is_current:
            replaced = next(v for v in state.versions(dataset) if v.version_id == now.version_id)
            refresh_report(session.chunks.blobs, replaced, note=session.driver.reporter.note)
        mine = next(v for v in state.versions(dataset) if v.version_id == made.version_id)
        supersede(state, session.chunks.blobs, mine, run_id)
    elif outcome == INCREMENT:
        _mark(session, made.version_id, PUBLISHED)
    elif outcome != REFUSED:
        _mark(session, made.version_id, WAITING)
    return outcome


def _says_so(history: Sequence[VersionEvent], version_id: str, run_id: str) -> bool:
    """Whether the history says already that this run made the version current: another process wrote it."""
    moves = (events.PROMOTED, events.APPROVED, events.ROLLED_BACK)
    newest = next((e for e in history if e.action in moves or e.note == BECAME_CURRENT), None)
    wanted = (version_id, events.PUBLISHED, run_id)
    return newest is not None and (newest.version_id, newest.action, newest.who) == wanted


def chosen_instead(session: Session, made: Published) -> VersionEvent | None:
    """A person's decision for another version, taken with this one at hand; a run does not undo it.

    That is a rollback away from it, or an approval since the run began.
    """
    if made.before != PUBLISHED:
        return None
    people = (events.ROLLED_BACK, events.APPROVED)
    said = session.state.version_events(session.settings.dataset.id)
    newest = next((event for event in said if event.action in people), None)
    if newest is None or newest.version_id == made.version_id:
        return None
    late = newest.action == events.ROLLED_BACK or newest.created_at > session.row.created_at
    return newest if late else None


def _outcome(increment: bool, before: str, is_current: bool, promote: bool, waits: bool) -> str:
    if before == REJECTED:
        return REFUSED
    if is_current or (not increment and promote and not waits):
        return CURRENT
    if increment and (before == PUBLISHED or (promote and not waits)):
        return INCREMENT
    return WAITS if waits else HELD


def _mark(session: Session, version_id: str, state: str) -> None:
    dataset = session.settings.dataset.id
    if any(v.version_id == version_id and v.state != state for v in session.state.versions(dataset)):
        session.state.set_version_state(dataset, version_id, state)
