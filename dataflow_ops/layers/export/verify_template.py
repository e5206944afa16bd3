#!/usr/bin/env python3
"""Checks that this version of the data set is whole, without the software that made it.

Needs Python 3.9 or later and pyarrow (pip install pyarrow); for jsonl.zst shards also zstandard. Run it
where it lies:

    python verify.py [FOLDER] [--ids-per-pass N]

It checks the SHA-256, rows and tokens of every shard and lineage file against manifest.json, that no
step lost or made up a record, that ids are unique, that every duplicate's survivor is there and is no
duplicate itself, and that the documents called exported are those in the shards, each in the shard that
its lineage names. Memory is bounded: ids are looked at range by range.

Ends with 0 when all is well, else with 1.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError:
    sys.exit("verify.py needs pyarrow: pip install pyarrow")

FORMAT = 1
SHOWN = 5
ROWS = 65_536


class Report:
    """Collects the outcome of checks and prints them as a table."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int, list[str]]] = []

    def add(self, name: str, checked: int, problems: list[str]) -> None:
        """Record one check: what, how many things it looked at, and what is wrong."""
        self.lines.append((name, checked, problems))

    def show(self) -> bool:
        """Print the table; return whether everything is well."""
        width = max(len(name) for name, _, _ in self.lines)
        for name, checked, problems in self.lines:
            print(f"{name:<{width}}  {checked:>14,}  {'FAILED' if problems else 'ok'}")
            for problem in problems[:SHOWN]:
                print(f"{'':<{width}}  - {problem}")
            if len(problems) > SHOWN:
                print(f"{'':<{width}}  - and {len(problems) - SHOWN:,} more")
        good = not any(problems for _, _, problems in self.lines)
        print("All is well." if good else "This version is NOT whole.")
        return good


