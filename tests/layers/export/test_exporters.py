from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.layers.export.columns import EXPORTED
from dataflow_ops.layers.export.cut import row_groups
from dataflow_ops.layers.export.exporters import EXPORTERS

NASTY = [
    "",
    "plain",
    "line\nfeed\r\nand return\r",
    "U+2028 \u2028 U+2029 \u2029 U+0085 \x85",
    'quote " backslash \\ slash / null \x00 bell \x07 del \x7f',
    "汉字，全角。 🙂👍🏽 e\u0301 \ufeff \uffff \U0010ffff",
    '<|endoftext|> {"a": NaN}',
    "x" * 200_000,
]


def rows(texts: list[str]) -> pa.Table:
    made = []
    for i, text in enumerate(texts):
        row = {f.name: (text if pa.types.is_string(f.type) else i) for f in EXPORTED}
        made.append({**row, "text": text, "quality_score": None if i % 2 else 0.5})
    return pa.Table.from_pylist(made, schema=EXPORTED)


@pytest.mark.parametrize("name", EXPORTERS)
class TestExporter:
    """Every exporter keeps to this."""

    def test_the_table_names_its_suffix(self, name: str) -> None:
        assert EXPORTERS[name].SUFFIX == name

    def test_nasty_strings_come_back(self, name: str, tmp_path: Path) -> None:
        path, table = tmp_path / "a", rows(NASTY)
        EXPORTERS[name].write(path, iter([table]), EXPORTED)
        found = pa.concat_tables(
            [t.select(EXPORTED.names).cast(EXPORTED) for t in EXPORTERS[name].read(path)]
        )
        assert found.to_pylist() == table.to_pylist()

    def test_bytes_depend_on_rows_alone(self, name: str, tmp_path: Path) -> None:
        table = rows(NASTY * 40)
        parts = [table.slice(i, 7) for i in range(0, table.num_rows, 7)]
        EXPORTERS[name].write(tmp_path / "a", iter([table]), EXPORTED)
        EXPORTERS[name].write(tmp_path / "b", iter(parts), EXPORTED)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_a_flipped_byte_does_not_go_unseen(self, name: str, tmp_path: Path) -> None:
        path, table = tmp_path / "a", rows(NASTY)
        EXPORTERS[name].write(path, iter([table]), EXPORTED)
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 4
        path.write_bytes(bytes(data))
        with pytest.raises((OSError, ValueError, pa.ArrowException, zstandard.ZstdError)):
            list(EXPORTERS[name].read(path))


def test_one_line_of_json_per_row_and_keys_in_order(tmp_path: Path) -> None:
    EXPORTERS["jsonl.zst"].write(tmp_path / "a", iter([rows(NASTY)]), EXPORTED)
    with zstandard.open(tmp_path / "a", "rb") as file:
        lines = file.read().split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == len(NASTY)
    for line in lines:
        assert list(json.loads(line)) == sorted(EXPORTED.names)


@given(
    st.lists(st.integers(0, 30), max_size=40),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(1, 7),
    st.integers(1, 60),
)
def test_row_groups_are_cut_at_fixed_places(
    lengths: list[int], steps: list[int], most: int, size: int
) -> None:
    table = pa.table(
        {"text": pa.array(["x" * n for n in lengths], pa.large_string()), "n": np.arange(len(lengths))}
    )
    expected: list[list[int]] = []
    held = 0
    for i, length in enumerate(lengths):
        if not expected or len(expected[-1]) == most or held + length > size:
            expected.append([])
            held = 0
        expected[-1].append(i)
        held += length
    parts, start, k = [], 0, 0
    while start < len(lengths):
        parts.append(table.slice(start, steps[k % len(steps)]))
        start += steps[k % len(steps)]
        k += 1
    assert [g["n"].to_pylist() for g in row_groups(parts, most, size)] == expected
