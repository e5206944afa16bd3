"""The versions of a data set as a time line, and what people decide about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dataflow_ops.console.dags import Consumer, DagFacts, NoDags, origin_of
from dataflow_ops.console.said import fault, said
from dataflow_ops.console.today import reasons
from dataflow_ops.console.version_facts import drift_of, facts_of
from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.overtaken import overtaken
from dataflow_ops.pipeline.report_file import read_page
from dataflow_ops.pipeline.version_states import REJECTED, REMOVED, SHOWN_WAITING, became, shown
from dataflow_ops.pipeline.version_trail import Trail, trail
from dataflow_ops.pipeline.versions import VersionBook
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.version_events import PUBLISHED, VersionEvent
from dataflow_ops.storage.opening import open_store

SHOWN = 50
"""Newest versions of a time line."""
REMEMBERED = 2_000
"""Newest decisions from which it is told what came before what."""

Action = Literal["approve", "reject", "rollback"]
ACTIONS: tuple[Action, ...] = ("approve", "reject", "rollback")


def timeline(
    home: Home, state: StateStore, dataset: str, dags: DagFacts | None = None, limit: int = SHOWN
) -> dict[str, Any]:
    """A data set's versions with their domains, drift and consumers, newest first.

    Args:
        home: where versions are.
        state: open state store.
        dataset: which data set.
        dags: what the orchestrator knows.
        limit: at most so many versions.

    Returns:
        ``current, versions, events, total``. Of a version, ``report`` says whether there is one, ``before``
        which was current before it, ``left`` who went back from it, and ``drift_against`` with which one its
        drift compares it.
    """
    records = state.versions(dataset)
    consumers = (dags or NoDags()).consumers(dataset)
    current = next((v.version_id for v in records if v.is_current), None)
    events = state.version_events(dataset, limit=max(REMEMBERED, 4 * limit))
    order = trail(records, events)
    return {
        "dataset": dataset,
        "current": current,
        "versions": [
            _version(home, state, v, consumers.get(v.version_id, ()), order, records) for v in records[:limit]
        ],
        "total": len(records),
        "events": [_event(e) for e in events[: 4 * limit]],
    }


def _event(one: VersionEvent) -> dict[str, Any]:
    """A decision; ``became`` says what publishing made of the version, and is None for other decisions."""
    return {
        "version": one.version_id,
        "action": one.action,
        "became": became(one.note) if one.action == PUBLISHED else None,
        "who": one.who,
        "note": one.note,
        "at": one.created_at,
    }


def _version(
    home: Home,
    state: StateStore,
    record: VersionRecord,
    consumers: Sequence[Consumer],
    order: Trail,
    records: Sequence[VersionRecord],
) -> dict[str, Any]:
    facts, run = facts_of(home.root, record), state.get_run(record.run_id)
    dag_id, dag_run_id = origin_of(run)
    drift, against = drift_of(home.root, record.version_id)
    name, stands = record.version_id, shown(record.state, record.is_current)
    return {
        "version": name,
        "state": stands,
        "current": record.is_current,
        "before": order.before.get(name),
        "left": _left(order.left.get(name)),
        "mode": run.mode if run else None,
        "base": None if record.is_compact else record.base,
        "data_date": run.data_date if run else None,
        "run": record.run_id,
        "dag_id": dag_id,
        "dag_run_id": dag_run_id,
        "published_at": record.created_at,
        "documents": facts.documents if facts else None,
        "tokens": facts.tokens if facts else None,
        "tokens_estimated": facts.tokens_estimated if facts else None,
        "domains": [dict(domain) for domain in facts.domains] if facts else [],
        "drift": [_drift(one) for one in drift or ()],
        "drift_against": against,
        "waits": reasons(state, record, records) if stands == SHOWN_WAITING else [],
        "dead_letters": facts.dead_letters if facts else None,
        "report": drift is not None,
        "consumers": [consumer.as_dict() for consumer in consumers],
        "cli": {
            "approve": f"dataflow versions approve {name}",
            "reject": f"dataflow versions reject {name}",
            "rollback": f"dataflow versions rollback {name}",
            "report": f"dataflow report {name}",
            "verify": f"dataflow versions verify {name}",
        },
    }


def _left(one: VersionEvent | None) -> dict[str, Any] | None:
    """Who went back from a version, to which, and why."""
    return (
        None
        if one is None
        else {"at": one.created_at, "who": one.who, "note": one.note, "to": one.version_id}
    )


def _drift(one: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one.get(key) for key in ("what", "name", "measure", "old", "new", "limit", "beyond")}


def decide(
    home: Home,
    state: StateStore,
    action: Action,
    dataset: str,
    version: str,
    *,
    who: str,
    note: str = "",
    dags: DagFacts | None = None,
) -> dict[str, Any]:
    """Approve, reject or go back to a version.

    Args:
        home: where versions are.
        state: open state store.
        action: what to do.
        dataset: the version's data set.
        version: its whole id: a start of one could name another by tomorrow.
        who: the person.
        note: why, for people.
        dags: what the orchestrator knows.

    Returns:
        ``ok, code, values, message, current, consumers``; after a rollback the consumers of the version that
        was current before.

    Raises:
        ConfigError: no such action, or the version doesn't stand so that it could be done.
        VersionError: no such version, or its files are damaged or gone.
    """
    if action not in ACTIONS:
        raise ConfigError(f"action '{action}': use one of {', '.join(ACTIONS)}")
    records = state.versions(dataset)
    record = next((v for v in records if v.version_id == version), None)
    if record is None:
        raise fault(VersionError, "no_such_version", version=version, dataset=dataset)
    _refuse(action, record, records)
    before = state.current(dataset)
    with VersionBook(home) as book:
        lacking: Sequence[str] = ()
        if action == "approve":
            book.approve(version, dataset, who=who, note=note)
            lacking = book.lacking(version, dataset)
        elif action == "reject":
            book.reject(version, dataset, who=who, note=note)
        else:
            book.rollback(version, dataset, who=who, note=note)
    after = state.current(dataset)
    left = before.version_id if before is not None and action == "rollback" else version
    consumers = (dags or NoDags()).consumers(dataset).get(left, ())
    now = after.version_id if after is not None else None
    return {
        "ok": True,
        **_said(action, version, left, now, consumers, lacking),
        "current": now,
        "consumers": [consumer.as_dict() for consumer in consumers],
    }


def _refuse(action: Action, record: VersionRecord, records: Sequence[VersionRecord]) -> None:
    """What the book would refuse too, in a sentence that pages can word: mostly somebody was quicker."""
    name, stands = record.version_id, shown(record.state, record.is_current)
    if action == "approve" and stands not in (SHOWN_WAITING, REJECTED):
        raise fault(ConfigError, "bad_state_approve", version=name, stands=stands)
    if action == "approve" and (late := overtaken(records, record)) is not None:
        told = {"current": late.by.version_id, "lost": late.leaves, "instead": late.instead}
        raise fault(ConfigError, "overtaken", version=name, **told, anyway=late.anyway)
    if action == "reject" and stands in (REJECTED, REMOVED):
        raise fault(ConfigError, "bad_state_reject", version=name, stands=stands)
    if action == "reject" and record.is_current:
        raise fault(VersionError, "is_current", version=name)
    if action == "rollback":
        if record.is_increment:
            raise fault(VersionError, "increment_never_current", version=name)
        if stands in (REJECTED, REMOVED):
            raise fault(VersionError, "bad_state_rollback", version=name, stands=stands)
        if stands == SHOWN_WAITING:
            raise fault(VersionError, "never_approved", version=name)


def _said(
    action: Action,
    version: str,
    left: str,
    now: str | None,
    consumers: Sequence[Consumer],
    lacking: Sequence[str],
) -> dict[str, Any]:
    if action == "reject":
        stays = now is not None
        return said("rejected_stays" if stays else "rejected", version=version, current=now or "")
    if lacking and now == version:
        return said("approved_lacking", version=version, what="; ".join(lacking))
    if action == "approve":
        return said("approved_current" if now == version else "approved", version=version)
    if left == version:
        return said("was_current", version=version)
    runs = Counter(consumer.dag_id for consumer in consumers)
    if not runs:
        return said("current_again", version=version, left=left)
    used = ", ".join(dag if n == 1 else f"{dag} ({n}×)" for dag, n in sorted(runs.items()))
    return said("current_again_used", version=version, left=left, used=used)


def report_text(home: Home, state: StateStore, dataset: str, version: str) -> str:
    """The report of a version, HTML.

    Raises:
        VersionError: no such version, or it has no report.
    """
    if not any(v.version_id == version for v in state.versions(dataset)):
        raise fault(VersionError, "no_such_version", version=version, dataset=dataset)
    page = read_page(open_store(home.root), version)
    if page is None:
        raise fault(VersionError, "report_gone", version=version)
    return page
