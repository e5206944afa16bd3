"""What dedup's reduces hold in memory, over rows made up for the purpose, at several budgets.

    python -m bench.scaling.ranges unite --rows 1e6,1e7 [--budget-mb 1500] [--json]

Each case runs in a process of its own. ``held`` is the peak beyond what the process took before the step read
anything; the rows are made as they are asked for, and what the step writes is dropped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from dataflow_ops.job_file import parse_job
from dataflow_ops.kernels.bands import mix_rows
from dataflow_ops.layers.dedup import columns, identity
from dataflow_ops.layers.dedup.confirm import ConfirmStep
from dataflow_ops.layers.dedup.exact import ExactStep
from dataflow_ops.layers.dedup.match import MatchStep
from dataflow_ops.layers.dedup.unite import UniteStep
from dataflow_ops.layers.dedup.verify import VerifyStep
from dataflow_ops.values import Numbers

JOB = parse_job({"dataset": {"id": "t"}})
PER_TABLE = 100_000
TEXT = 1_800
"""Bytes of a made-up key text."""
FAMILY = 4
"""Documents of one group."""

Made = Callable[[int, int], pa.Table]


def hashed(numbers: np.ndarray, salt: int) -> np.ndarray:
    """Well mixed numbers."""
    mixed = mix_rows((numbers.astype(np.uint64) * np.uint64(2) + np.uint64(salt)).reshape(-1))
    return mixed.reshape(numbers.shape)


def wide(numbers: np.ndarray, width: int) -> pa.Array:
    """Bytes that follow from numbers."""
    parts = [hashed(numbers, 10 + i).view(np.uint8).reshape(-1, 8) for i in range(-(-width // 8))]
    return columns.fixed_binary(np.concatenate(parts, axis=1)[:, :width])


def address(n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Chunk and row of documents by number: in no order that follows from their length."""
    return (n >> 12).astype(np.uint64) + np.uint64(1), (n & 4095).astype(np.uint32)


