"""What the filter refuses on the benchmark corpus, by injected fault and language.

    python bench/filter_recall.py DOCS [--every N] [--hints] [--set clean.quality_rules.KEY=VALUE ...]

DOCS is the ``docs`` folder of the corpus built from public packages (columns id, text, lang, label).
No document comes with a hint of its kind, as from a Parquet source; ``--hints`` marks code as a parser would.
Prints, per label and language, the share refused; the rules behind it for clean documents; and the CPU time.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.filter.step import FilterStep

CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x{80}-\x{9f}]"
BATCH = 8192


def documents(table: pa.Table, hints: bool = False) -> pa.Table:
    """The columns of ``parse.text`` that the filter reads, control characters counted, then removed."""
    text = table["text"].cast(pa.large_string())
    clean = pc.replace_substring_regex(text, CONTROL, "")
    raw = pc.utf8_length(text).cast(pa.int32())
    ids = [hashlib.sha256(str(i).encode()).digest()[:16] for i in table["id"].to_pylist()]
    return pa.table(
        {
            "doc_id": pa.array(ids, pa.binary(16)),
            "text": clean,
            "kind_hint": pc.if_else(pc.equal(table["lang"], "code"), "code" if hints else "", ""),
            "raw_chars": raw,
            "control_chars": pc.subtract(raw, pc.utf8_length(clean).cast(pa.int32())),
        }
    )


def override(pairs: list[str]) -> dict[str, object]:
    """A job with ``section.key=value`` applied."""
    import yaml

    raw: dict[str, object] = {"dataset": {"id": "bench"}}
    for pair in pairs:
        key, _, value = pair.partition("=")
        target: dict = raw
        *parents, last = key.split(".")
        for part in parents:
            target = target.setdefault(part, {})
        target[last] = yaml.safe_load(value)
    return raw


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("docs", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every n-th file only")
    parser.add_argument("--hints", action="store_true", help="give the hint 'code' to documents in code")
    parser.add_argument("--show", default="", help="print clean documents that this rule refuses")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    step = FilterStep(parse_job(override(args.set)))
    state = step.open(None)  # type: ignore[arg-type]
    total, refused, rules, alone = Counter(), Counter(), Counter(), Counter()
    seconds, kinds, shown = 0.0, Counter(), 0
    judged = {rule.statistic: rule for rule in step.rules}
    stuffing = judged.get("stuffing")
    for name in sorted(args.docs.glob("*.parquet"))[:: args.every]:
        table = pq.read_table(name)
        docs = documents(table, args.hints)
        for start in range(0, table.num_rows, BATCH):
            batch = docs.slice(start, BATCH)
            if not seconds:
                step.process(batch.slice(0, 50), 0, state)  # compile first
            before = time.process_time()
            result = step.process(batch, start, state)
            seconds += time.process_time() - before
            part = table.slice(start, BATCH)
            keys = list(zip(part["label"].to_pylist(), part["lang"].to_pylist(), strict=True))
            total.update(keys)
            rejects = result.outputs["rejects"]
            values = result.outputs["stats"]["stuffing"].to_pylist()
            kept = result.outputs["verdicts"]
            kinds.update((k[1], kind) for k, kind in zip(keys, kept["kind"].to_pylist(), strict=True))
            if stuffing is not None:
                high = stuffing.high or 1.0
                alone.update(k for k, v in zip(keys, values, strict=True) if v is not None and v > high)
            for row, rule, value in zip(
                *(rejects[c].to_pylist() for c in ("row", "rule", "value")), strict=True
            ):
                key = keys[row - start]
                refused[key] += 1
                rules[(key, rule)] += 1
                if key[0] == "base" and rule == args.show and shown < 20:
                    shown += 1
                    start_of_text = re.sub(r"\s+", " ", batch["text"][row - start].as_py()[:200])
                    print(f"{value:.3f} {start_of_text}")
    for key in sorted(total):
        tops = [(r, n) for (k, r), n in rules.items() if k == key]
        tops.sort(key=lambda item: -item[1])
        share = refused[key] / total[key]
        listed = ", ".join(f"{r} {n / total[key]:.4f}" for r, n in tops[:8])
        print(f"{key[0]:9} {key[1]:5} {total[key]:7} refused {share:.4f}  {listed}")
    for lang in ("en", "zh", "code"):
        key = ("base", lang)
        if total[key]:
            print(f"stop_words alone, base {lang}: {alone[key] / total[key]:.4f}")
    for label in sorted({k[0] for k in total}):
        n = sum(v for k, v in total.items() if k[0] == label)
        print(f"{label:9} all   {n:7} refused {sum(v for k, v in refused.items() if k[0] == label) / n:.4f}")
    print("kinds", dict(sorted(kinds.items())))
    print(f"{seconds / sum(total.values()) * 1e6:.1f} µs of CPU time per document")
    return 0


if __name__ == "__main__":
    sys.exit(main())
