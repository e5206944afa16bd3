"""Corpora of twice, four and eight times the size, whose parts are no near duplicates of each other.

    python -m bench.scaling.copies DOCS OUT [--copies 8] [--workers 2]

DOCS holds Parquet files with id and text. A copy says everything in other words: each word but the most
frequent ones becomes another one of the same length, by a permutation that is the copy's own; Chinese
characters, digits and identifiers likewise. So a copy has the same lengths, the same duplicates within itself
and nearly the same statistics, and no text in common with the others. That is checked: of each document the
share of shingles that stay where they were, and where it is high, the exact Jaccard similarity of the shingle
sets; a document of .3 or more gets all its words changed, and is left out if that does not help.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.independent import key_text

TOO_ALIKE = 0.3
_TOKENS = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]+|[0-9]+")
_KEPT_WORDS, _KEPT_CHARACTERS = 150, 30
_LOOK_CLOSELY = 0.2  # share of unmoved shingles
_HAN = re.compile(r"[\u4e00-\u9fff]")
_ID_STEP = 1_000_000_000


@dataclass(frozen=True)
class Vocabulary:
    """Words and Chinese characters of the corpus, the most frequent first."""

    words: list[str]
    characters: list[str]


@dataclass
class Changed:
    """What became of one file's documents."""

    documents: int = 0
    looked_at: int = 0
    all_words: int = 0
    left_out: int = 0
    highest: float = 0.0
    rows: list[int] = field(default_factory=list)


class OtherWords:
    """One copy's permutation of words, characters and digits."""

    def __init__(self, vocabulary: Vocabulary, copy: int) -> None:
        rng = random.Random(copy)
        kept = set(vocabulary.words[:_KEPT_WORDS])
        self._words = _shuffled((w for w in vocabulary.words if w not in kept), rng)
        self._all = _shuffled(vocabulary.words, rng)
        free = vocabulary.characters[_KEPT_CHARACTERS:]
        self._han: dict[str, str] = {}
        for first in range(0, len(free), 200):  # frequent ones stay frequent
            bucket = free[first : first + 200]
            self._han |= dict(zip(bucket, rng.sample(bucket, len(bucket)), strict=True))
        self._han_table = str.maketrans(self._han)
        every = vocabulary.characters
        self._every_table = str.maketrans(dict(zip(every, rng.sample(every, len(every)), strict=True)))
        digits = "0123456789"
        turn = rng.randrange(1, 10)
        self._digits = str.maketrans(digits, digits[turn:] + digits[:turn])

    def text(self, text: str, everything: bool = False) -> str:
        """The text in the copy's words; ``everything``: also its most frequent ones."""
        words = self._all if everything else self._words
        han = self._every_table if everything else self._han_table

        def other(match: re.Match[str]) -> str:
            token = match[0]
            if token[0] > "z":
                return token.translate(han)
            if token[0] <= "9":
                return token.translate(self._digits)
            low = token.lower()
            new = words.get(low, low)
            return new.upper() if token.isupper() else new.capitalize() if token[0].isupper() else new

        return _TOKENS.sub(other, text)


def _shuffled(words: Iterable[str], rng: random.Random) -> dict[str, str]:
    by_length: dict[int, list[str]] = {}
    for word in words:
        by_length.setdefault(len(word), []).append(word)
    found: dict[str, str] = {}
    for same in by_length.values():
        found |= dict(zip(same, rng.sample(same, len(same)), strict=True))
    return found


def vocabulary_of(texts: Iterable[str]) -> Vocabulary:
    """Count words and characters."""
    words: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for text in texts:
        for token in _TOKENS.findall(text):
            if token[0] > "z":
                characters.update(token)
            elif token[0] > "9":
                words[token.lower()] += 1
    return Vocabulary([w for w, _ in words.most_common()], [c for c, _ in characters.most_common()])


def size_of_shingle(text: str) -> int:
    """5 characters where most are Chinese, else 13, as the product has it."""
    return 5 if 3 * len(_HAN.findall(text)) > len(text) else 13