def main() -> int:
    """Run every check."""
    parser = argparse.ArgumentParser(description="Checks that a version of a data set is whole.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument(
        "--ids-per-pass", type=int, default=5_000_000, help="documents held in memory at once"
    )
    options = parser.parse_args()
    root: Path = options.folder
    try:
        manifest = json.loads((root / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        print(f"manifest.json can't be read: {e}")
        return 1
    if manifest.get("format") != FORMAT:
        print(f"manifest.json has format {manifest.get('format')!r}; this verify.py knows {FORMAT}")
        return 1
    print(f"{manifest['dataset']}: {root.resolve().name}")
    report = Report()
    sound = check_hashes(root, manifest["shards"], "shards: SHA-256 and size", report)
    sound &= check_hashes(root, manifest["lineage"], "lineage: SHA-256 and size", report)
    check_steps(manifest, report)
    check_totals(manifest, report)
    if sound:
        check_shards(root, manifest["shards"], report)
        check_documents(root, manifest, options.ids_per_pass, report)
    else:
        report.add("contents", 0, ["not looked at, because files are missing or damaged"])
    return 0 if report.show() else 1


def check_hashes(root: Path, files: list[dict[str, Any]], name: str, report: Report) -> bool:
    """Compare bytes on disk with the manifest."""
    problems = []
    for entry in files:
        path = root / entry["path"]
        if not path.is_file():
            problems.append(f"{entry['path']}: missing")
            continue
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
        if path.stat().st_size != entry["bytes"]:
            problems.append(f"{entry['path']}: {path.stat().st_size:,} bytes, not {entry['bytes']:,}")
        elif digest.hexdigest() != entry["sha256"]:
            problems.append(f"{entry['path']}: SHA-256 {digest.hexdigest()}, not {entry['sha256']}")
    report.add(name, len(files), problems)
    return not problems


def check_steps(manifest: dict[str, Any], report: Report) -> None:
    """Every record that a step took in was kept, rejected, dead or skipped, and went on to the next step."""
    problems = []
    steps = {s["name"]: s for s in manifest["steps"]}
    for step in manifest["steps"]:
        out = step["kept"] + step["rejected"] + step["dead"] + sum(step["skipped"].values())
        if step["in"] != out:
            problems.append(f"{step['name']}: {step['in']:,} records in, {out:,} accounted for")
    # A chunk that was given up takes its records along: one dead letter that no step counts.
    lost = manifest["dead_letters"] > sum(s["dead"] for s in manifest["steps"])
    given = {}
    if "parse" in steps:
        documents = steps["parse"]["out"]
        given = dict.fromkeys(("filter", "score", "label"), documents)
        given["scatter"] = documents + steps["parse"]["rejected"]
    for name, expected in given.items():
        found = steps[name]["in"] if name in steps else expected
        if found > expected or (found < expected and not lost):
            problems.append(f"{name}: {found:,} records in, but parse handed on {expected:,}")
    if "label" in steps and "plan" in steps and steps["plan"]["in"] != steps["label"]["kept"]:
        problems.append(
            f"plan: {steps['plan']['in']:,} records in, but label kept {steps['label']['kept']:,}"
        )
    report.add("steps: records in = records accounted for", len(manifest["steps"]), problems)


def check_totals(manifest: dict[str, Any], report: Report) -> None:
    """The manifest's sums agree with its shards and its plan."""
    problems = []
    totals, shards = manifest["totals"], manifest["shards"]
    for key in ("rows", "documents", "tokens", "bytes"):
        found = sum(s[key] for s in shards)
        if found != totals[key]:
            problems.append(f"{key}: {totals[key]:,} in all, but the shards have {found:,}")
    for by in ("by_domain", "by_language"):
        for key in ("rows", "tokens"):
            found = sum(cell[key] for cell in totals[by].values())
            if found != totals[key]:
                problems.append(f"{by}: {found:,} {key}, not {totals[key]:,}")
    planned = sum(d["drawn_rows"] for d in manifest["plan"]["domains"])
    if planned != totals["rows"]:
        problems.append(f"the plan draws {planned:,} rows, the shards have {totals['rows']:,}")
    report.add("totals: plan = shards = sums", len(shards), problems)


def check_shards(root: Path, shards: list[dict[str, Any]], report: Report) -> None:
    """Rows, documents and tokens inside every shard."""
    problems = []
    for entry in shards:
        rows = documents = tokens = 0
        for table in read(root / entry["path"], ["tokens", "repetition"]):
            rows += table.num_rows
            tokens += pc.sum(table["tokens"]).as_py() or 0
            documents += pc.sum(pc.equal(table["repetition"], 0)).as_py() or 0
        for key, found in (("rows", rows), ("documents", documents), ("tokens", tokens)):
            if found != entry[key]:
                problems.append(f"{entry['path']}: {found:,} {key}, not {entry[key]:,}")
    report.add("shards: rows, documents, tokens", len(shards), problems)


def check_documents(root: Path, manifest: dict[str, Any], per_pass: int, report: Report) -> None:
    """Ids, fates, survivors and whereabouts of documents, range by range of ids."""
    total = sum(f["rows"] for f in manifest["lineage"])
    passes = max(1, -(-total // per_pass))
    fates: dict[str, int] = {}
    by_step: dict[str, int] = {}
    problems: dict[str, list[str]] = {"ids": [], "survivors": [], "exported": []}
    seen = {"survivors": 0, "exported": 0}
    for number in range(passes):
        # Ids are hashes, so equal ranges hold about equally many.
        ids = Range(2**128 * number // passes, 2**128 * (number + 1) // passes)
        one_pass(root, manifest, ids, fates, by_step, problems, seen)
    report.add("ids: unique in lineage and in shards", total, problems["ids"])
    report.add("duplicates: survivor there, and no duplicate", seen["survivors"], problems["survivors"])
    report.add("exported = rows of the shards, in the named shard", seen["exported"], problems["exported"])
    wrong = []
    steps = {s["name"]: s for s in manifest["steps"]}
    expected = [("filter", "filter", "rejected"), ("label", "label", "rejected")]
    for step, key, column in expected:
        if step in steps and by_step.get(key, 0) != steps[step][column]:
            wrong.append(f"{step}: {steps[step][column]:,} rejected, but lineage has {by_step.get(key, 0):,}")
    if "scatter" in steps:
        scatter = steps["scatter"]
        for key, found in (("in", sum(fates.values())), ("kept", fates.get("exported", 0))):
            if scatter[key] != found:
                wrong.append(f"scatter: {key} {scatter[key]:,}, but lineage has {found:,}")
    if fates.get("exported", 0) != manifest["totals"]["documents"]:
        wrong.append(
            f"{manifest['totals']['documents']:,} documents, but {fates.get('exported', 0):,} exported fates"
        )
    report.add("fates: lineage = step table", sum(fates.values()), wrong)
    print("fates: " + ", ".join(f"{name} {count:,}" for name, count in sorted(fates.items())))


class Range:
    """A range of ids, ``first <= id < end`` as numbers."""

    def __init__(self, first: int, end: int) -> None:
        self.first = first
        self.end = end

    def binary(self, column: Any) -> Any:
        """Which ids of a binary column are inside; a missing one counts as the first of all."""
        ids = pc.fill_null(column.cast(pa.binary()), b"")
        low = pa.scalar(self.first.to_bytes(16, "big") if self.first else b"", pa.binary())
        mask = pc.greater_equal(ids, low)
        if self.end < 2**128:
            mask = pc.and_(mask, pc.less(ids, pa.scalar(self.end.to_bytes(16, "big"), pa.binary())))
        return mask

    def text(self, column: Any) -> Any:
        """Which ids of a column of hexadecimal digits are inside."""
        mask = pc.greater_equal(column, pa.scalar(f"{self.first:032x}", column.type))
        if self.end < 2**128:
            mask = pc.and_(mask, pc.less(column, pa.scalar(f"{self.end:032x}", column.type)))
        return mask


def one_pass(
    root: Path,
    manifest: dict[str, Any],
    ids: Range,
    fates: dict[str, int],
    by_step: dict[str, int],
    problems: dict[str, list[str]],
    seen: dict[str, int],
) -> None:
    """Check the documents whose id is in a range, and the duplicates whose survivor's id is."""
    known: dict[bytes, tuple[str, str]] = {}
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    awaited: list[tuple[bytes, bytes]] = []
    for entry in manifest["lineage"]:
        for table in read(root / entry["path"], ["doc_id", "fate", "step", "survivor_id", "shard"]):
            duplicates = table.filter(pc.equal(table["fate"], "duplicate"))
            duplicates = duplicates.filter(ids.binary(duplicates["survivor_id"]))
            awaited += zip(duplicates["doc_id"].to_pylist(), duplicates["survivor_id"].to_pylist())  # noqa: B905
            mine = table.filter(ids.binary(table["doc_id"]))
            columns = [mine[c].to_pylist() for c in ("doc_id", "fate", "step", "shard")]
            for doc_id, fate, step, shard in zip(*columns):  # noqa: B905 - strict came with Python 3.10
                if doc_id in known:
                    problems["ids"].append(f"{doc_id.hex()}: twice in lineage ({entry['path']})")
                # One pair per shard, not per document: that is most of the memory.
                known[doc_id] = pairs.setdefault((fate, shard), (fate, shard))
                fates[fate] = fates.get(fate, 0) + 1
                if fate == "rejected":
                    by_step[step] = by_step.get(step, 0) + 1
    based = manifest.get("base") is not None
    seen["survivors"] += len(awaited)
    for doc_id, survivor in awaited:
        name = survivor.hex() if survivor else "(none)"
        if survivor not in known:
            if not based or not survivor:
                problems["survivors"].append(f"{doc_id.hex()}: its survivor {name} is not in lineage")
        elif known[survivor][0] == "duplicate":
            problems["survivors"].append(f"{doc_id.hex()}: its survivor {name} is a duplicate itself")
    check_exported(root, manifest["shards"], ids, known, problems, seen)


def check_exported(
    root: Path,
    shards: list[dict[str, Any]],
    ids: Range,
    known: dict[bytes, tuple[str, str]],
    problems: dict[str, list[str]],
    seen: dict[str, int],
) -> None:
    """Compare the rows of the shards with the documents called exported."""
    repeated: dict[bytes, int] = {}  # one bit per repetition
    for entry in shards:
        for table in read(root / entry["path"], ["id", "repetition"]):
            mine = table.filter(ids.text(table["id"]))
            for name, repetition in zip(mine["id"].to_pylist(), mine["repetition"].to_pylist()):  # noqa: B905
                doc_id = bytes.fromhex(name)
                bits = repeated.get(doc_id, 0)
                if bits >> repetition & 1:
                    problems["ids"].append(
                        f"{name}: twice in the shards (repetition {repetition}, {entry['path']})"
                    )
                repeated[doc_id] = bits | 1 << repetition
                if repetition == 0:
                    seen["exported"] += 1
                    fate, shard = known.get(doc_id, ("missing in lineage", ""))
                    if fate != "exported":
                        problems["exported"].append(f"{name}: in {entry['path']}, but its fate is: {fate}")
                    elif shard != entry["path"]:
                        problems["exported"].append(f"{name}: in {entry['path']}, but lineage says {shard}")
    for doc_id, bits in repeated.items():
        if bits & (bits + 1):
            problems["exported"].append(f"{doc_id.hex()}: a repetition is missing")
    for doc_id, (fate, _) in known.items():
        if fate == "exported" and doc_id not in repeated:
            problems["exported"].append(f"{doc_id.hex()}: exported, but in no shard")


def read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    """Tables of some columns of a Parquet or jsonl.zst file."""
    if path.name.endswith(".jsonl.zst"):
        try:
            import zstandard
        except ImportError:
            sys.exit("verify.py needs zstandard for jsonl.zst shards: pip install zstandard")

        with path.open("rb") as file:
            with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as raw:
                rows: list[dict[str, Any]] = []
                for line in io.TextIOWrapper(raw, encoding="utf-8", newline="\n"):
                    record = json.loads(line)
                    rows.append({c: record[c] for c in columns})
                    if len(rows) == ROWS:
                        yield pa.Table.from_pylist(rows)
                        rows = []
                if rows:
                    yield pa.Table.from_pylist(rows)
        return
    with pq.ParquetFile(path) as parquet:
        for batch in parquet.iter_batches(batch_size=ROWS, columns=columns):
            yield pa.Table.from_batches([batch])


if __name__ == "__main__":
    sys.exit(main())
