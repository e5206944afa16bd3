from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.errors import ObjectStoreAway, Paused
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.ingest.outcomes import awaited
from tests.layers.ingest.side import FolderSide


class Asked(FolderSide):
    def checkpoint(self) -> None:
        raise Paused("somebody asked for a pause")


def side(kind: type[FolderSide], folder: Path) -> FolderSide:
    return kind(parse_job({"dataset": {"id": "t"}, "sources": [{"path": "x"}]}), folder)


def test_a_pause_does_not_wait_for_a_silent_server(tmp_path: Path) -> None:
    answer = threading.Event()

    def silent() -> Iterator[bytes]:
        yield b"first"
        answer.wait()
        yield b"never read"

    read: list[bytes] = []
    try:
        with pytest.raises(Paused):
            read.extend(awaited(silent(), side(Asked, tmp_path)))
    finally:
        answer.set()
    assert read == [b"first"]


def test_blocks_come_in_order_and_errors_through(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield from (b"1", b"", b"2")
        raise ObjectStoreAway("away")

    read: list[bytes] = []
    with pytest.raises(ObjectStoreAway):
        read.extend(awaited(broken(), side(FolderSide, tmp_path)))
    assert read == [b"1", b"", b"2"]
