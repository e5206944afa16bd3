"""Which version an exported document's shard is in: a run's lineage names the shard alone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import DataFlowError
from dataflow_ops.observe.lineage import Lineage
from dataflow_ops.observe.reader import StepReader
from dataflow_ops.pipeline.chain import read_manifest
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.version_reader import LINEAGE, open_version
from dataflow_ops.schema import DOC_ID
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.opening import open_store


def placed(home: Home, state: StateStore, reader: StepReader, run_id: str, found: Lineage) -> Lineage:
    """Name the version beside the shard, of a document and of its survivor.

    Where the document stands in a compacted version that is current, or that the current one builds on, it is
    that version and the shard that holds it there. Else it is the version that the run made.

    Args:
        home: where versions lie.
        state: open state store.
        reader: reads the run's outputs.
        run_id: the run that ``found`` was read from.
        found: what its lineage says.
    """
    if found.survivor is not None:
        found = replace(found, survivor=placed(home, state, reader, run_id, found.survivor))
    made = _made_by(home, state, reader, run_id) if found.shard else None
    if made is None:
        return found
    here = replace(found, version=made.version_id)
    current = state.current(made.dataset)
    if current is None:
        return here
    # A version below that is damaged or gone can't tell where it went; what the run made stays true.
    with suppress(DataFlowError):
        for part in open_version(home, state, current.version_id, made.dataset).parts:
            if part.record.version_id != made.version_id:
                continue
            doc = pa.scalar(bytes.fromhex(found.doc_id), DOC_ID)
            if not pc.is_in(doc, value_set=part.hidden).as_py():
                return replace(here, version=part.holder, shard=part.shard(found.shard))
    return here


def _made_by(home: Home, state: StateStore, reader: StepReader, run_id: str) -> VersionRecord | None:
    """The version that a run made, or that was there with the same content; None before its export."""
    run = state.get_run(run_id)
    records = state.versions(run.dataset) if run is not None else []
    own = next((record for record in records if record.run_id == run_id), None)
    if own is not None:
        return own
    fates = {output.sha256 for _, output in reader.outputs(*LINEAGE)}
    for record in records:
        with suppress(DataFlowError):  # one whose manifest is damaged is none that could be named
            manifest = read_manifest(open_store(home.root), record)
            if fates and {entry["sha256"] for entry in manifest["lineage"]} == fates:
                return record
    return None
