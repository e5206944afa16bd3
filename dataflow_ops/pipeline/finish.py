"""The end of a run: manifest, version folder, report, pointer, and the run's last state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.observe.alarms import message
from dataflow_ops.pipeline.facts import Facts, dead_share, gather, previous_report
from dataflow_ops.pipeline.fates import fates_line, fates_of
from dataflow_ops.pipeline.publish import (
    READ_WHOLE,
    SHIPPED,
    Published,
    damaged_outputs,
    known_version,
    publish,
)
from dataflow_ops.pipeline.reporting import report_data, write_report
from dataflow_ops.pipeline.session import Session
from dataflow_ops.pipeline.tally import RunFailed
from dataflow_ops.pipeline.version_states import PUBLISHED, WAITING, WITH_SET
from dataflow_ops.pipeline.waiting import reasons

SAID_OTHERWISE = ("dead_share", "shortage")
"""Alarms that the end of a run tells as a reason to wait, and as a note of the mixing plan."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a run ended.

    Attributes:
        run_id: the run.
        state: its state now.
        version_id: the version, empty where none was made.
        manifest_uri: its manifest, relative to the storage root.
        message: for a person: what is there, what waits, what to do.
        current: whether the version is the current one.
        facts: for programs: numbers of the version, why it waits, alarms and notes.
    """

    run_id: str
    state: str
    version_id: str = ""
    manifest_uri: str = ""
    message: str = ""
    current: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def paused(cls, run_id: str, who: str, why: str) -> Finished:
        """A run that stopped at a batch boundary because somebody asked."""
        reason = f" ({why})" if why else ""
        return cls(run_id, "PAUSED", message=f"Paused by {who}{reason}. Go on with: dataflow resume {run_id}")

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "run": self.run_id,
            "state": self.state,
            "version": self.version_id,
            "manifest": self.manifest_uri,
            "current": self.current,
            **self.facts,
            "message": self.message,
        }


def paused_by(who: str, why: str) -> str:
    """Who paused a run, and why where they said so."""
    return f"paused by {who}: {why}" if why else f"paused by {who}"


def finish(session: Session, *, until: str | None = None, promote: bool = True) -> Finished:
    """Publish what the steps made, unless the run was to stop before export."""
    run_id, state = session.context.run_id, session.state
    letters = sum(state.count_dead_letters("error", run_id=run_id).values())
    dead_state = "SUCCEEDED_WITH_DEAD" if letters else "SUCCEEDED"
    if until not in (None, "export"):
        session.end(dead_state)
        return Finished(
            run_id, dead_state, message=f"Done up to layer '{until}'. {_letters(letters)}".strip()
        )
    facts, made = _make(session)
    data = report_data(session, facts, previous_report(session))
    share = dead_share(session, facts)
    now = session.state.current(session.settings.dataset.id)
    # What is current already has been looked at.
    known = now is not None and now.version_id == made.version_id
    waits = [] if known else reasons(session, made.manifest, data, share)
    current = _point(session, made, promote and not waits)
    data["waits"] = waits
    write_report(session, made.version_id, data)
    final = "AWAITING_APPROVAL" if waits and not current else dead_state
    session.end(final, "; ".join(waits))
    return Finished(
        run_id,
        final,
        made.version_id,
        made.manifest_uri,
        _say(session, made, current, waits, letters, data["alarms"]),
        current,
        _facts(made, waits or ([] if current else [WITH_SET]), letters, data["alarms"]),
    )


def _facts(made: Published, waits: list[str], letters: int, alarms: list[dict[str, Any]]) -> dict[str, Any]:
    totals = made.manifest["totals"]
    return {
        "documents": totals["documents"],
        "tokens": totals["tokens"],
        "tokens_estimated": made.manifest["tokens_estimated"],
        "shards": len(made.manifest["shards"]),
        "fates": fates_of(made.manifest),
        "dead_letters": letters,
        "waits": waits,
        "alarms": [{**alarm, "message": message(alarm)} for alarm in alarms],
        "notes": made.manifest["notes"],
    }


def _make(session: Session) -> tuple[Facts, Published]:
    """Facts and version; stored outputs that have rotted since they were made are made again first."""
    for _ in range(session.settings.run.max_attempts + 1):
        try:
            facts = gather(session)
            damaged = [] if known_version(session, facts) else damaged_outputs(session, SHIPPED)
        except CorruptOutput:
            damaged = damaged_outputs(session, READ_WHOLE)
            if not damaged:
                raise
        if not damaged:
            return facts, publish(session, facts)
        session.driver.make_again(damaged, "publish")
    raise RunFailed("what the version is made of is damaged again and again; check the disk")


def _point(session: Session, made: Published, promote: bool) -> bool:
    dataset = session.settings.dataset.id
    now = session.state.current(dataset)
    hooks = session.context.hooks
    if now is None or now.version_id != made.version_id:
        if not promote:
            _mark(session, made.version_id, WAITING)
            return False
        hooks.reached("before pointer publish")
        session.state.set_current(dataset, made.version_id, session.context.run_id)
        hooks.reached("after pointer publish")
    _mark(session, made.version_id, PUBLISHED)
    # Written each time: a kill between the pointer and its mirror must not leave them apart.
    mirror = {"dataset": dataset, "version": made.version_id, "manifest": made.manifest_uri}
    session.chunks.blobs.put(f"versions/current_{dataset}.json", canonical_json(mirror), replace=True)
    return True


def _mark(session: Session, version_id: str, state: str) -> None:
    dataset = session.settings.dataset.id
    if any(v.version_id == version_id and v.state != state for v in session.state.versions(dataset)):
        session.state.set_version_state(dataset, version_id, state)


def _letters(letters: int) -> str:
    return f"{letters} dead letter(s) wait: dataflow dead-letters list" if letters else ""


def _say(
    session: Session,
    made: Published,
    current: bool,
    waits: list[str],
    letters: int,
    alarms: list[dict[str, Any]],
) -> str:
    folder = session.home.root / "versions" / made.version_id
    totals = made.manifest["totals"]
    estimated = " (estimated)" if made.manifest["tokens_estimated"] else ""
    lines = [
        f"Version {made.version_id}: {totals['documents']:,} documents,"
        f" {totals['tokens']:,} tokens{estimated}"
        f" in {len(made.manifest['shards'])} shards",
        f"  {fates_line(made.manifest)}",
        f"  shards  {folder}",
        f"  report  {folder / 'report.html'}",
    ]
    if waits:
        lines.append("  NOT current, a person must look:")
        lines += [f"    {reason}" for reason in waits]
        lines.append(f"  then: dataflow versions approve {made.version_id}")
    elif not current:
        lines.append(f"  not current, because {WITH_SET}")
        lines.append(f"  to make it current: dataflow versions approve {made.version_id}")
    lines += [f"  alarm   {message(alarm)}" for alarm in alarms if alarm["kind"] not in SAID_OTHERWISE]
    if not waits:
        for source in made.manifest["sources"]:
            if not source["bytes"]:
                lines.append(f"  note    source '{source['source_id']}' is empty: nothing was found there")
    for note in made.manifest["notes"]:
        lines.append(f"  note    {note}")
    if letters:
        lines.append(f"  {_letters(letters)}")
    return "\n".join(lines)
