"""Recall, precision, speed and memory of dedup on a corpus with injected duplicates.

    python bench/dedup_recall.py FOLDER [--chunks 8]

FOLDER holds Parquet files with the columns id, text, source, lang, label, dup_of. Exit code 1 when a bar
is missed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import resource
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "layers" / "dedup"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from dedup_flow import CHUNK_IDS, Flow, Outcome, documents, job

from dataflow_ops import schema
from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.kernels.similarity import similarity
from dataflow_ops.values import Numbers

FILTERED = ("control", "loop", "punct", "short", "stuffed", "halfloop")  # the filter's business
BARS = dict.fromkeys(("exact", "width", "title", "block5", "edit1", "edit2"), 0.99) | {
    "block10": 0.95,
    "edit5": 0.75,
}
BAR_BY_LANGUAGE = {"edit5": 0.72}
CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"


def read(
    folder: Path, chunks: int, facts: list[dict[str, object]], sample: dict[bytes, str]
) -> Iterator[pa.Table]:
    """Documents cut into chunks; what is known of each (id, label, lang, dup_of, place) goes into ``facts``.

    ``sample`` gets the texts of the first chunk.
    """
    files = sorted(folder.glob("*.parquet"))
    total = sum(pq.ParquetFile(f).metadata.num_rows for f in files)
    size = min(20_000, -(-total // chunks))
    batches = itertools.chain.from_iterable(pq.ParquetFile(f).iter_batches(batch_size=size) for f in files)
    for i, batch in enumerate(batches):
        table = pa.Table.from_batches([batch])
        table = table.filter(pc.invert(pc.is_in(table["label"], pa.array(FILTERED))))
        ids = [schema.doc_id("corpus", "docs", n) for n in table["id"].to_pylist()]
        for row, fact in enumerate(table.select(["id", "label", "lang", "dup_of"]).to_pylist()):
            facts.append(fact | {"place": (CHUNK_IDS - i, row)})
        texts = pc.replace_substring_regex(table["text"], CONTROL, "")
        if not sample:
            sample.update(zip(ids, texts.to_pylist(), strict=True))
        yield documents(texts, ids, table["source"].to_pylist())


def components(outcome: Outcome) -> dict[tuple[int, int], tuple[int, int]]:
    """Root of every document that is in some group of verified edges, by (chunk, row)."""
    roots: dict[tuple[int, int], tuple[int, int]] = {}
    for partition in sorted(outcome.store.parts["unite", "members"]):
        table = outcome.store.load("unite", "members", partition, None)
        columns = [table[c].to_pylist() for c in ("chunk", "row", "root_chunk", "root_row")]
        roots.update(((c, r), (rc, rr)) for c, r, rc, rr in zip(*columns, strict=True))
    return roots


def recall(outcome: Outcome, facts: list[dict[str, object]]) -> tuple[list[str], bool]:
    """Share of copies that are in one duplicate group with what they were made from.

    Two measures: joined by verified edges (what the bars are about), and given the same survivor. The
    second is lower where the corpus has families of its own: the base may be removed in favour of a third
    document that is like it but not like the copy, which then rightly stays.
    """
    found: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    places = {f["id"]: f["place"] for f in facts}
    roots = components(outcome)
    for f in facts:
        if f["dup_of"] in places:
            one, two = (outcome.survivor(schema.doc_id("corpus", "docs", f[k])) for k in ("id", "dup_of"))
            a, b = (roots.get(places[f[k]], k) for k in ("id", "dup_of"))
            for lang in (f["lang"], "all"):
                found[f["label"], lang].append((a == b, one == two))
    lines, good = ["            joined / same survivor (pairs)"], True
    for label in sorted({k[0] for k in found}):
        row = f"{label:9}"
        for lang in ("en", "zh", "code", "all"):
            hits = found.get((label, lang), [])
            joined, same = (
                (sum(column) / len(hits) for column in zip(*hits, strict=True))
                if hits
                else (float("nan"),) * 2
            )
            bar = BARS.get(label) if lang == "all" else BAR_BY_LANGUAGE.get(label)
            missed = bar is not None and joined < bar
            good &= not missed
            row += f"  {lang} {joined:.3f} / {same:.3f} ({len(hits)}){' MISSED' if missed else ''}"
        lines.append(row)
    return lines, good


def removed_base(outcome: Outcome, facts: list[dict[str, object]]) -> str:
    base = [f for f in facts if f["label"] == "base"]
    removed = outcome.removed()
    gone = sum(schema.doc_id("corpus", "docs", f["id"]) in removed for f in base)
    return f"base documents removed (the corpus has duplicates of its own): {gone} of {len(base)}"


def hard_negatives(texts: dict[bytes, str], wanted: int = 300) -> tuple[str, bool]:
    """Cut and edited copies whose similarity is .60 to .75, run as a corpus of their own."""
    rng = random.Random(5)
    sample = [t for d, t in sorted(texts.items()) if 800 < len(t) < 8000]
    pairs: list[tuple[str, str]] = []
    for text in rng.sample(sample, min(len(sample), 2 * wanted)):
        words = text.split(" ") if text.count(" ") > len(text) / 20 else list(text)
        # One stretch of 25 to 40 % is replaced by a stretch of another text: shingles stay, similarity falls.
        share = rng.uniform(0.28, 0.42)
        n = int(len(words) * share)
        at = rng.randrange(len(words) - n)
        other = rng.choice(sample)[: sum(map(len, words[at : at + n])) + n]
        joint = " " if " " in text and words != list(text) else ""
        copy = joint.join([*words[:at], other, *words[at + n :]])
        alike = similarity(fold_text(text), fold_text(copy), 0.5)
        if 0.60 <= alike <= 0.75:
            pairs.append((text, copy))
        if len(pairs) == wanted:
            break
    flat = [t for pair in pairs for t in pair]
    ids = [schema.doc_id("negatives", "pairs", i) for i in range(len(flat))]
    result = Flow(job()).run([documents(flat, ids)])
    wrong = 0
    for i in range(0, len(ids), 2):
        one, two = result.survivor(ids[i]), result.survivor(ids[i + 1])
        wrong += one == ids[i + 1] or two == ids[i]
    compared = int(result.metrics["pairs_compared"])
    return (
        f"hard negatives: {len(pairs)} pairs of similarity .60-.75, {compared} compared, {wrong} removed",
        wrong == 0,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chunks", type=int, default=8)
    args = parser.parse_args()
    facts: list[dict[str, object]] = []
    sample: dict[bytes, str] = {}
    numbers = Numbers(key_prefixes=4, band_prefixes=4, blocks=8, root_prefixes=4, shard_groups=1)
    Flow(job(), numbers).run([documents(["compile, or load from the cache"] * 3)])
    with tempfile.TemporaryDirectory() as scratch:
        outcome = Flow(job(), numbers, 5000, Path(scratch)).run(read(args.folder, args.chunks, facts, sample))
        n = outcome.documents
        print(f"{n} documents, {len(outcome.removed())} removed {outcome.hits}")
        lines, good = recall(outcome, facts)
        print("\n".join(lines))
        print(removed_base(outcome, facts))
        print("microseconds per document:", {k: round(v / n * 1e6, 1) for k, v in outcome.seconds.items()})
        total = sum(outcome.seconds.values()) / n * 1e6
        print(f"all steps: {total:.1f}")
        print("metrics:", {k: int(v) for k, v in sorted(outcome.metrics.items())})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"peak resident memory {peak // 1024} MB, reading and measuring included")
    line, clean = hard_negatives(sample)
    print(line)
    return 0 if good and clean else 1


if __name__ == "__main__":
    sys.exit(main())
