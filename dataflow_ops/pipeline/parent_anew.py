"""A day that is begun again after another version took the place of the one that it was building on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataflow_ops.pipeline.days import in_interval
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.session import parse_job_text
from dataflow_ops.pipeline.version_states import PUBLISHED, REJECTED, WAITING
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import INCREMENTAL
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.opening import open_store


def find_parent_anew(home: Home, run_id: str, log: Callable[[str], Any]) -> None:
    """Let a run whose parent is no longer current look for one again, unless its version was published.

    What it made on the old one, and which waits, is rejected: it would leave the current version behind.

    Raises:
        VersionError: the current version's manifest is damaged.
    """
    with StateStore(home.state_url) as state:
        row = state.get_run(run_id)
        if row is None or row.mode != INCREMENTAL:
            return
        settings = parse_job_text(row.settings, run_id)
        dataset, now = row.dataset, state.current(row.dataset)
        parent = None if settings.interval is None else settings.interval.parent
        if parent is None or now is None or now.version_id == parent.version:
            return
        made = [one for one in state.versions(dataset) if one.run_id == run_id]
        if any(one.state == PUBLISHED for one in made):
            return
        note = f"made again on {now.version_id}, which became current meanwhile"
        for one in made:
            if one.state == WAITING:
                state.set_version_state(dataset, one.version_id, REJECTED, events.REJECTED, run_id, note)
        job = settings.model_copy(update={"interval": None})
        anew = in_interval(job, row.mode, row.data_date or "", state, open_store(home.root))
        state.change_settings(run_id, row.settings, anew.model_dump_json())
        log(f"Version {now.version_id} became current since this run began: it builds on that one now.")
