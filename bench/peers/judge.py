"""What a tool decided against what was injected: ``python -m bench.peers.judge SLICE FOLDER DECISIONS``.

Prints a JSON object. For dedup, by label: how many copies, how many of them are in one group with what they
were made from (``joined``; missing where a tool names no groups), and of how many at least one of the two
went (``removed``). ``unlike`` counts documents removed in favour of one whose text is less than 0.8 similar
(bench/independent.py). For filters, by label and language: documents and how many were refused.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.independent import key_text, similarity

ALIKE = 0.8


def duplicates(truth: dict[int, dict[str, Any]], kept: set[int], groups: dict[int, int] | None) -> dict:
    """Copies found, by label, and under ``all <language>`` whatever their label."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"copies": 0, "removed": 0})
    for doc, fact in truth.items():
        of = fact["dup_of"]
        if of in truth:
            for name in (fact["label"], f"all {fact['lang']}"):
                row = found[name]
                row["copies"] += 1
                row["removed"] += not (doc in kept and of in kept)
                if groups is not None:
                    joined = groups.get(doc, doc) == groups.get(of, of)
                    row["joined"] = row.get("joined", 0) + joined
    return dict(sorted(found.items()))


def survivors_of(decided: dict[str, Any], kept: set[int]) -> dict[int, int]:
    """Who a removed document went for: told by the tool, else what its group kept."""
    if decided.get("survivors"):
        return {int(i): s for i, s in decided["survivors"].items()}
    groups = {int(i): g for i, g in (decided["groups"] or {}).items()}
    stays = {group: i for i, group in groups.items() if i in kept}
    return {i: stays[g] for i, g in groups.items() if i not in kept and g in stays}


def unlike(survivors: dict[int, int], texts: dict[int, str]) -> int:
    """How many removals the similarity of the texts does not bear out."""
    keys = {i: key_text(texts[i]) for i in survivors.keys() | set(survivors.values())}
    return sum(similarity(keys[a], keys[b]) < ALIKE for a, b in survivors.items())


def refusals(truth: dict[int, dict[str, Any]], kept: set[int]) -> dict[str, list[int]]:
    """Documents and refused ones, by ``label`` and, for base documents, ``base <language>``."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for doc, fact in truth.items():
        label = fact["label"]
        row = found[f"base {fact['lang']}" if label == "base" else label]
        row[0] += 1
        row[1] += doc not in kept
    return dict(sorted(found.items()))


def main() -> None:
    folder, documents = Path(sys.argv[1]), Path(sys.argv[2])
    decided = json.loads(Path(sys.argv[3]).read_text())
    kept = set(decided["kept"])
    table = pq.read_table(documents)
    texts = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
    facts = pq.read_table(folder / "truth.parquet").to_pylist()
    truth = {fact["id"]: fact for fact in facts if fact["id"] in texts}
    told: dict[str, Any] = {"documents": len(truth), "kept": len(kept)}
    if "dedup" in sys.argv[4:]:
        groups = decided["groups"]
        as_int = None if groups is None else {int(i): g for i, g in groups.items()}
        told["labels"] = duplicates(truth, kept, as_int)
        told["removed"] = len(truth) - len(kept) - len(decided.get("refused", ()))
        survivors = survivors_of(decided, kept)
        if survivors:
            told["checked"], told["unlike"] = len(survivors), unlike(survivors, texts)
    else:
        told["refused"] = refusals(truth, kept)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
