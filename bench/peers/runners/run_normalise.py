"""Ours for Unicode repair: the function that parse calls for each text, from Arrow to Python and back."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from clock import Clock

from dataflow_ops.layers.parse.normalise import TextRules, normalise


def main() -> None:
    docs, out = Path(sys.argv[2]), Path(sys.argv[3])
    clock, rules = Clock(out), TextRules()
    table = pq.read_table(docs, columns=["id", "text"])
    clock.begin()
    found = [normalise(text, rules).text for text in table["text"].to_pylist()]
    pa.array(found, pa.large_string())
    clock.end()
    clock.leave(table["id"].to_pylist())


if __name__ == "__main__":
    main()
