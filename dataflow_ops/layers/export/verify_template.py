#!/usr/bin/env python3
"""Checks that this version of the data set is whole, without the software that made it.

Needs Python 3.9 or later and pyarrow (pip install pyarrow); for jsonl.zst shards also zstandard. Run it
where it lies:

    python verify.py [FOLDER] [--ids-per-pass N] [--only-this]

It checks the SHA-256, rows and tokens of every shard and lineage file against manifest.json, that no
step lost or made up a record, that ids are unique, that every duplicate's survivor is there and is no
duplicate itself, and that the documents called exported are those in the shards, each in the shard that
its lineage names. Memory is bounded: ids are looked at range by range.

A version that builds on others needs their folders beside its own. They are checked first, the lowest at the
start (with --only-this, only by their manifests). Its tombstones must name documents of theirs.

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
Chain = list[tuple[Path, dict[str, Any]]]  # folders and manifests of a version and those below, lowest first


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
    parser.add_argument("--ids-per-pass", type=int, default=5_000_000, help="documents held in memory")
    parser.add_argument("--only-this", action="store_true", help="don't check the versions below it")
    options = parser.parse_args()
    try:
        chain = versions(options.folder.resolve())
    except (OSError, ValueError, KeyError) as e:
        print(f"a manifest can't be read: {e}")
        return 1
    first = len(chain) - 1 if options.only_this else 0
    good = [check_version(chain[: n + 1], options.ids_per_pass) for n in range(first, len(chain))]
    return 0 if all(good) else 1


def versions(folder: Path) -> Chain:
    """A version and those below it, the lowest first: folders and manifests."""
    chain: Chain = []
    at, expected = folder, ""
    while True:
        data = (at / "manifest.json").read_bytes()
        if expected and hashlib.sha256(data).hexdigest() != expected:
            raise ValueError(f"{at.name} is not the version that {chain[0][0].name} builds on")
        manifest = json.loads(data)
        if (found := manifest.get("format")) != FORMAT:
            raise ValueError(f"{at.name} has format {found!r}; this verify.py knows {FORMAT}")
        chain.insert(0, (at, manifest))
        if not manifest.get("base"):
            return chain
        at, expected = folder.parent / manifest["base"]["version"], manifest["base"]["manifest_sha256"]


def check_version(chain: Chain, per_pass: int) -> bool:
    """Check the last version of a chain."""
    root, manifest = chain[-1]
    print(f"{manifest['dataset']}: {root.name}")
    report = Report()
    sound = check_hashes(root, manifest["shards"], "shards: SHA-256 and size", report)
    sound &= check_hashes(root, manifest["lineage"], "lineage: SHA-256 and size", report)
    if manifest.get("base"):
        sound &= check_hashes(root, [manifest["tombstones"]], "tombstones: SHA-256 and size", report)
    if manifest.get("compacted"):
        sound &= check_hashes(root, [manifest["compacted"]["replaced"]], "replaced: SHA-256 and size", report)
    check_steps(manifest, report)
    check_totals(manifest, report)
    if sound:
        check_shards(root, manifest["shards"], report)
        check_documents(chain, per_pass, report)
        if manifest.get("base"):
            check_below(chain, report)
    else:
        report.add("contents", 0, ["not looked at, because files are missing or damaged"])
    return report.show()


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
        problems.append(f"plan: {steps['plan']['in']:,} in, but label kept {steps['label']['kept']:,}")
    report.add("steps: records in = records accounted for", len(manifest["steps"]), problems)


def check_totals(manifest: dict[str, Any], report: Report) -> None:
    """The manifest's sums agree with its shards and its plan."""
    problems = []
    totals, shards = manifest.get("own") or manifest["totals"], manifest["shards"]
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


def check_below(chain: Chain, report: Report) -> None:
    """The tombstones name documents that were there, and the totals are those below, less these, plus own."""
    problems = []
    root, manifest = chain[-1]
    table = pq.read_table(root / manifest["tombstones"]["path"])
    for number in range(len(chain) - 1):
        mine = table.filter(pc.equal(table["part"], number))
        fates = dict(zip(mine["doc_id"].to_pylist(), mine["fate"].to_pylist()))  # noqa: B905
        there = living(chain[:-1], number, pa.array(list(fates), pa.binary()))
        wrong = [doc.hex() for doc, fate in fates.items() if there.get(doc) != fate]
        problems += [f"{doc}: not there, or of another fate, in {chain[number][0].name}" for doc in wrong]
    below, own, whole = chain[-2][1]["totals"], manifest["own"], manifest["totals"]
    for key in ("rows", "documents", "tokens"):
        gone = pc.sum(table[key] if key != "documents" else pc.equal(table["fate"], "exported")).as_py() or 0
        if whole[key] != below[key] - gone + own[key]:
            problems.append(f"{key}: {whole[key]:,}, not {below[key]:,} - {gone:,} + {own[key]:,}")
    report.add("base: tombstones name its documents, totals add up", table.num_rows, problems)


