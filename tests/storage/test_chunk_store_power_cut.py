"""Power cuts at every durable step of a task's outputs."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from dataflow_ops.protocols import OutputSpec
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.values import Output
from tests.storage.power_cut import PowerCut, PowerCutDisk
from tests.storage.test_chunk_store import KEY, SCHEMA, make


def two_outputs(store: ChunkStore) -> list[Output]:
    specs = {"a": OutputSpec("a", SCHEMA), "b": OutputSpec("b", SCHEMA, "chunk")}
    writer = store.writer("filter", "00ff", KEY, 1, specs)
    try:
        writer.append("a", make(30))
        writer.append("b", make(30).append_column("slice", pa.array([str(i % 2) for i in range(30)])))
        return writer.finish()
    finally:
        writer.abort()


@pytest.mark.parametrize("keep_names", [False, True])
def test_power_cut_at_every_step_of_a_task(tmp_path: Path, keep_names: bool) -> None:
    trial = PowerCutDisk(tmp_path / "trial")
    expected = [o.sha256 for o in two_outputs(ChunkStore(LocalStore(tmp_path / "trial", trial)))]
    for step in range(len(trial.steps)):
        root = tmp_path / str(step)
        disk = PowerCutDisk(root, stop_at=step)
        with pytest.raises(PowerCut):
            two_outputs(ChunkStore(LocalStore(root, disk)))
        disk.power_cut(keep_names)
        store = ChunkStore(LocalStore(root))
        for uri in store.listing():
            assert hashlib.sha256(store.blobs.read(uri)).hexdigest() in expected
        outputs = two_outputs(store)
        assert [o.sha256 for o in outputs] == expected
        assert store.check_present(outputs, store.listing())
