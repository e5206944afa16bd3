"""A version's folder: links to published outputs, the manifest last. Its presence makes the folder whole."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.layers.export.verify import verify_script
from dataflow_ops.pipeline.facts import Facts
from dataflow_ops.pipeline.session import Session


@dataclass(frozen=True, slots=True)
class Published:
    """A version in its folder, recorded in state."""

    version_id: str
    manifest_uri: str
    manifest: dict[str, Any]


def publish(session: Session, facts: Facts) -> Published:
    """Link, write the manifest, record the version. The same manifest again is a no-op.

    Killed anywhere, the next attempt finds the links that exist, makes the others, and goes on.
    """
    settings, state, hooks = session.settings, session.state, session.context.hooks
    blobs = session.chunks.blobs
    data = canonical_json(facts.manifest)
    digest = hashlib.sha256(data).hexdigest()
    same = [v for v in state.versions(settings.dataset.id) if v.manifest_sha256 == digest]
    date = session.row.data_date or "undated"
    version_id = (
        same[0].version_id if same else f"{settings.output.version}-{session.row.mode}-{date}-{digest[:12]}"
    )
    folder = f"versions/{version_id}"
    hooks.reached("before publish publish")
    for path, output in facts.links.items():
        blobs.link(output.uri, f"{folder}/{path}")
    blobs.put(f"{folder}/verify.py", verify_script(), replace=True)
    blobs.put(f"{folder}/manifest.json", data)
    hooks.reached("after publish publish")
    if not same:
        hooks.reached("before commit publish")
        state.add_version(
            settings.dataset.id,
            version_id,
            digest,
            f"{folder}/manifest.json",
            session.context.run_id,
            "PUBLISHED",
        )
        hooks.reached("after commit publish")
    return Published(version_id, f"{folder}/manifest.json", facts.manifest)
