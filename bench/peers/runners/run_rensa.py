"""rensa: a library; around it the few lines that its guide shows."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq
from clock import Clock
from rensa import RMinHash, RMinHashDeduplicator, RMinHashLSH
from shingles import Groups, shingles


def groups_of(texts: list[str], ids: list[int]) -> tuple[list[int], dict[int, int]]:
    """LSH candidates joined to groups, as the other peers do."""
    sketches = RMinHash.from_token_sets((shingles(text, 5) for text in texts), num_perm=128, seed=42)
    index = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16)
    index.insert_many(sketches)
    groups = Groups(len(ids))
    for i, found in enumerate(index.query_all(sketches)):
        groups.join((i, *found))
    return groups.decided(ids)


def kept_of(texts: list[str], ids: list[int]) -> list[int]:
    """Its deduplicator on words, which checks candidates against the estimate; it names no groups."""
    dedup = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True, num_bands=16)
    keep = dedup.add_pairs((str(i), shingles(text, 1)) for i, text in enumerate(texts))
    return [doc for doc, stays in zip(ids, keep, strict=True) if stays]


def main() -> None:
    stage, docs, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    clock = Clock(out)
    table = pq.read_table(docs, columns=["id", "text"])
    ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
    clock.begin()
    groups = None
    if stage == "minhash":
        kept, groups = groups_of(texts, ids)
    else:
        kept = kept_of(texts, ids)
    clock.end()
    clock.leave(kept, groups)


if __name__ == "__main__":
    main()
