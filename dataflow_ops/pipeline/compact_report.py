"""The report of a compacted version: what it holds, and how it stands."""

from __future__ import annotations

from collections.abc import Sequence

from dataflow_ops.layers.export.content import Content
from dataflow_ops.observe.report_compacted import compacted_data
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.chain import Link
from dataflow_ops.pipeline.compact_plan import Group
from dataflow_ops.pipeline.facts import Facts
from dataflow_ops.pipeline.publish import Published
from dataflow_ops.pipeline.reporting import report_data, write_report
from dataflow_ops.pipeline.session import Session
from dataflow_ops.pipeline.version_shelf import own_documents


def write_compact_report(
    session: Session, made: Published, links: Sequence[Link], groups: Sequence[Group], waits: Sequence[str]
) -> None:
    """Write ``report.html`` and ``report.json`` beside the version.

    They say nothing of rules and duplicates: the reports of the versions that it was put together from do.

    Args:
        session: the compaction's run.
        made: its version.
        links: the versions that it was put together from, the lowest first.
        groups: its shards, whose content was found to be that of the old ones.
        waits: why a person must look.
    """
    metrics = session.state.metrics_of_run(session.context.run_id)
    session.steps = build_steps(session.context)
    data = report_data(session, Facts(made.manifest, {}, metrics, {}, []), None)
    versions = [
        {
            "version": link.record.version_id,
            "documents": own_documents(link.manifest),
            "shards": len(link.manifest["shards"]),
        }
        for link in links
    ]
    whole = sum((group.content for group in groups), Content())
    data = compacted_data(data, made.manifest, whole.cells, versions)
    data["waits"] = list(waits)
    data["notes"] = [
        f"This version was put together from {len(links)} versions, up to {links[-1].record.version_id}:"
        " their reports tell what rules and duplicates removed."
    ]
    write_report(session, made.version_id, data)
