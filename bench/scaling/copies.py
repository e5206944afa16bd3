"""Corpora of twice, four and eight times the size, whose parts are no near duplicates of each other.

    python -m bench.scaling.copies DOCS OUT [--copies 8] [--workers 2]

DOCS holds Parquet files with text and id (of any type). A copy says everything in other words: the letters of
each word but the most frequent ones are exchanged, vowels for vowels and consonants for consonants, and
Chinese characters for others about as frequent, in a way that is the copy's own; digits are turned. So a copy
has the same lengths, the same duplicates within itself and nearly the same statistics, and no text in common
with the others. That is checked: of each document the share of shingles that stay as they were at their
place, and where it is high (and of every 200th), the exact Jaccard similarity of the shingle sets. A document
of .3 or more has its frequent words changed, too, and is left out if that does not help.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit

from bench.independent import key_text
from dataflow_ops.kernels.arrow import string_buffers

TOO_ALIKE = 0.3
_LOOK_CLOSELY = 0.2  # share of unmoved shingles
_EVERY = 200
_KEPT_WORDS, _KEPT_CHARACTERS, _BUCKET = 150, 30, 200
_ID_STEP = 1_000_000_000
_WORDS = re.compile(r"[A-Za-z]+")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_FIRST_HAN, _HANS = 0x4E00, 0x5200
U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Frequent:
    """Words and Chinese characters of the corpus, the most frequent first."""

    words: list[str]
    characters: list[str]


@dataclass
class Changed:
    """What became of some documents."""

    documents: int = 0
    looked_at: int = 0
    all_words: int = 0
    left_out: int = 0
    highest: float = 0.0

    def add(self, other: Changed) -> None:
        """Take in another file's."""
        self.documents += other.documents
        self.looked_at += other.looked_at
        self.all_words += other.all_words
        self.left_out += other.left_out
        self.highest = max(self.highest, other.highest)


def frequent(files: list[Path], rows: int = 3_000) -> Frequent:
    """Count words and characters in the first rows of each file."""
    words: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for path in files:
        batch = next(pq.ParquetFile(path).iter_batches(rows, columns=["text"]))
        for text in batch.column(0).to_pylist():
            words.update(_WORDS.findall(text.lower()))
            characters.update(_HAN.findall(text))
    return Frequent([w for w, _ in words.most_common(_KEPT_WORDS)], [c for c, _ in characters.most_common()])


@dataclass(frozen=True)
class Cipher:
    """How one copy exchanges letters (26), Chinese characters (by code point) and digits.

    Attributes:
        letters: uint8 of shape ``(26,)``.
        han: int32 of shape ``(0x5200,)``, code points from U+4E00 on.
        turn: added to digits, modulo ten.
        kept: hashes of words that stay, ascending.
    """

    letters: U8
    han: npt.NDArray[np.int32]
    turn: int
    kept: npt.NDArray[np.uint64]


def cipher(known: Frequent, copy: int, everything: bool = False) -> Cipher:
    """The cipher of a copy; ``everything``: frequent words and characters are exchanged, too."""
    rng = random.Random(copy)
    letters = np.arange(26, dtype=np.uint8)
    for group in ("aeiou", "bcdfghjklmnpqrstvwxyz"):
        places = [ord(c) - 97 for c in group]
        turn = rng.randrange(1, len(places))
        order = rng.sample(places, len(places))
        for at, place in enumerate(order):
            letters[place] = order[(at + turn) % len(order)]
    han = np.arange(_FIRST_HAN, _FIRST_HAN + _HANS, dtype=np.int32)
    free = [ord(c) for c in known.characters[0 if everything else _KEPT_CHARACTERS :]]
    seen = set(free) | {ord(c) for c in known.characters[:_KEPT_CHARACTERS]}
    free += [cp for cp in range(_FIRST_HAN, _FIRST_HAN + _HANS) if cp not in seen]
    for first in range(0, len(free), _BUCKET):  # frequent ones stay frequent
        bucket = free[first : first + _BUCKET]
        han[np.array(bucket) - _FIRST_HAN] = np.roll(rng.sample(bucket, len(bucket)), 1)
    hashes = [] if everything else sorted(_hash(w.encode()) for w in known.words)
    return Cipher(letters, han, rng.randrange(1, 10), np.array(hashes, np.uint64))


def _hash(word: bytes) -> int:
    found = 0
    for byte in word:
        found = (found * 0x100000001B3 + byte) % (1 << 64)
    return found


