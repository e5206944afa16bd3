"""The report of a run's version."""

from __future__ import annotations

from dataflow_ops.console.place import NotThere, Place
from dataflow_ops.console.runs import known_run
from dataflow_ops.console.said import fault
from dataflow_ops.pipeline.report_file import read_page
from dataflow_ops.storage.opening import open_store


def report_of_run(place: Place, run_id: str) -> str:
    """``report.html`` of the version that a run made.

    Raises:
        NotThere: no such run, or it has published nothing (yet).
    """
    row = known_run(place, run_id)
    version = next((v for v in place.state.versions(row.dataset) if v.run_id == run_id), None)
    if version is not None:
        page = read_page(open_store(place.home.root), version.version_id)
        if page is not None:
            return page
    raise fault(NotThere, "no_report")
