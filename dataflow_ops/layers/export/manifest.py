"""The manifest of a version: what it is made of, and how to tell that it is whole.

It holds no times, hosts, run ids or absolute paths: equal inputs and settings give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts

FORMAT = 1
"""Raised when the manifest's shape changes; ``verify.py`` refuses formats that it does not know."""


@dataclass(frozen=True, slots=True)
class StepEntry:
    """One step of the flow, summed over its tasks.

    Attributes:
        name: step name.
        layer: layer name.
        fingerprint: hex SHA-256 of the step's fingerprint.
        counts: what became of its records.
        rule_hits: rule -> records rejected by it.

    """

    name: str
    layer: str
    fingerprint: str
    counts: Counts
    rule_hits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One source as it was read.

    Attributes:
        source_id: its name.
        kind: ``files``, ``jsonl``, …
        domain: what the mix counts it as.
        files: how many.
        size: bytes as stored.
        sha256: :func:`files_digest` of its files.

    """

    source_id: str
    kind: str
    domain: str
    files: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of the version.

    Attributes:
        path: relative to the version's folder, forward slashes.
        rows: rows inside.
        size: bytes.
        sha256: hex digest.
        attributes: for shards, as ``export`` recorded them: ``tokens``, ``documents``, ``partition``,
            ``cells`` (rows ``[domain, language, rows, tokens]``).

    """

    path: str
    rows: int
    size: int
    sha256: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Below:
    """What an incremental version builds on.

    Attributes:
        named: ``version`` and ``manifest_sha256``.
        totals: of that version; by domain with ``documents``.
        tombstones: the file of its documents that the new version replaces.
        replaced: what these come to, in the shape of ``totals``; no bytes are replaced.

    """

    named: Mapping[str, object]
    totals: Mapping[str, Any]
    tombstones: FileEntry
    replaced: Mapping[str, Any]


def build_manifest(
    *,
    settings: JobSettings,
    steps: Sequence[StepEntry],
    sources: Sequence[SourceEntry],
    shards: Sequence[FileEntry],
    lineage: Sequence[FileEntry],
    tokenizer: Mapping[str, object],
    rules: Mapping[str, object],
    parsers: Mapping[str, object],
    domains: Sequence[Mapping[str, Any]],
    partitions: Sequence[Mapping[str, Any]],
    notes: Sequence[str] = (),
    dead_letters: int = 0,
    base: Below | None = None,
    index: Mapping[str, Any] | None = None,
    increment: bool = False,
) -> dict[str, Any]:
    """Put a manifest together; a pure function of its arguments, whose order does not matter.

    Args:
        settings: the job, resolved.
        steps: in the order of the flow.
        sources: every source of the job.
        shards: the exported files.
        lineage: files of fates (``scatter.fates``).
        tokenizer: identity of what counted the tokens, with ``estimated``.
        rules: rule -> version.
        parsers: parser -> version.
        domains: rows of ``plan.domains``.
        partitions: rows of ``plan.partitions``.
        notes: rows of ``plan.notes``.
        dead_letters: what the steps counted as dead, and one for every chunk that was given up.
        base: the version that an incremental one builds on, or None.
        index: the part of the index that this version adds: what later versions look for duplicates in.
        increment: whether it holds the documents of an interval only, and builds on nothing.

    Returns:
        A JSON-able mapping; write it with :func:`canonical_json`.

    """
    ordered = sorted(shards, key=lambda s: s.path)
    own = _totals(ordered)
    if base is not None:
        documents = {row["domain"]: row["documents"] for row in domains}
        for name, cell in own["by_domain"].items():
            cell["documents"] = documents.get(name, 0)
    return {
        "format": FORMAT,
        "dataset": settings.dataset.id,
        "base": dict(base.named) if base else None,
        **({"increment": True} if increment else {}),
        **({"tombstones": _file(base.tombstones), "own": own} if base else {}),
        **({"index": dict(index)} if index else {}),
        "job": job_settings(settings),
        "sources": [
            {
                "source_id": s.source_id,
                "kind": s.kind,
                "domain": s.domain,
                "files": s.files,
                "bytes": s.size,
                "sha256": s.sha256,
            }
            for s in sorted(sources, key=lambda s: s.source_id)
        ],
        "steps": [_step(s) for s in steps],
        "rules": dict(rules),
        "parsers": dict(parsers),
        "tokenizer": dict(tokenizer),
        "tokens_estimated": bool(tokenizer.get("estimated")),
        "plan": {"domains": list(domains), "partitions": list(partitions)},
        "notes": list(notes),
        "dead_letters": dead_letters,
        "shards": [
            {
                **_file(s),
                "tokens": s.attributes["tokens"],
                "documents": s.attributes["documents"],
                "partition": dict(s.attributes["partition"]),
            }
            for s in ordered
        ],
        "lineage": [_file(f) for f in sorted(lineage, key=lambda f: f.path)],
        "totals": own if base is None else _whole(own, base),
    }


