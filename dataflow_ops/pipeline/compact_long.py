"""Compaction by itself, where a job says after how many days: a part of maintenance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataflow_ops.errors import ConfigError, DataFlowError
from dataflow_ops.pipeline.bundles import LogReporter
from dataflow_ops.pipeline.chain import records_below
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.session import parse_job_text
from dataflow_ops.pipeline.version_states import WAITING
from dataflow_ops.state.records import COMPACT, VersionRecord
from dataflow_ops.state.store import StateStore

_RUNS = 50


def long_chains(state: StateStore) -> list[tuple[VersionRecord, int]]:
    """Current versions whose jobs want them compacted by now, with how many days' versions they stand on.

    The newest run of a data set that was not made with ``--set`` says what its job wants.
    """
    found = []
    versions = state.versions()
    # Where somebody went back to a version that was compacted, that stays as it is. One that waits was never
    # current: its compaction was killed or overtaken, and goes on.
    compacted = {(v.dataset, v.base) for v in versions if v.is_compact and v.state != WAITING}
    for record in versions:
        if not record.is_current or (record.dataset, record.version_id) in compacted:
            continue
        runs = [r for r in state.list_runs(record.dataset, _RUNS) if r.mode != COMPACT and r.promote]
        if not runs:
            continue
        try:
            after = parse_job_text(runs[0].settings, runs[0].run_id).output.compact_after_days
        except ConfigError:
            continue  # maintenance says so where it looks for what is to be kept
        days = len(records_below([v for v in versions if v.dataset == record.dataset], record.version_id)) - 1
        if after is not None and days >= after:
            found.append((record, days))
    return found


def compact_long_chains(home: Home, dry_run: bool, log: Callable[[str], Any]) -> list[str]:
    """Compact them, one after the other, in this process; what can't be is told, and stays as it is.

    Returns:
        The versions that were, or in a rehearsal would be, compacted.
    """
    from dataflow_ops.pipeline.compact import compact

    with StateStore(home.state_url) as state:
        chains = long_chains(state)
    done = []
    for record, days in chains:
        name = record.version_id
        if not dry_run:
            try:
                result = compact(home.path, name, 0, LogReporter(log), dataset=record.dataset)
            except DataFlowError as e:
                log(f"version {name} could not be compacted, and stays as it is: {type(e).__name__}: {e}")
                continue
            log(f"version {name}, which builds on {days} days: {result.message}")
        else:
            log(f"version {name}, which builds on {days} days: would be compacted")
        done.append(name)
    return done
