"""The versions of a data set as a time line, and what people decide about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from dataflow_ops.console.dags import Consumer, DagFacts, NoDags, origin_of
from dataflow_ops.console.today import reasons
from dataflow_ops.console.version_facts import drift_of, facts_of
from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.version_states import SHOWN_WAITING, became, shown
from dataflow_ops.pipeline.versions import VersionBook
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.version_events import PUBLISHED, VersionEvent

SHOWN = 50
"""Newest versions of a time line."""

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
        ``current, versions, events, total``; ``report`` says whether there is one.
    """
    records = state.versions(dataset)
    consumers = (dags or NoDags()).consumers(dataset)
    current = next((v.version_id for v in records if v.is_current), None)
    return {
        "dataset": dataset,
        "current": current,
        "versions": [_version(home, state, v, consumers.get(v.version_id, ())) for v in records[:limit]],
        "total": len(records),
        "events": [_event(e) for e in state.version_events(dataset, limit=4 * limit)],
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
    home: Home, state: StateStore, record: VersionRecord, consumers: Sequence[Consumer]
) -> dict[str, Any]:
    facts, run = facts_of(home.root, record), state.get_run(record.run_id)
    dag_id, dag_run_id = origin_of(run)
    drift = drift_of(home.root, record.version_id)
    name, stands = record.version_id, shown(record.state, record.is_current)
    return {
        "version": name,
        "state": stands,
        "current": record.is_current,
        "mode": run.mode if run else None,
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
        "waits": reasons(state, record) if stands == SHOWN_WAITING else [],
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
        ``ok, message, consumers``; after a rollback the consumers of the version that was current before.

    Raises:
        ConfigError: no such action, or the version doesn't stand so that it could be done.
        VersionError: no such version, or its files are damaged or gone.
    """
    if action not in ACTIONS:
        raise ConfigError(f"action '{action}': use one of {', '.join(ACTIONS)}")
    if not any(v.version_id == version for v in state.versions(dataset)):
        raise VersionError(f"'{version}' is no version of data set '{dataset}'; its whole id is needed here")
    before = state.current(dataset)
    with VersionBook(home) as book:
        if action == "approve":
            book.approve(version, dataset, who=who, note=note)
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
        "message": _said(action, version, left, now, consumers),
        "current": now,
        "consumers": [consumer.as_dict() for consumer in consumers],
    }


def _said(action: Action, version: str, left: str, now: str | None, consumers: Sequence[Consumer]) -> str:
    if action == "reject":
        stays = f"; {now} stays current" if now else ""
        return f"{version} is rejected{stays}."
    if action == "approve":
        return f"{version} is approved" + (" and current." if now == version else ".")
    if left == version:
        return f"{version} was current already."
    by_dag: dict[str, int] = {}
    for consumer in consumers:
        by_dag[consumer.dag_id] = by_dag.get(consumer.dag_id, 0) + 1
    if not by_dag:
        return f"{version} is current again; no DAG run has started on {left}."
    named = ", ".join(f"{dag} ({n} run{'s' if n > 1 else ''})" for dag, n in sorted(by_dag.items()))
    return f"{version} is current again. These started on {left} and may have to be run again: {named}."


def report_file(home: Home, state: StateStore, dataset: str, version: str) -> Path:
    """Where the report of a version lies.

    Raises:
        VersionError: no such version, or it has no report.
    """
    if not any(v.version_id == version for v in state.versions(dataset)):
        raise VersionError(f"'{version}' is no version of data set '{dataset}'")
    path = home.root / "versions" / version / "report.html"
    if not path.is_file():
        raise VersionError(f"{version} has no report any more; `dataflow report` prints where one would be")
    return path
