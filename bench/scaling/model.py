"""What a corpus costs, from constants measured by ``bench.scaling.sizes`` with ``--until export --json``.

    python -m bench.scaling.model MEASURED.jsonl [--documents 1e9,1e11] [--nodes 30] [--cores 64]

Linear in documents but for what is not: ranges, slices (chunks times ranges), and steps that are one task.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.layers.ingest.numbers import numbers_for
from dataflow_ops.pipeline.flow import STEPS

CHARACTERS = 3_700
"""UTF-8 bytes of a document of the measured corpus."""
CHUNK_MB = 64
AIRFLOW_TASKS_PER_S = 2.2
BUNDLES = 256
STATE_ROWS_PER_TASK = 4.5
"""Task, link to the run, two outputs, metrics: 751 rows for 151 tasks."""
BYTES_PER_STATE_ROW = 950
"""643,072 bytes of SQLite for 751 rows, slices of sliced outputs included, at 16 chunks and 4 ranges."""
BYTES_PER_SLICE = 120
"""Name, offset, length, SHA-256 of one slice in the row of its output."""
SLICED_BY_RANGE = 5
"""Outputs of a chunk that are cut by range: keys, bands, wanted and gathered texts, rows of shards."""
MEMBERS, GATHERED = 0.25, 0.36
"""Shares of all documents: those in groups, and texts gathered for comparing."""
MEMBER_BYTES, UNITE_BYTES = 17, 700e6
"""What ``unite`` holds of a document that is in some group, and whatever there is: 866 MB for 10 million such
documents, 1,203 MB for 30 million (``bench.scaling.ranges unite``)."""
HELD = {"exact": 64, "match": 16 * 44, "verify": GATHERED * (CHARACTERS / 2 + 600)}
"""Bytes of rows of a document in its ranges of these reduces."""
SHARE = {"exact": 200e6, "match": 167e6, "verify": 333e6}
"""Bytes of rows that one of their tasks takes at a time under 1,500 MB (``spill.share_of``)."""
FILTER_BYTES = 16 * 11 / 8
"""Of a document's bands in the filters of ``match``, if the job's capacity is used up."""


@dataclass(frozen=True)
class Cost:
    """One corpus.

    Attributes:
        hours: of the cluster, by CPU alone.
        chunks: 64 MB each.
        ranges: of each reduce.
        slices: of all outputs that are cut by range.
        tasks: rows of state that are tasks.
        airflow_tasks: of one run.
        airflow_minutes: to schedule them.
        state_gb: of the database.
        unite_gb: memory of the one task that joins groups; from half the budget on its arrays are in files.
        block_gb: key texts and signatures of one task of ``verify``.
        parts: into how many parts a range is cut, by step.
        filter_gb: filter of one range of bands.
    """

    hours: float
    chunks: int
    ranges: int
    slices: int
    tasks: int
    airflow_tasks: int
    airflow_minutes: float
    state_gb: float
    unite_gb: float
    block_gb: float
    parts: dict[str, int]
    filter_gb: float


def cost(documents: float, us_by_step: Mapping[str, float], cores: int) -> Cost:
    """What so many documents take."""
    total = documents * CHARACTERS
    numbers = numbers_for(int(total))
    ranges = numbers.blocks
    chunks = max(1, round(total / (CHUNK_MB << 20)))
    by_chunk = sum(by == "chunk" for _, _, by in STEPS)
    by_range = sum(by not in ("chunk", "all") for _, _, by in STEPS)
    single = len(STEPS) - by_chunk - by_range
    tasks = by_chunk * chunks + by_range * ranges + single
    slices = SLICED_BY_RANGE * chunks * ranges
    airflow = (
        by_chunk * min(BUNDLES, -(-chunks // 16)) + by_range * min(BUNDLES, max(1, ranges // 16)) + single
    )
    return Cost(
        hours=documents * sum(us_by_step.values()) / 1e6 / 3600 / cores,
        chunks=chunks,
        ranges=ranges,
        slices=slices,
        tasks=tasks,
        airflow_tasks=airflow,
        airflow_minutes=airflow / AIRFLOW_TASKS_PER_S / 60,
        state_gb=(tasks * STATE_ROWS_PER_TASK * BYTES_PER_STATE_ROW + slices * BYTES_PER_SLICE) / 1e9,
        unite_gb=(min(1.0, documents * MEMBERS / 3e6) * UNITE_BYTES + documents * MEMBERS * MEMBER_BYTES)
        / 1e9,
        block_gb=documents * HELD["verify"] / ranges / 1e9,
        parts={step: math.ceil(documents * held / ranges / SHARE[step]) for step, held in HELD.items()},
        filter_gb=documents * FILTER_BYTES / ranges / 1e9,
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--documents", default="1e6,1e9,1e11")
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--cores", type=int, default=64)
    args = parser.parse_args()
    last = json.loads(args.measured.read_text(encoding="utf-8").splitlines()[-1])
    us = {step: 1e6 * seconds / last["documents"] for step, seconds in last["by_step"].items()}
    print(f"{sum(us.values()):.0f} µs a document: " + ", ".join(f"{s} {v:.1f}" for s, v in us.items()))
    for n in args.documents.split(","):
        print(f"{float(n):.0e} documents: {cost(float(n), us, args.nodes * args.cores)}")


if __name__ == "__main__":
    main()