def living(chain: Chain, number: int, ids: Any) -> dict[bytes, str]:
    """Fates of those of some ids that one version of a chain has, and none above it replaced."""
    found: dict[bytes, str] = {}
    for entry in chain[number][1]["lineage"] if len(ids) else ():
        for table in read(chain[number][0] / entry["path"], ["doc_id", "fate"]):
            mine = table.filter(pc.is_in(table["doc_id"].cast(pa.binary()), value_set=ids))
            found.update(zip(mine["doc_id"].to_pylist(), mine["fate"].to_pylist()))  # noqa: B905
    for root, above in chain[number + 1 :]:
        for table in read(root / above["tombstones"]["path"], ["part", "doc_id"]) if found else ():
            for doc in table.filter(pc.equal(table["part"], number))["doc_id"].to_pylist():
                found.pop(doc, None)
    return found


def check_documents(chain: Chain, per_pass: int, report: Report) -> None:
    """Ids, fates, survivors and whereabouts of documents, range by range of ids."""
    manifest = chain[-1][1]
    total = sum(f["rows"] for f in manifest["lineage"])
    passes = max(1, -(-total // per_pass))
    fates: dict[str, int] = {}
    by_step: dict[str, int] = {}
    problems: dict[str, list[str]] = {"ids": [], "survivors": [], "exported": []}
    seen = {"survivors": 0, "exported": 0}
    for number in range(passes):
        # Ids are hashes, so equal ranges hold about equally many.
        ids = Range(2**128 * number // passes, 2**128 * (number + 1) // passes)
        one_pass(chain, ids, fates, by_step, problems, seen)
    report.add("ids: unique in lineage and in shards", total, problems["ids"])
    report.add("duplicates: survivor there, and no duplicate", seen["survivors"], problems["survivors"])
    report.add("exported = rows of the shards, in the named shard", seen["exported"], problems["exported"])
    wrong = []
    steps = {s["name"]: s for s in manifest["steps"]}
    for step in ("filter", "label"):
        if step in steps and by_step.get(step, 0) != steps[step]["rejected"]:
            told = f"{steps[step]['rejected']:,} rejected, but lineage has {by_step.get(step, 0):,}"
            wrong.append(f"{step}: {told}")
    if "scatter" in steps:
        scatter = steps["scatter"]
        for key, found in (("in", sum(fates.values())), ("kept", fates.get("exported", 0))):
            if scatter[key] != found:
                wrong.append(f"scatter: {key} {scatter[key]:,}, but lineage has {found:,}")
    own = (manifest.get("own") or manifest["totals"])["documents"]
    if fates.get("exported", 0) != own:
        wrong.append(f"{own:,} documents, but {fates.get('exported', 0):,} exported fates")
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
    chain: Chain,
    ids: Range,
    fates: dict[str, int],
    by_step: dict[str, int],
    problems: dict[str, list[str]],
    seen: dict[str, int],
) -> None:
    """Check the documents whose id is in a range, and the duplicates whose survivor's id is."""
    root, manifest = chain[-1]
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
    seen["survivors"] += len(awaited)
    if manifest.get("compacted"):  # duplicates of what was replaced stay removed
        gone = pq.read_table(root / manifest["compacted"]["replaced"]["path"])["doc_id"]
        replaced = set(gone.filter(ids.binary(gone)).to_pylist())
        awaited = [(doc, survivor) for doc, survivor in awaited if survivor not in replaced]
    others = pa.array(sorted({s for _, s in awaited if s and s not in known}), pa.binary())
    below = {d: fate for i in range(len(chain) - 1) for d, fate in living(chain, i, others).items()}
    for doc_id, survivor in awaited:
        name = survivor.hex() if survivor else "(none)"
        fate = known[survivor][0] if survivor in known else below.get(survivor)
        if fate is None:
            problems["survivors"].append(f"{doc_id.hex()}: its survivor {name} is not in lineage")
        elif fate == "duplicate":
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