def canonical_json(value: Mapping[str, Any]) -> bytes:
    """UTF-8 JSON with sorted keys, indented, ending in LF; equal values give equal bytes.

    Raises:
        ValueError: a number is NaN or infinite.

    """
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8")


def files_digest(files: Iterable[tuple[str, str]]) -> str:
    """Fingerprint of a source: hex SHA-256 over its sorted ``(path, hex SHA-256)`` pairs."""
    digest = hashlib.sha256()
    for path, sha256 in sorted(files):
        digest.update(f"{path}\x00{sha256}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def job_settings(settings: JobSettings) -> dict[str, Any]:
    """The settings that shaped the version: no places (paths, endpoints), and nothing of how the run went."""
    job = settings.model_dump(mode="json", exclude={"run", "drift", "sources", "schedule", "interval"})
    job["ingest"] = {"chunk_mb": job["ingest"]["chunk_mb"]}
    job["filter_model"].pop("endpoint")
    job["mixing"].pop("tokenizer")
    # Label, mode and date stand in the version's id: the same content again is the same manifest.
    job["output"].pop("version")
    job["output"].pop("retention")
    job["output"].pop("compact_after_days")
    job["sources"] = [
        {"source_id": s.source_id, "kind": s.kind, "domain": s.domain} for s in settings.sources
    ]
    return job


def _step(step: StepEntry) -> dict[str, Any]:
    counts = step.counts
    return {
        "name": step.name,
        "layer": step.layer,
        "fingerprint": step.fingerprint,
        "in": counts.documents_in,
        "kept": counts.kept,
        "rejected": counts.rejected,
        "dead": counts.dead,
        "skipped": dict(counts.skipped),
        "out": counts.documents_out,
        "rules": dict(step.rule_hits),
    }


def _file(entry: FileEntry) -> dict[str, Any]:
    return {"path": entry.path, "rows": entry.rows, "bytes": entry.size, "sha256": entry.sha256}


def _totals(shards: Sequence[FileEntry]) -> dict[str, Any]:
    """Rows and tokens of the whole version, by domain and by language."""
    by: dict[str, dict[str, dict[str, int]]] = {"domain": {}, "language": {}}
    for shard in shards:
        for domain, language, rows, tokens in shard.attributes["cells"]:
            for table, name in ((by["domain"], domain), (by["language"], language)):
                cell = table.setdefault(name, {"rows": 0, "tokens": 0})
                cell["rows"] += rows
                cell["tokens"] += tokens
    return {
        "rows": sum(s.rows for s in shards),
        "documents": sum(s.attributes["documents"] for s in shards),
        "tokens": sum(s.attributes["tokens"] for s in shards),
        "bytes": sum(s.size for s in shards),
        "by_domain": by["domain"],
        "by_language": by["language"],
    }


def _whole(own: Mapping[str, Any], base: Below) -> dict[str, Any]:
    """Totals of the whole: those of the base, less what is replaced, and the version's own."""
    whole: dict[str, Any] = {
        key: base.totals[key] - base.replaced.get(key, 0) + own[key]
        for key in ("rows", "documents", "tokens", "bytes")
    }
    for by, keys in (("by_domain", ("rows", "tokens", "documents")), ("by_language", ("rows", "tokens"))):
        names = sorted({*base.totals[by], *own[by]})
        cells = {}
        for name in names:
            below, gone, new = (t[by].get(name, {}) for t in (base.totals, base.replaced, own))
            cells[name] = {k: below.get(k, 0) - gone.get(k, 0) + new.get(k, 0) for k in keys}
        whole[by] = {name: cell for name, cell in cells.items() if any(cell.values())}
    return whole
