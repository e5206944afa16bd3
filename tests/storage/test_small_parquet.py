from __future__ import annotations

import io
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_ops.storage.small_parquet import parquet_in

RELEASED = """
import threading
import pyarrow as pa, pyarrow.parquet as pq
from dataflow_ops.storage.small_parquet import parquet_in

sink = pa.BufferOutputStream()
pq.write_table(pa.table({f"c{i}": list(range(1000)) for i in range(5)}), sink)
data, main, elsewhere = sink.getvalue().to_pybytes(), threading.get_ident(), 0

class Watched(bytearray):
    def __del__(self):
        global elsewhere
        elsewhere += threading.get_ident() != main

for _ in range(500):
    parquet_in(pa.py_buffer(Watched(data)))
print(elsewhere)
"""


def test_all_rows_come_back() -> None:
    table = pa.table({"a": [1, 2, None], "b": ["x", "", "水"]})
    file = io.BytesIO()
    pq.write_table(table, file)
    assert parquet_in(file.getvalue()).equals(table)


def test_no_thread_of_arrow_lets_go_of_the_bytes() -> None:
    done = subprocess.run([sys.executable, "-c", RELEASED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"]