def order_of(n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place in the survivor order."""
    return hashed(n, 3) | np.uint64(1), hashed(n, 5)


def document(n: np.ndarray, key: np.ndarray) -> dict[str, object]:
    """Columns that many tables have."""
    chunk, row = address(n)
    high, low = order_of(n)
    return {
        "chunk": chunk,
        "row": row,
        "doc_id": wide(n, 16),
        "sha1": wide(key, 20),
        "order_hi": high,
        "order_lo": low,
    }


def table(values: dict[str, object], schema: pa.Schema) -> pa.Table:
    """A table of this schema."""
    return pa.table([values[name] for name in schema.names], schema=schema)


def keys(first: int, last: int) -> pa.Table:
    """One in ten has a key of another."""
    n = np.arange(first, last)
    return table(document(n, np.where(n % 10, n, n // 20)), columns.KEYS)


def bands(first: int, last: int) -> pa.Table:
    """One in eight meets others."""
    n = np.arange(first, last)
    chunk, row = address(n)
    high, low = order_of(n)
    band = hashed(np.where(n % 8, n, n // 64), 7)
    return pa.table([band, chunk, row, hashed(n, 9), high, low], schema=columns.BANDS)


def groups(first: int, last: int) -> pa.Table:
    """Exact copies: the first two of each family."""
    n = np.arange(first, last)
    n = n[n % FAMILY < 2]
    at = np.stack([n - n % FAMILY, n - n % FAMILY + 1])
    high, low = order_of(at)
    best = np.where((high[0] < high[1]) | ((high[0] == high[1]) & (low[0] < low[1])), at[0], at[1])
    chunk, row = address(best)
    values = document(n, n // FAMILY) | {"survivor_chunk": chunk, "survivor_row": row}
    return table(values, columns.GROUPS)


def nodes(first: int, last: int) -> pa.Table:
    """All but the first of each family."""
    n = np.arange(first, last)
    n = n[n % FAMILY > 0]
    return table(document(n, n // FAMILY) | {"block": (n % 4).astype(np.uint32)}, columns.NODES)


def edges(first: int, last: int) -> pa.Table:
    """From the second of each family to the later ones."""
    n = np.arange(first, last)
    n = n[n % FAMILY > 1]
    ends = [v for x in (n - n % FAMILY + 1, n) for v in address(x)]
    return pa.table([*ends, 0.8 + (n % 17) / 100], schema=columns.EDGES)


def texts(first: int, last: int) -> pa.Table:
    """Texts of families: a member's differs from the first one's in a few characters."""
    n = np.arange(first, last)
    letters = (hashed(np.arange(TEXT), 1) % np.uint64(26) + np.uint64(97)).astype(np.uint8)
    body = np.tile(letters, (len(n), 1))
    shift = (n // FAMILY * 7919) % TEXT
    body = np.take_along_axis(body, (np.arange(TEXT)[None, :] + shift[:, None]) % TEXT, axis=1)
    body[:, :20] = 97 + n[:, None] % 26
    offsets = np.arange(len(n) + 1, dtype=np.int64) * TEXT
    text = pa.LargeStringArray.from_buffers(len(n), pa.py_buffer(offsets), pa.py_buffer(body.tobytes()))
    values = document(n, n) | {
        "shingle": np.full(len(n), 13, np.uint8),
        "made_by": pa.repeat(identity.signature_id(JOB), len(n)),
        "signature": wide(n // FAMILY, 512),
        "key_text": text,
    }
    return table(values, columns.texts_schema(128))


def buckets(first: int, last: int) -> pa.Table:
    """Each family."""
    n = np.arange(first, last)
    chunk, row = address(n)
    return pa.table([hashed(n // FAMILY, 11), chunk, row], schema=columns.BUCKETS)


def members(first: int, last: int) -> pa.Table:
    """Families of near copies of their first members, in order of address."""
    n = np.arange(first, last)
    (root_chunk, root_row), (chunk, row) = address(n - n % FAMILY), address(n)
    heads = {"root_chunk": root_chunk, "root_row": root_row, "node_chunk": chunk, "node_row": row}
    return table(document(n, n) | heads | {"block": np.zeros(len(n), np.int64)}, columns.MEMBERS)


def links(first: int, last: int) -> pa.Table:
    """From the first of each family to the others."""
    n = np.arange(first, last)
    n = n[n % FAMILY > 0]
    root, other = address(n - n % FAMILY), address(n)
    return pa.table([*root, *root, *other, 0.8 + (n % 17) / 100], schema=columns.LINKS)


@dataclass(frozen=True)
class Case:
    """A step and what it reads."""

    step: object
    inputs: dict[tuple[str, str], Made]
    per_table: int = PER_TABLE


CASES = {
    "exact": Case(ExactStep(JOB), {("sign", "keys"): keys}),
    "match": Case(MatchStep(JOB), {("sign", "bands"): bands}),
    "verify": Case(VerifyStep(JOB), {("match", "buckets"): buckets, ("gather", "texts"): texts}, 4096),
    "confirm": Case(ConfirmStep(JOB), {("unite", "members"): members, ("unite", "links"): links}),
    "unite": Case(
        UniteStep(JOB),
        {("verify", "edges"): edges, ("verify", "nodes"): nodes, ("exact", "groups"): groups},
    ),
}


class MadeSide:
    """As much of a Side as these steps use; rows are made when they are read."""

    def __init__(self, case: Case, rows: int, budget: int, scratch: Path) -> None:
        self._case, self._rows = case, rows
        self.memory_budget, self.scratch = budget, scratch
        self.partition, self.numbers = "0", Numbers(16, 16, 16, 16, 16)
        self.bytes = 0

    def tables(self, step: str, kind: str) -> Iterator[tuple[str, pa.Table]]:
        """See the protocol."""
        made = self._case.inputs[step, kind]
        for first in range(0, self._rows, self._case.per_table):
            found = made(first, min(first + self._case.per_table, self._rows))
            self.bytes += found.nbytes
            yield f"{first >> 12:016x}", found

    def stream(self, step: str, kind: str) -> Iterator[pa.Table]:
        """See the protocol."""
        for _, found in self.tables(step, kind):
            yield found

    def table(self, step: str, kind: str) -> pa.Table:
        """See the protocol."""
        return pa.concat_tables([t for _, t in self.tables(step, kind)]).combine_chunks()

    def checkpoint(self) -> None:
        """Nobody asks for a pause."""


class Peak:
    """Looks every 5 ms at what this process takes that no file backs."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self.before = self._taken()
        self.most = self.before
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def held(self) -> int:
        """Bytes at the peak beyond those before."""
        self._over.set()
        self._thread.join()
        return self.most - self.before

    def _taken(self) -> int:
        memory = self._process.memory_info()
        return int(memory.rss - memory.shared)

    def _look(self) -> None:
        while not self._over.wait(0.005):
            self.most = max(self.most, self._taken())


def raw(out: pa.Table, name: str) -> bytes:
    """The bytes of a column's values."""
    kind = out.schema.field(name).type
    if pa.types.is_fixed_size_binary(kind):
        return columns.binary_rows(out, name).tobytes()
    if pa.types.is_large_binary(kind):
        return b"".join(out.column(name).to_pylist())
    if pa.types.is_string(kind):
        return ("".join(f"{value}\n" for value in out.column(name).to_pylist())).encode()
    return out.column(name).to_numpy().tobytes()


def measure(name: str, rows: int, budget: int) -> dict[str, object]:
    """Run one step in this process."""
    case = CASES[name]
    run = case.step.run  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as scratch:
        for _ in run(MadeSide(case, 5_000, 1 << 40, Path(scratch)), 0):
            pass  # compiled kernels are loaded
        side = MadeSide(case, rows, budget, Path(scratch))
        peak, began = Peak(), time.process_time()
        digests: dict[str, Any] = {}
        metrics: dict[str, float] = {}
        making = 0.0
        for result in run(side, 0):
            for key, value in result.metrics.items():
                metrics[key] = metrics.get(key, 0.0) + value
            at = time.process_time()
            for kind, out in result.outputs.items():
                for column in out.column_names:
                    digests.setdefault(f"{kind}.{column}", sha256()).update(raw(out, column))
            making += time.process_time() - at
        cpu = time.process_time() - began - making
        held = peak.held()
        at = time.process_time()
        read = side.bytes
        for step, kind in case.inputs:
            for _ in side.tables(step, kind):
                pass
        once = time.process_time() - at
    return {
        "step": name,
        "rows": rows,
        "budget_mb": budget >> 20,
        "before_mb": peak.before >> 20,
        "read_mb": read >> 20,
        "held_mb": held >> 20,
        "held_per_row": round(held / rows, 1),
        "held_per_byte": round(held / read, 2),
        "us_per_row": round(1e6 * (cpu - once) / rows, 2),
        "metrics": metrics,
        "output": sha256("".join(digests[of].hexdigest() for of in sorted(digests)).encode()).hexdigest()[
            :16
        ],
    }


def main() -> None:
    """Measure one case, or start a process for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("step", choices=sorted(CASES))
    parser.add_argument("--rows", default="1e6")
    parser.add_argument("--budget-mb", type=int, default=1500)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    sizes = [int(float(size)) for size in args.rows.split(",")]
    if len(sizes) == 1:
        print(json.dumps(measure(args.step, sizes[0], args.budget_mb << 20)))
        return
    for rows in sizes:
        command = [sys.executable, "-m", "bench.scaling.ranges", args.step, "--rows", str(rows)]
        subprocess.run([*command, "--budget-mb", str(args.budget_mb)], check=True)


if __name__ == "__main__":
    main()
