"""A side for steps of this layer: inputs from memory, sources from disk, blobs in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from dataflow_ops.layers.ingest.sources import open_path
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Numbers


@dataclass
class FolderSide:
    settings: JobSettings
    folder: Path
    inputs: Mapping[tuple[str, str], pa.Table] = field(default_factory=dict)
    partition: str = "all"
    numbers: Numbers = field(default_factory=lambda: Numbers(4, 4, 4, 4, 4))
    memory_budget: int = 1 << 30
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def scratch(self) -> Path:
        path = self.folder / "scratch"
        path.mkdir(exist_ok=True)
        return path

    def tables(self, step: str, kind: str) -> Iterator[tuple[str, pa.Table]]:
        yield "all", self.inputs[(step, kind)]

    def table(self, step: str, kind: str) -> pa.Table:
        return self.inputs[(step, kind)]

    def lookup(self, step: str, kind: str, partition: str, slice_name: str = "") -> pa.Table:
        raise NotImplementedError

    def checkpoint(self) -> None:
        """Nobody asks for a pause."""

    def open_source(self, source_id: str, path: str, location: str = "") -> BinaryIO:
        if location:
            return open(self.folder / location, "rb")
        return open_path(next(s for s in self.settings.sources if s.source_id == source_id), path)

    def store_raw(self, data: Iterable[bytes], mark: str = "") -> tuple[str, str, int]:
        body = b"".join(data)
        name = hashlib.sha256(body).hexdigest()
        (self.folder / name).write_bytes(body)
        self.marks[mark] = name
        return name, name, len(body)

    def known_raw(self, mark: str) -> str:
        return self.marks.get(mark, "")
