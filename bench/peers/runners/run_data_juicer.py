"""data-juicer: its operators over its own data set class, in one process; reading and writing not counted."""

from __future__ import annotations

import sys
from pathlib import Path

from clock import Clock
from data_juicer.core.data import NestedDataset
from data_juicer.ops import base_op, deduplicator, filter, mapper
from data_juicer.ops.deduplicator import document_minhash_deduplicator as minhash
from data_juicer.utils.constant import Fields
from data_juicer.utils.lazy_loader import LazyLoader
from datasets import disable_progress_bars, load_dataset
from loguru import logger

ONE = {"num_proc": 1, "auto_op_parallelism": False, "turbo": True}
BANDS = {"num_permutations": 128, "num_bands": 16, "num_rows_per_band": 8}
OPERATORS = {
    "exact": [lambda: deduplicator.DocumentDeduplicator(**ONE)],
    "minhash-words": [lambda: minhash.DocumentMinhashDeduplicator("space", **BANDS, **ONE)],
    "minhash-characters": [lambda: minhash.DocumentMinhashDeduplicator("character", **BANDS, **ONE)],
    "alphanumeric": [lambda: filter.AlphanumericFilter(**ONE)],
    "repetition-words": [lambda: filter.WordRepetitionFilter(**ONE)],
    "repetition-characters": [lambda: filter.CharacterRepetitionFilter(**ONE)],
    "unicode": [lambda: mapper.FixUnicodeMapper(**ONE)],
}
seen: list[minhash.UnionFind] = []


class Seen(minhash.UnionFind):
    """Its union-find, kept so that the groups can be read afterwards."""

    def __init__(self) -> None:
        super().__init__()
        seen.append(self)


def no_install(*args: object, **named: object) -> None:
    raise RuntimeError("it would install a package while it runs: add that to its environment")


def main() -> None:
    stage, docs, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    logger.remove()
    disable_progress_bars()
    minhash.UnionFind = Seen
    LazyLoader._install_package = no_install
    # After each operator it imports torch (4 GB) to empty the cache of a GPU that is not there.
    base_op.free_models = lambda: None
    clock = Clock(out)
    operators = [make() for make in OPERATORS[stage]]
    files = sorted(map(str, docs.glob("*.parquet")))
    data = load_dataset("parquet", data_files=files, split="train").select_columns(["id", "text"])
    ids = data["id"][:]
    if "minhash" not in stage and stage not in ("exact", "unicode"):
        data = data.add_column(Fields.stats, [{}] * len(data))
    data = NestedDataset(data)
    clock.begin()
    for operator in operators:
        data = operator.run(data)
    kept = data["id"][:]
    clock.end()
    groups = None
    if seen:
        groups = {doc: int(ids[seen[-1].find(i)]) for i, doc in enumerate(ids)}
    clock.leave(kept, groups)


if __name__ == "__main__":
    main()
