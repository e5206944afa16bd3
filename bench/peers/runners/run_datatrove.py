"""datatrove: its own executor, readers and steps, one worker; what survives is not written."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from clock import Clock
from datatrove.data import Document
from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    ExactDedupConfig,
    ExactDedupFilter,
    ExactDedupSignature,
    ExactFindDedups,
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupSignature,
)
from datatrove.pipeline.filters import C4QualityFilter, GopherQualityFilter, GopherRepetitionFilter
from datatrove.pipeline.readers import ParquetReader
from loguru import logger

LANGUAGES = ("eng", "zho")  # of the documents' first and second file


def text_of(doc: Document) -> str:
    return doc.text


class Run:
    """One stage over the documents, as few lines around datatrove as it takes."""

    def __init__(self, docs: Path, out: Path) -> None:
        self.docs, self.out = str(docs), out
        self.files = len(list(docs.glob("*.parquet")))
        self.kept: list[int] = []
        self.read: list[list[int]] = [[] for _ in range(self.files)]

    def execute(self, name: str, steps: list[object], tasks: int = 1, only: int | None = None) -> None:
        part = {} if only is None else {"local_tasks": 1, "local_rank_offset": only}
        logs = str(self.out / "logs" / name)
        LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=logs, **part).run()

    def reader(self) -> ParquetReader:
        return ParquetReader(self.docs, batch_size=1000, read_metadata=False)

    def sink(self, data, rank=0, world_size=1):  # type: ignore[no-untyped-def]
        for doc in data:
            self.kept.append(int(doc.id))
        yield from ()

    def note(self, data, rank=0, world_size=1):  # type: ignore[no-untyped-def]
        for doc in data:
            self.read[rank].append(int(doc.id))
            yield doc

    def filter(self, step: object) -> None:
        sink = lambda data, rank=0, world_size=1: self.sink(data, rank, world_size)  # noqa: E731
        self.execute("filter", [self.reader(), step, sink])

    def exact(self) -> None:
        config = ExactDedupConfig(content_getter=text_of)
        sink = lambda data, rank=0, world_size=1: self.sink(data, rank, world_size)  # noqa: E731
        signatures, found = str(self.out / "signatures"), str(self.out / "found")
        self.execute("1", [self.reader(), ExactDedupSignature(signatures, config)], self.files)
        self.execute("2", [ExactFindDedups(signatures, found, config)])
        self.execute("3", [self.reader(), ExactDedupFilter(found, config), sink], self.files)

    def minhash(self) -> dict[int, int]:
        """Signatures by the tokeniser of each file's language, buckets, clusters; not the last reading."""
        config = MinhashConfig(num_buckets=16, hashes_per_bucket=8)
        note = lambda data, rank=0, world_size=1: self.note(data, rank, world_size)  # noqa: E731
        signatures, pairs = str(self.out / "signatures"), str(self.out / "pairs")
        for rank in range(self.files):
            step = MinhashDedupSignature(signatures, config, language=LANGUAGES[rank])
            self.execute(f"1-{rank}", [self.reader(), note, step], self.files, only=rank)
        self.execute("2", [MinhashDedupBuckets(signatures, pairs, config=config)], 16)
        clusters = str(self.out / "clusters")
        self.execute("3", [MinhashDedupCluster(pairs, clusters, config, save_cluster_id=True)])
        groups = {}
        for rank, ids in enumerate(self.read):
            removed = {row for (row,) in numbers(self.out / "clusters" / f"{rank:06d}.remove", 1)}
            self.kept += [doc for row, doc in enumerate(ids) if row not in removed]
            for row, group in numbers(self.out / "clusters" / f"{rank:06d}.clusters", 2):
                groups[ids[row]] = -1 - group
        return groups


def numbers(path: Path, width: int) -> list[tuple[int, ...]]:
    data = path.read_bytes() if path.exists() else b""
    return list(struct.iter_unpack(f"<{width}I", data))


def main() -> None:
    stage, docs, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    logger.remove()
    clock, run, groups = Clock(out), Run(docs, out), None
    clock.begin()
    if stage == "minhash":
        groups = run.minhash()
    elif stage == "exact":
        run.exact()
    else:
        steps = {
            "repetition": GopherRepetitionFilter,
            "quality": GopherQualityFilter,
            "c4": C4QualityFilter,
        }
        run.filter(steps[stage](language=LANGUAGES[0]))
    clock.end()
    clock.leave(run.kept, groups)


if __name__ == "__main__":
    main()
