"""The report of a compacted version: what its steps did, and how it stands."""

from __future__ import annotations

from collections.abc import Sequence

from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.facts import Facts
from dataflow_ops.pipeline.publish import Published
from dataflow_ops.pipeline.reporting import report_data, write_report
from dataflow_ops.pipeline.session import Session


def write_compact_report(session: Session, made: Published, waits: Sequence[str]) -> None:
    """Write ``report.html`` and ``report.json`` beside the version.

    They say nothing of rules and duplicates: the reports of the versions that it was put together from do.

    Args:
        session: the compaction's run.
        made: its version.
        waits: why a person must look.
    """
    metrics = session.state.metrics_of_run(session.context.run_id)
    session.steps = build_steps(session.context)
    data = report_data(session, Facts(made.manifest, {}, metrics, {}, []), None)
    data["waits"] = list(waits)
    compacted = made.manifest["compacted"]
    data["notes"] = [
        f"This version was put together from {len(compacted['shards'])} versions, up to"
        f" {compacted['version']}: their reports tell what rules and duplicates removed."
    ]
    write_report(session, made.version_id, data)
