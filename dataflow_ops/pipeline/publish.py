"""A version's folder: links to published outputs, the manifest last. Its presence makes the folder whole."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from dataflow_ops.errors import OutputConflict
from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.layers.export.verify import verify_script
from dataflow_ops.pipeline.facts import Facts
from dataflow_ops.pipeline.session import Session
from dataflow_ops.pipeline.version_states import REMOVED, WAITING
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.values import Output


@dataclass(frozen=True, slots=True)
class Published:
    """A version in its folder, recorded in state; ``before`` is its state before this run, ``""`` if new."""

    version_id: str
    manifest_uri: str
    manifest: dict[str, Any]
    before: str = ""


SHIPPED = (("export", ""), ("scatter", "fates"))
"""``(step, kind)`` of what a version links to; an empty kind means all."""
READ_WHOLE = (("discover", "chunks"), ("fetch", "files"), ("plan", ""))
"""``(step, kind)`` of what manifest and report are gathered from."""
_HASHED_AT_ONCE = 4


def known_version(session: Session, facts: Facts) -> VersionRecord | None:
    """The version that has this very manifest already."""
    digest = hashlib.sha256(canonical_json(facts.manifest)).hexdigest()
    versions = session.state.versions(session.settings.dataset.id)
    return next((v for v in versions if v.manifest_sha256 == digest), None)


def damaged_outputs(session: Session, of: Sequence[tuple[str, str]]) -> list[str]:
    """Keys of tasks that have an output whose stored bytes are not those that were recorded.

    Every byte is read, so that a disk's silent fault in a finished task never reaches a version.
    """
    index = session.driver.index
    outputs = [
        (record.key, output)
        for step, kind in of
        for record in index.finished(step).values()
        for output in record.outputs
        if kind in ("", output.kind)
    ]
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        whole = pool.map(session.chunks.verify, [output for _, output in outputs])
        return list(dict.fromkeys(key for (key, _), good in zip(outputs, whole, strict=True) if not good))


def _link(session: Session, output: Output, uri: str) -> None:
    """Link an output into a version's folder; a copy there that has rotted is put aside first.

    The folder's name holds the manifest's hash, so its files can have one content only: where the output is
    as recorded, whatever else lies there is damaged.
    """
    blobs = session.chunks.blobs
    try:
        blobs.link(output.uri, uri)
    except OutputConflict:
        if not session.chunks.verify(output):
            raise
        session.driver.reporter.note(f"{uri}: the published copy is damaged; put aside and linked anew")
        blobs.quarantine(uri)
        blobs.link(output.uri, uri)


def publish(session: Session, facts: Facts) -> Published:
    """Link, write the manifest, record the version. The same manifest again is a no-op.

    Killed anywhere, the next attempt finds the links that exist, makes the others, and goes on.
    """
    settings, state, hooks = session.settings, session.state, session.context.hooks
    blobs = session.chunks.blobs
    data = canonical_json(facts.manifest)
    digest = hashlib.sha256(data).hexdigest()
    known = known_version(session, facts)
    date = session.row.data_date or "undated"
    new_id = f"{settings.output.version}-{session.row.mode}-{date}-{digest[:12]}"
    version_id = known.version_id if known else new_id
    folder = f"versions/{version_id}"
    if known and known.state == REMOVED:
        # Before its files are linked again: whoever removes them looks at the state while it does.
        state.set_version_state(
            settings.dataset.id, version_id, WAITING, events.RESTORED, session.context.run_id
        )
    hooks.reached("before publish publish")
    for path, output in facts.links.items():
        _link(session, output, f"{folder}/{path}")
    for path, content in facts.files.items():
        # The folder's name holds the manifest's hash, and the manifest that of this file.
        blobs.put(f"{folder}/{path}", content, replace=True)
    blobs.put(f"{folder}/verify.py", verify_script(), replace=True)
    blobs.put(f"{folder}/manifest.json", data)
    hooks.reached("after publish publish")
    if not known:
        hooks.reached("before commit publish")
        record = state.add_version(
            settings.dataset.id,
            version_id,
            digest,
            f"{folder}/manifest.json",
            session.context.run_id,
            # A kill before the end of the run must not leave a version that looks approved.
            WAITING,
            session.parent.version if session.parent is not None else None,
        )
        hooks.reached("after commit publish")
        if record.version_id != version_id:
            # Another day with the same content came first: its version is this one, and one folder is enough.
            for blob in list(blobs.list(f"{folder}/")):
                blobs.delete(blob.uri)
            return Published(record.version_id, record.manifest_uri, facts.manifest, record.state)
    before = known.state if known else ""
    return Published(version_id, f"{folder}/manifest.json", facts.manifest, before)
