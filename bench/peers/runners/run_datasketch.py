"""datasketch: a library; MinHash in bulk, its LSH with 16 bands of 8 rows, groups by union-find."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq
from clock import Clock
from datasketch import MinHash, MinHashLSH
from shingles import Groups, shingles


def main() -> None:
    docs, out = Path(sys.argv[2]), Path(sys.argv[3])
    clock = Clock(out)
    table = pq.read_table(docs, columns=["id", "text"])
    ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
    clock.begin()
    index, groups = MinHashLSH(num_perm=128, params=(16, 8)), Groups(len(ids))
    sets = ([s.encode() for s in set(shingles(text, 5))] for text in texts)
    for i, sketch in enumerate(MinHash.generator(sets, num_perm=128)):
        groups.join((i, *index.query(sketch)))
        index.insert(i, sketch, check_duplication=False)
    kept, found = groups.decided(ids)
    clock.end()
    clock.leave(kept, found)


if __name__ == "__main__":
    main()
