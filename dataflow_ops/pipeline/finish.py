"""The end of a run: manifest, version folder, report, pointer, and the run's last state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.observe.alarms import message
from dataflow_ops.pipeline.chain import read_manifest, version_named
from dataflow_ops.pipeline.complete import need_shipped
from dataflow_ops.pipeline.facts import Facts, dead_share, gather, previous_report
from dataflow_ops.pipeline.fates import fates_line, fates_of, replaced_documents
from dataflow_ops.pipeline.file_lists import close_read_anew
from dataflow_ops.pipeline.overtaken import overtaken
from dataflow_ops.pipeline.overtaken_days import days_left_out
from dataflow_ops.pipeline.parent import check_base
from dataflow_ops.pipeline.pausing import paused_line
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
from dataflow_ops.pipeline.settle import CURRENT, HELD, KEPT, REFUSED, WAITS, chosen_instead, settle
from dataflow_ops.pipeline.tally import RunFailed
from dataflow_ops.pipeline.version_states import INCREMENT, PUBLISHED, REJECTED, WITH_SET
from dataflow_ops.pipeline.waiting import reasons
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import PauseFlag
from dataflow_ops.storage.opening import address

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
    def paused(cls, run_id: str, flag: PauseFlag | None) -> Finished:
        """A run that stopped at a batch boundary because somebody asked."""
        return cls(run_id, "PAUSED", message=paused_line(run_id, flag))

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


def finish(session: Session, *, until: str | None = None, promote: bool = True) -> Finished:
    """Publish what the steps made, unless the run was to stop before export."""
    run_id, state = session.context.run_id, session.state
    letters = sum(state.count_dead_letters("error", run_id=run_id).values())
    dead_state = "SUCCEEDED_WITH_DEAD" if letters else "SUCCEEDED"
    if until not in (None, "export"):
        session.end(dead_state)
        message = f"Done up to layer '{until}'. {_letters(letters)}".strip()
        return Finished(run_id, dead_state, message=message, facts={"dead_letters": letters})
    need_shipped(session.driver)
    check_base(state, session.chunks.blobs, session.settings)
    facts, made = _make(session)
    data = report_data(session, facts, previous_report(session))
    share = dead_share(session, facts)
    waits = [] if _settled(session, made) else reasons(session, made.manifest, data, share)
    outcome = settle(session, made, promote, waits)
    data["waits"] = waits
    beside = days_left_out(state, session.chunks, session.settings.dataset.id) if outcome == CURRENT else []
    data["notes"] = [*data["notes"], *beside]
    write_report(session, made.version_id, data)
    close_read_anew(session)
    final = "AWAITING_APPROVAL" if outcome == WAITS else dead_state
    session.end(final, "; ".join(waits) if outcome == WAITS else "")
    return Finished(
        run_id,
        final,
        made.version_id,
        made.manifest_uri,
        _say(session, made, outcome, waits, letters, data["alarms"], beside),
        outcome == CURRENT,
        _facts(made, outcome, waits, letters, data["alarms"], beside),
    )


def _settled(session: Session, made: Published) -> bool:
    """Whether somebody has looked at this very version before."""
    if made.before == REJECTED or (made.before == PUBLISHED and session.is_increment):
        return True
    now = session.state.current(session.settings.dataset.id)
    return now is not None and now.version_id == made.version_id


def _facts(
    made: Published,
    outcome: str,
    waits: list[str],
    letters: int,
    alarms: list[dict[str, Any]],
    beside: list[str],
) -> dict[str, Any]:
    totals = made.manifest["totals"]
    return {
        "increment": bool(made.manifest.get("increment")),
        "base": base_of(made.manifest),
        "documents": totals["documents"],
        "tokens": totals["tokens"],
        "tokens_estimated": made.manifest["tokens_estimated"],
        "shards": len(made.manifest["shards"]),
        "fates": fates_of(made.manifest),
        "dead_letters": letters,
        "waits": waits or ([WITH_SET] if outcome == HELD else []),
        "alarms": [{**alarm, "message": message(alarm)} for alarm in alarms],
        "notes": [*made.manifest["notes"], *beside],
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


def _standing(session: Session, made: Published, outcome: str, waits: list[str]) -> list[str]:
    """Lines on how the version stands; none where it is current."""
    versions = session.state.versions(session.settings.dataset.id)
    late = overtaken(versions, version_named(versions, made.version_id))
    approve = f"dataflow versions approve {made.version_id}" if late is None else late.anyway
    increment = session.is_increment
    if outcome == WAITS:
        held = "NOT published" if increment else "NOT current"
        then = approve if late is None else late.instead
        return [f"  {held}, a person must look:", *(f"    {why}" for why in waits), f"  then: {then}"]
    if outcome == HELD:
        held, aim = ("published", "publish it") if increment else ("current", "make it current")
        return [f"  not {held}, because {WITH_SET}", f"  to {aim}: {approve}"]
    if outcome == KEPT and (choice := chosen_instead(session, made)) is not None:
        why = f": {choice.note}" if choice.note else ""
        return [
            f"  not current: {choice.who} chose {choice.version_id} instead of it{why}",
            f"  to make it current all the same: dataflow versions rollback {made.version_id}",
        ]
    if outcome == REFUSED:
        said = next(
            e
            for e in session.state.version_events(session.settings.dataset.id)
            if (e.version_id, e.action) == (made.version_id, events.REJECTED)
        )
        why = f": {said.note}" if said.note else ""
        return [f"  not current, {said.who} rejected it{why}", f"  if it is well after all: {approve}"]
    if outcome == INCREMENT:
        same = "" if made.before == "" else " (with the same content as before)"
        return [
            f"  an increment of {session.row.data_date}{same}: it doesn't become current; the next full run"
            " contains its documents"
        ]
    return []


def base_of(manifest: Mapping[str, Any]) -> str:
    """The version that a version builds on; ``""`` where it builds on none."""
    return str(manifest["base"]["version"]) if manifest.get("base") else ""


def _built(session: Session, manifest: Mapping[str, Any], base: str, shards: str) -> list[str]:
    """What a version that builds on another adds to it."""
    if not base:
        return []
    records = session.state.versions(session.settings.dataset.id)
    below = next(record for record in records if record.version_id == base)
    replaced = replaced_documents(manifest, read_manifest(session.chunks.blobs, below))
    line = f"  builds on {base}: {manifest['own']['documents']:,} new documents{shards}"
    return [line + (f", {replaced:,} replaced" if replaced else "")]


def _letters(letters: int) -> str:
    return f"{letters} dead letter(s) wait: dataflow dead-letters list" if letters else ""


def _say(
    session: Session,
    made: Published,
    outcome: str,
    waits: list[str],
    letters: int,
    alarms: list[dict[str, Any]],
    beside: list[str],
) -> str:
    folder = address(session.home.root, f"versions/{made.version_id}")
    totals = made.manifest["totals"]
    estimated = " (estimated)" if made.manifest["tokens_estimated"] else ""
    shards = f" in {len(made.manifest['shards'])} shards"
    base = base_of(made.manifest)
    lines = [
        f"Version {made.version_id}: {totals['documents']:,} documents,"
        f" {totals['tokens']:,} tokens{estimated}{'' if base else shards}",
        *_built(session, made.manifest, base, shards),
        f"  {fates_line(made.manifest)}",
        f"  shards  {folder}",
        f"  report  {folder}/report.html",
    ]
    lines += _standing(session, made, outcome, waits)
    lines += [f"  alarm   {message(alarm)}" for alarm in alarms if alarm["kind"] not in SAID_OTHERWISE]
    if not waits and not base:
        for source in made.manifest["sources"]:
            if not source["bytes"]:
                lines.append(f"  note    source '{source['source_id']}' is empty: nothing was found there")
    for note in (*made.manifest["notes"], *beside):
        lines.append(f"  note    {note}")
    if letters:
        lines.append(f"  {_letters(letters)}")
    return "\n".join(lines)
