"""What a finished run's recorded outputs say, gathered for manifest and report."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from dataflow_ops.clients.tokenizer import load_tokenizer
from dataflow_ops.engine.inputs import digest_of
from dataflow_ops.layers.export.manifest import (
    Below,
    FileEntry,
    SourceEntry,
    StepEntry,
    build_manifest,
    files_digest,
)
from dataflow_ops.observe.drift import compare
from dataflow_ops.pipeline.chain import chain_of, index_entry, index_of, indexed_outputs
from dataflow_ops.pipeline.days import last_full
from dataflow_ops.pipeline.flow import STEP_NAMES
from dataflow_ops.pipeline.report_file import UNFIT, read_report, unfit
from dataflow_ops.pipeline.session import Session
from dataflow_ops.pipeline.tombstones import PATH, tombstones_of
from dataflow_ops.state.records import INCREMENTAL, StepMetrics
from dataflow_ops.values import Output


@dataclass(frozen=True, slots=True)
class Facts:
    """A run's end in numbers.

    Attributes:
        manifest: of the version.
        links: path inside the version -> published output behind it.
        files: path inside the version -> bytes of what only it has.
        metrics: step -> sums from state.
        rule_hits: step -> rule -> records.
        dead_chunks: chunks given up.
    """

    manifest: dict[str, Any]
    links: dict[str, Output]
    metrics: dict[str, StepMetrics]
    rule_hits: dict[str, dict[str, int]]
    dead_chunks: list[str]
    files: dict[str, bytes] = field(default_factory=dict)


def gather(session: Session) -> Facts:
    """Read state and small outputs; nothing that grows with the text."""
    index, settings = session.driver.index, session.settings
    metrics = session.state.metrics_of_run(session.context.run_id)
    hits = session.state.rule_hits_of_run(session.context.run_id)
    dead = session.driver.dead_chunks()
    links: dict[str, Output] = {}
    shards, lineage = [], []
    for _, record in index.finished("export").items():
        for output in record.outputs:
            if output.kind.startswith("shard/"):
                path = output.kind.removeprefix("shard/")
                links[path] = output
                shards.append(FileEntry(path, output.rows, output.size, output.sha256, output.attributes))
    for chunk, output in index.outputs("scatter", "fates"):
        path = f"lineage/part-{chunk}.parquet"
        links[path] = output
        lineage.append(FileEntry(path, output.rows, output.size, output.sha256))
    steps = [
        StepEntry(name, m.layer, _fingerprint(session, name), m.counts, hits.get(name, {}))
        for name in STEP_NAMES
        if (m := metrics.get(name)) is not None
    ]
    letters = sum(m.counts.dead for m in metrics.values()) + len(dead)
    notes = [row["note"] for row in _rows(session, "plan", "notes")]
    if dead:
        notes.append(
            f"{len(dead)} chunk(s) were given up after {settings.run.max_attempts} attempts:"
            f" {', '.join(dead)}"
        )
    below, files = _below(session)
    if below is not None and settings.mixing.target_tokens is not None:
        notes.append("mixing.target_tokens was met out of this run's own documents, beside those below it")
    manifest = build_manifest(
        settings=settings,
        steps=steps,
        sources=_sources(session),
        shards=shards,
        lineage=lineage,
        tokenizer=load_tokenizer(settings.mixing.tokenizer).identity(),
        rules=rule_versions(session.steps["filter"]),
        parsers=dict(session.steps["parse"].fingerprint()["parsers"]),  # type: ignore[call-overload]
        domains=_rows(session, "plan", "domains"),
        partitions=_rows(session, "plan", "partitions"),
        notes=notes,
        dead_letters=letters,
        base=below,
        index=index_entry(
            settings, session.driver.numbers(), indexed_outputs(session.state, session.context.run_id)
        ),
        increment=session.is_increment,
    )
    return Facts(manifest, links, metrics, hits, dead, files)


def _below(session: Session) -> tuple[Below | None, dict[str, bytes]]:
    """What the run builds on, and the file of what it replaces there."""
    parent, blobs = session.parent, session.chunks.blobs
    if parent is None:
        return None, {}
    links = chain_of(session.state, blobs, session.settings.dataset.id, parent.version)
    replaced = session.chunks.read(
        session.driver.index.output("supersede", "tombstones", "all"), "", verify=True
    )
    index = index_of(session.state, blobs, session.settings.dataset.id, parent.version)
    stones = tombstones_of(replaced, links, index, blobs)
    last = links[-1].manifest
    entry = FileEntry(PATH, stones.rows, len(stones.data), hashlib.sha256(stones.data).hexdigest())
    named = {"version": parent.version, "manifest_sha256": parent.manifest_sha256}
    return Below(named, _with_documents(last), entry, stones.totals), {PATH: stones.data}


def _with_documents(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Totals of a version, by domain with distinct documents, which a full version's plan tells."""
    planned = {row["domain"]: row["documents"] for row in manifest["plan"]["domains"]}
    totals = dict(manifest["totals"])
    totals["by_domain"] = {
        name: {**cell, "documents": cell.get("documents", planned.get(name, cell["rows"]))}
        for name, cell in totals["by_domain"].items()
    }
    return totals