@njit(cache=True)
def _exchange(data, offsets, letters, han, turn, kept, out, unmoved):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the documents in other words, ``unmoved`` with the share of shingles that stay."""
    for row in range(offsets.size - 1):
        i, stop = offsets[row], offsets[row + 1]
        hans = 0
        while i < stop:
            b = data[i]
            low = b | 0x20
            if 97 <= low <= 122:
                end, h = i, np.uint64(0)
                while end < stop and 97 <= (data[end] | 0x20) <= 122:
                    h = h * np.uint64(0x100000001B3) + np.uint64(data[end] | 0x20)
                    end += 1
                at = np.searchsorted(kept, h)
                stays = at < kept.size and kept[at] == h
                for j in range(i, end):
                    out[j] = data[j] if stays else (data[j] & 0xE0) | (letters[(data[j] & 0x1F) - 1] + 1)
                i = end
            elif 48 <= b <= 57:
                out[i] = 48 + (b - 48 + turn) % 10
                i += 1
            elif b & 0xF0 == 0xE0 and i + 2 < stop:
                cp = (
                    (np.int64(b & 0x0F) << 12)
                    | (np.int64(data[i + 1] & 0x3F) << 6)
                    | np.int64(data[i + 2] & 0x3F)
                )
                if 0x4E00 <= cp < 0xA000:
                    cp = np.int64(han[cp - 0x4E00])
                    hans += 3
                out[i] = 0xE0 | (cp >> 12)
                out[i + 1] = 0x80 | ((cp >> 6) & 0x3F)
                out[i + 2] = 0x80 | (cp & 0x3F)
                i += 3
            else:
                out[i] = b
                i += 1
        size = 15 if 3 * hans > stop - offsets[row] else 13  # bytes: five Chinese characters, 13 letters
        same, whole = 0, 0
        for j in range(offsets[row], stop):
            same = same + 1 if out[j] == data[j] else 0
            whole += same >= size
        places = stop - offsets[row] - size + 1
        unmoved[row] = whole / places if places > 0 else 1.0


def exchanged(texts: pa.Array, by: Cipher) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Texts in other words, and the share of each one's shingles that stayed at their place."""
    data, offsets = string_buffers(texts)
    out, unmoved = np.empty_like(data), np.empty(len(texts))
    _exchange(data, offsets, by.letters, by.han, by.turn, by.kept, out, unmoved)
    whole = out.tobytes()
    bounds = offsets.tolist()
    return [whole[a:b].decode() for a, b in pairwise(bounds)], unmoved


def jaccard(a: str, b: str) -> float:
    """Exact, over the sets of shingles of the key texts, of the size that the product takes."""
    size = 5 if 3 * len(_HAN.findall(a)) > len(a) else 13
    one, two = ({t[i : i + size] for i in range(len(t) - size + 1)} for t in (key_text(a), key_text(b)))
    return len(one & two) / len(one | two) if one | two else 0.0


def change(texts: pa.Array, known: Frequent, copy: int) -> tuple[list[int], list[str], Changed]:
    """Rows that are kept, their texts in the copy's words, and what was done."""
    said = Changed(documents=len(texts))
    new, unmoved = exchanged(texts, cipher(known, copy))
    look = np.flatnonzero((unmoved > _LOOK_CLOSELY) | (np.arange(len(texts)) % _EVERY == 0))
    said.looked_at = len(look)
    alike = {i: jaccard(texts[i].as_py(), new[i]) for i in look.tolist()}
    again = [i for i, value in alike.items() if value >= TOO_ALIKE]
    if again:
        said.all_words = len(again)
        other, _ = exchanged(texts.take(pa.array(again)), cipher(known, copy, everything=True))
        for i, text in zip(again, other, strict=True):
            new[i], alike[i] = text, jaccard(texts[i].as_py(), text)
    out = {i for i, value in alike.items() if value >= TOO_ALIKE}
    said.left_out = len(out)
    said.highest = max((value for i, value in alike.items() if i not in out), default=0.0)
    rows = [i for i in range(len(texts)) if i not in out]
    return rows, [new[i] for i in rows], said


def ids_of(ids: pa.ChunkedArray, copy: int) -> pa.Array:
    """Ids of a copy's documents: small whole numbers stay numbers, all others become text.

    Args:
        ids: of the corpus.
        copy: which copy, from one on.
    """
    if pa.types.is_integer(ids.type):
        whole = ids.to_numpy()
        if not len(whole) or (whole.min() >= 0 and whole.max() < _ID_STEP):
            return pa.array(whole.astype(np.int64) + copy * _ID_STEP)
    texts = [value.hex() if isinstance(value, bytes) else str(value) for value in ids.to_pylist()]
    return pa.array([f"{text}-copy-{copy}" for text in texts], pa.large_string())


def write_copy(path: Path, out: Path, copy: int, known: Frequent) -> Changed:
    """One file of a copy."""
    table = pq.read_table(path)
    rows, texts, said = change(table["text"].combine_chunks(), known, copy)
    kept = table.take(pa.array(rows, pa.int64()))
    kept = kept.set_column(kept.schema.get_field_index("text"), "text", pa.array(texts, pa.large_string()))
    kept = kept.set_column(kept.schema.get_field_index("id"), "id", ids_of(kept["id"], copy))
    folder = out / f"copy-{copy}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(kept, folder / path.name, compression="zstd")
    return said


def _work(job: tuple[Path, Path, int, Frequent]) -> tuple[int, Changed]:
    path, out, copy, known = job
    return copy, write_copy(path, out, copy, known)


def main() -> int:
    """Write the copies; exit code 1 where more than 3 % of one had to be left out (symbols and numbers)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--copies", type=int, default=8, help="so many besides the corpus itself")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    began = time.monotonic()
    files = sorted(args.docs.glob("*.parquet"))
    if not files:
        parser.error(f"{args.docs} has no *.parquet file")
    for path in files:
        lacks = {"id", "text"} - set(pq.read_schema(path).names)
        if lacks:
            parser.error(f"{path} has no column {' and none '.join(sorted(lacks))}")
    known = frequent(files)
    sums = {copy: Changed() for copy in range(1, args.copies + 1)}
    jobs = [(path, args.out, copy, known) for copy in sums for path in files]
    with multiprocessing.get_context("spawn").Pool(args.workers) as pool:
        for done, (copy, said) in enumerate(pool.imap(_work, jobs), 1):
            sums[copy].add(said)
            print(f"\r{done} of {len(jobs)} files, {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)
    for copy, said in sums.items():
        print(
            f"copy {copy}: {said.documents - said.left_out:,} documents ({said.left_out} left out,"
            f" {said.all_words} with all words changed); highest Jaccard of {said.looked_at:,} looked at"
            f" {said.highest:.3f}"
        )
    return int(any(s.left_out > 0.03 * s.documents for s in sums.values()))


if __name__ == "__main__":
    sys.exit(main())
