"""What a compaction's steps made, held against what they read, and the manifest of the version."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from dataflow_ops.engine.inputs import digest_of
from dataflow_ops.errors import ContentMismatch, VersionError
from dataflow_ops.layers.export.content import Content
from dataflow_ops.layers.export.manifest import (
    FileEntry,
    SourceEntry,
    StepEntry,
    build_manifest,
    files_digest,
)
from dataflow_ops.pipeline.chain import Link, index_of
from dataflow_ops.pipeline.compact_chain import Chain
from dataflow_ops.pipeline.compact_plan import Group, moved
from dataflow_ops.pipeline.facts import Facts
from dataflow_ops.pipeline.replaced import PATH, replaced_file, replaced_so_far
from dataflow_ops.pipeline.session import Session
from dataflow_ops.values import Counts, Output, Slice

ASIDE = {"not_sampled": "not_sampled", "duplicate": "duplicate", "rejected": "rejected_before"}
"""Fate -> how step ``scatter`` of a manifest counts it."""


def content_by_folder(groups: Sequence[Group], packed: Mapping[str, Output]) -> dict[str, Content]:
    """The content of the new shards by partition, held against that of the old ones.

    Both were read from their files: the old ones by ``weigh``, the new ones by ``pack``. A shard that is
    taken over as it is stands for itself; the SHA-256 of its file says so.

    Args:
        groups: the new shards with the content of the old ones.
        packed: name of group -> what ``pack`` wrote.

    Raises:
        ContentMismatch: they differ.
    """
    old: dict[str, Content] = {}
    new: dict[str, Content] = {}
    for group in groups:
        folder = group.sources[0].folder
        old[folder] = old.get(folder, Content()) + group.content
        made = group.content if group.taken_over else _measured(packed[group.name])
        new[folder] = new.get(folder, Content()) + made
    for folder, before in old.items():
        after = new[folder]
        if before != after:
            told = (
                f"{before.rows:,} rows before and {after.rows:,} after"
                if before.rows != after.rows
                else "the same rows in another order"
                if before.ids == after.ids
                else "other rows"
            )
            raise ContentMismatch(
                f"compacted shards of '{folder or '.'}' do not hold what the old ones hold ({told}): nothing"
                " was published. Check the disk and memory of this machine, then compact again"
            )
    return new


def _measured(output: Output) -> Content:
    found: Any = output.attributes["content"]
    return Content.from_json(found)


def gather_compaction(session: Session, chain: Chain, groups: Sequence[Group]) -> Facts:
    """Manifest and files of the compacted version.

    Raises:
        ContentMismatch: the new shards do not hold what the old ones hold.
        VersionError: a shard to be taken over as it is has been damaged.
    """
    index, state, blobs = session.driver.index, session.state, session.chunks.blobs
    packed = {partition: record.outputs[0] for partition, record in index.finished("pack").items()}
    by_folder = content_by_folder(groups, packed)
    behind = index_of(state, blobs, session.settings.dataset.id, chain.top.record.version_id)
    links: dict[str, Output] = {}
    shards = []
    for group in groups:
        output = _taken_over(session, group) if group.taken_over else packed[group.name]
        content = group.content if group.taken_over else _measured(output)
        links[group.path] = output
        shards.append(_shard(group, output, content))
    lineage = []
    for name, output in index.outputs("trace", "fates"):
        path = f"lineage/part-{name}.parquet"
        links[path] = output
        lineage.append(FileEntry(path, output.rows, output.size, output.sha256))
    replaced, rows = replaced_file(replaced_so_far(chain.links, chain.hidden, blobs))
    top = chain.top.manifest
    whole = sum((by_folder[folder] for folder in sorted(by_folder)), Content())
    manifest = build_manifest(
        settings=session.settings,
        steps=_steps(session, chain),
        sources=_sources(session, behind),
        shards=shards,
        lineage=lineage,
        tokenizer=top["tokenizer"],
        rules=top["rules"],
        parsers=top["parsers"],
        domains=_domains(whole),
        partitions=[],
        notes=list(dict.fromkeys(note for link in chain.links for note in link.manifest["notes"])),
        dead_letters=sum(link.manifest["dead_letters"] for link in chain.links),
        index=_index(behind),
    )
    manifest["tokens_estimated"] = any(link.manifest["tokens_estimated"] for link in chain.links)
    for row in manifest["plan"]["domains"]:
        manifest["totals"]["by_domain"][row["domain"]]["documents"] = row["documents"]
    manifest["compacted"] = {
        "version": chain.top.record.version_id,
        "manifest_sha256": chain.top.record.manifest_sha256,
        "replaced": {
            "path": PATH,
            "rows": rows,
            "bytes": len(replaced),
            "sha256": hashlib.sha256(replaced).hexdigest(),
        },
        "content": {
            folder: {key: content.as_json()[key] for key in ("rows", "order", "ids")}
            for folder, content in sorted(by_folder.items())
        },
        "shards": _moved(chain, groups),
    }
    return Facts(manifest, links, {}, {}, [], {PATH: replaced})


def _taken_over(session: Session, group: Group) -> Output:
    file = group.sources[0]
    whole = Slice("", 0, file.size, file.sha256, file.rows)
    output = Output("shard", file.uri, file.size, 0, file.sha256, file.rows, (whole,))
    if not session.chunks.verify(output):
        raise VersionError(f"{file.uri} is no longer what was published; restore it, then compact again")
    return output


def _shard(group: Group, output: Output, content: Content) -> FileEntry:
    attributes = {
        "tokens": content.tokens,
        "documents": content.documents,
        "partition": group.sources[0].partition,
        "cells": [[domain, lang, rows, t] for (domain, lang), (rows, t, _) in sorted(content.cells.items())],
    }
    return FileEntry(group.path, output.rows, output.size, output.sha256, attributes)


def _steps(session: Session, chain: Chain) -> list[StepEntry]:
    """Two: what became of the old lineage, and the fates that the new one tells."""
    traced = session.state.metrics_of_run(session.context.run_id)["trace"]
    dead = sum(step["dead"] for link in chain.links for step in link.manifest["steps"])
    counts = traced.counts
    fates = {
        name.removeprefix("fate_"): int(n) for name, n in traced.metrics.items() if name.startswith("fate_")
    }
    skipped = {aside: fates[fate] for fate, aside in ASIDE.items() if fates.get(fate)}
    compact = Counts(
        documents_in=counts.documents_in + dead,
        kept=counts.kept,
        dead=dead,
        skipped={reason: n for reason, n in counts.skipped.items() if n},
        documents_out=counts.kept,
    )
    exported = fates.get("exported", 0)
    scatter = Counts(documents_in=sum(fates.values()), kept=exported, skipped=skipped, documents_out=exported)
    prints = [digest_of(session.driver.steps[name].fingerprint()) for name in ("pack", "trace")]
    return [
        StepEntry("compact", "export", prints[0], compact),
        StepEntry("scatter", "export", prints[1], scatter),
    ]


def _sources(session: Session, behind: Sequence[Link]) -> list[SourceEntry]:
    """Files of the versions made from sources, each as the uppermost read it."""
    found: dict[str, dict[str, list[tuple[str, str, int]]]] = {
        s.source_id: {} for s in session.settings.sources
    }
    for link in reversed(behind):
        known = {source: set(files) for source, files in found.items()}
        for output in session.state.outputs_of_step(link.record.run_id, "fetch", "files").values():
            if not output.rows:
                continue
            table = session.chunks.read(output, "", ("source_id", "path", "start", "size", "sha256"))
            for row in table.to_pylist():
                source = row["source_id"]
                if source in found and row["path"] not in known[source]:
                    part = (f"{row['path']}@{row['start']}", row["sha256"], row["size"])
                    found[source].setdefault(row["path"], []).append(part)
    entries = []
    for s in session.settings.sources:
        parts = [part for file in found[s.source_id].values() for part in file]
        digest = files_digest((name, sha256) for name, sha256, _ in parts)
        size = sum(size for _, _, size in parts)
        entries.append(SourceEntry(s.source_id, s.kind, s.domain, len(found[s.source_id]), size, digest))
    return entries


def _index(behind: Sequence[Link]) -> dict[str, Any] | None:
    """What days above look for duplicates in: the parts that the runs left, where they left them."""
    parts = [link.manifest.get("index") for link in behind]
    if any(part is None for part in parts):
        return None
    whole = [part for part in parts if part is not None]
    lines = "".join(f"{part['sha256']}\n" for part in whole)
    return {
        "documents": sum(part["documents"] for part in whole),
        "bytes": sum(part["bytes"] for part in whole),
        "ranges": whole[-1]["ranges"],
        "signed_by": whole[-1]["signed_by"],
        "sha256": hashlib.sha256(lines.encode()).hexdigest(),
        "parts": [
            {"version": link.record.version_id, "manifest_sha256": link.record.manifest_sha256}
            for link in behind
        ],
    }


def _domains(whole: Content) -> list[dict[str, Any]]:
    """What was drawn of each domain, in all."""
    sums: dict[str, list[int]] = {}
    for (domain, _), numbers in whole.cells.items():
        mine = sums.setdefault(domain, [0, 0, 0])
        for at, number in enumerate(numbers):
            mine[at] += number
    return [
        {"domain": domain, "drawn_rows": rows, "drawn_tokens": tokens, "documents": documents}
        for domain, (rows, tokens, documents) in sorted(sums.items())
    ]


def _moved(chain: Chain, groups: Sequence[Group]) -> list[dict[str, str]]:
    """For each of the versions made from sources: its shard -> where its rows are now."""
    now = moved(groups)
    found: list[dict[str, str]] = []
    for place, link in enumerate(chain.links):
        mine = {old: path for (at, old), path in now.items() if at == place}
        if link.record.is_compact:
            # What was put together before went from shard to shard.
            for before in link.manifest["compacted"]["shards"]:
                found.append({old: mine[path] for old, path in before.items() if path in mine})
        else:
            found.append(mine)
    return [dict(sorted(one.items())) for one in found]