def rule_versions(filter_step: Any) -> dict[str, int]:
    """Rule -> version, of the rules that judge in this job."""
    return {rule.name: rule.version for rule in filter_step.rules}


def dead_share(session: Session, facts: Facts) -> float:
    """Dead share of the input records; a dead chunk's records are estimated from its bytes."""
    parse = facts.metrics.get("parse")
    records = parse.counts.documents_in if parse else 0
    dead = sum(m.counts.dead for m in facts.metrics.values())
    if facts.dead_chunks:
        rows = _rows(session, "discover", "chunks")
        lost = sum(r["bytes"] for r in rows if r["chunk"] in set(facts.dead_chunks))
        whole = sum(r["bytes"] for r in rows) - lost
        estimate = round(records * lost / whole) if whole else len(facts.dead_chunks)
        dead, records = dead + max(1, estimate), records + max(1, estimate)
    return dead / records if records else float(dead > 0)


def previous_report(session: Session) -> dict[str, Any] | None:
    """Report data of the last full version, for drift; None where there is none.

    A day is compared with nothing: it is not expected to look like all of them.
    """
    last = last_full(session.state, session.settings.dataset.id)
    if last is None or session.row.mode == INCREMENTAL:
        return None
    found, wrong = read_report(session.chunks.blobs, last.version_id)
    if found is not None:
        try:
            compare({**found, "version": found["version"]}, found)
        except UNFIT as e:
            found, wrong = None, unfit(last.version_id, e)
    if wrong:
        session.driver.reporter.note(f"{wrong}: this version is not held against it, its drift is not known")
    return found


def _fingerprint(session: Session, name: str) -> str:
    """Of a step, less discover's listing: that holds times, and ``sources`` says what was read."""
    whole = dict(session.steps[name].fingerprint())
    whole.pop("listing", None)
    return digest_of(whole)


def _rows(session: Session, step: str, kind: str) -> list[dict[str, Any]]:
    output = session.driver.index.output(step, kind, "all")
    rows: list[dict[str, Any]] = session.chunks.read(output).to_pylist()
    return rows


def _sources(session: Session) -> list[SourceEntry]:
    files: dict[str, list[tuple[str, str]]] = {s.source_id: [] for s in session.settings.sources}
    size = dict.fromkeys(files, 0)
    for _, output in session.driver.index.outputs("fetch", "files"):
        if not output.rows:
            continue
        table = session.chunks.read(output, "", ("source_id", "path", "start", "size", "sha256"))
        for row in table.to_pylist():
            # A file cut into ranges has one row for each; each range has a hash of its own.
            files[row["source_id"]].append((f"{row['path']}@{row['start']}", row["sha256"]))
        for source in files:
            mine = table.filter(pc.equal(table["source_id"], source))
            size[source] += pc.sum(mine["size"]).as_py() or 0
    return [
        SourceEntry(
            s.source_id,
            s.kind,
            s.domain,
            len({path.rpartition("@")[0] for path, _ in files[s.source_id]}),
            size[s.source_id],
            files_digest(files[s.source_id]),
        )
        for s in session.settings.sources
    ]