def unmoved(a: str, b: str, size: int) -> float:
    """Share of the runs of ``size`` characters of one text that stand at the same place in the other."""
    if len(a) != len(b) or len(a) < size:
        return 1.0
    same = np.frombuffer(a.encode("utf-32-le"), np.uint32) == np.frombuffer(b.encode("utf-32-le"), np.uint32)
    sums = np.concatenate([[0], np.cumsum(same)])
    return float((sums[size:] - sums[:-size] == size).mean())


def jaccard(a: str, b: str, size: int) -> float:
    """Exact, over the sets of shingles of the key texts."""
    one, two = ({t[i : i + size] for i in range(len(t) - size + 1)} for t in (key_text(a), key_text(b)))
    return len(one & two) / len(one | two) if one | two else 0.0


def change(texts: Mapping[int, str], mapping: OtherWords) -> tuple[list[str], Changed]:
    """Texts in other words, without those that stay too alike; and what was done."""
    said, out = Changed(), []
    for row, text in texts.items():
        said.documents += 1
        new, size = mapping.text(text), size_of_shingle(text)
        alike = 0.0
        if unmoved(text, new, size) > _LOOK_CLOSELY or said.documents % 50 == 0:
            said.looked_at += 1
            alike = jaccard(text, new, size)
            if alike >= TOO_ALIKE:
                said.all_words += 1
                new = mapping.text(text, everything=True)
                alike = jaccard(text, new, size)
        if alike >= TOO_ALIKE:
            said.left_out += 1
            continue
        said.highest = max(said.highest, alike)
        said.rows.append(row)
        out.append(new)
    return out, said


_shared: Vocabulary | None = None


def _work(job: tuple[Path, Path, int]) -> tuple[int, Changed]:
    path, out, copy = job
    assert _shared is not None, "set before the workers were forked"
    table = pq.read_table(path)
    texts, said = change(dict(enumerate(table["text"].to_pylist())), OtherWords(_shared, copy))
    kept = table.take(pa.array(said.rows, pa.int64()))
    at = kept.schema.get_field_index("text")
    kept = kept.set_column(at, "text", pa.array(texts, pa.large_string()))
    ids = kept["id"].to_numpy() + copy * _ID_STEP
    kept = kept.set_column(kept.schema.get_field_index("id"), "id", pa.array(ids))
    folder = out / f"copy-{copy}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(kept, folder / path.name, compression="zstd")
    said.rows = []
    return copy, said


def main() -> int:
    """Write the copies; exit code 1 where documents had to be left out of one by more than 1 %."""
    global _shared
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--copies", type=int, default=8, help="so many besides the corpus itself")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    began = time.monotonic()
    files = sorted(args.docs.glob("*.parquet"))
    columns = (batch for f in files for batch in pq.ParquetFile(f).iter_batches(columns=["text"]))
    _shared = vocabulary_of(text for batch in columns for text in batch.column(0).to_pylist())
    print(f"{len(_shared.words):,} words, {len(_shared.characters):,} characters", flush=True)
    sums = {copy: Changed() for copy in range(1, args.copies + 1)}
    jobs = [(path, args.out, copy) for copy in sums for path in files]
    with multiprocessing.get_context("fork").Pool(args.workers) as pool:
        for done, (copy, said) in enumerate(pool.imap(_work, jobs), 1):
            total = sums[copy]
            for name in ("documents", "looked_at", "all_words", "left_out"):
                setattr(total, name, getattr(total, name) + getattr(said, name))
            total.highest = max(total.highest, said.highest)
            print(f"\r{done} of {len(jobs)} files, {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)
    for copy, said in sums.items():
        print(
            f"copy {copy}: {said.documents - said.left_out:,} documents ({said.left_out} left out,"
            f" {said.all_words} with all words changed); highest Jaccard of {said.looked_at:,} looked at"
            f" {said.highest:.3f}"
        )
    return int(any(s.left_out > 0.01 * s.documents for s in sums.values()))


if __name__ == "__main__":
    sys.exit(main())
