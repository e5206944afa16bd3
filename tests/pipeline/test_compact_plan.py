"""Which shards are put together: whole ones, neighbours, up to a shard's size."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.layers.export.content import Content
from dataflow_ops.pipeline.compact_chain import SourceFile
from dataflow_ops.pipeline.compact_plan import (
    LINEAGE_ROWS,
    SLACK,
    lineage_groups,
    moved,
    shard_groups,
)


def shard(number: int, folder: str = "domain=a", rows: int = 10, place: int = 0) -> SourceFile:
    path = f"{folder}/part-{number:05d}-of-00100.parquet"
    return SourceFile(f"{number:016x}", place, path, f"versions/v{place}/{path}", rows, 1, "00", {})


def content(rows: int, size: int) -> Content:
    return Content(rows=rows, text_bytes=size)


@st.composite
def many(draw: Any) -> tuple[list[SourceFile], dict[str, Content]]:
    found = draw(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10), st.integers(1, 100)), max_size=30)
    )
    found.sort(key=lambda one: one[0])
    files = [shard(number, f"domain={folder}") for number, (folder, _, _) in enumerate(found)]
    sizes = {
        f.name: content(rows, size if rows else 0) for f, (_, rows, size) in zip(files, found, strict=True)
    }
    return files, sizes


@given(many(), st.integers(1, 12))
def test_every_living_shard_is_in_one_group_in_order(made: Any, asked: int) -> None:
    files, contents = made
    groups = shard_groups(files, contents, "parquet", asked)
    living = [f for f in files if contents[f.name].rows]
    assert [f for group in groups for f in group.sources] == living
    assert set(moved(groups)) == {(f.place, f.path) for f in living}
    limit = SLACK * sum(c.text_bytes for c in contents.values()) / asked
    for group in groups:
        assert {f.folder for f in group.sources} == {group.path.rpartition("/")[0]}
        assert len(group.sources) == 1 or group.content.text_bytes <= limit
        whole = len(group.sources) == 1 and group.content.rows == group.sources[0].rows
        assert group.taken_over == whole
    for one, two in pairwise(groups):
        if one.sources[0].folder == two.sources[0].folder:
            first = contents[two.sources[0].name].text_bytes
            assert one.content.text_bytes + first > limit, "it would have fitted"
    assert len({group.path for group in groups}) == len({group.name for group in groups}) == len(groups)


def test_full_shards_are_taken_over_and_days_are_put_together() -> None:
    files = [shard(n) for n in range(4)] + [shard(n, place=1 + n % 3) for n in range(4, 16)]
    contents = {f.name: content(10, 1000 if f.place == 0 else 10) for f in files}
    groups = shard_groups(files, contents, "parquet", 5)
    assert [group.taken_over for group in groups] == [True, True, True, False, False]
    assert [len(group.sources) for group in groups] == [1, 1, 1, 4, 9]
    # A shard of another format, or with replaced documents, is written anew.
    assert not any(group.taken_over for group in shard_groups(files, contents, "jsonl.zst", 5))
    contents[files[0].name] = content(9, 900)
    assert [g.taken_over for g in shard_groups(files, contents, "parquet", 5)][:2] == [False, True]


def test_lineage_is_put_together_up_to_a_bound() -> None:
    files = [shard(n, "lineage", rows) for n, rows in enumerate([LINEAGE_ROWS, 1, 2, LINEAGE_ROWS - 3, 1])]
    groups = list(lineage_groups(files).values())
    assert [[f.rows for f in group] for group in groups] == [
        [LINEAGE_ROWS],
        [1, 2, LINEAGE_ROWS - 3],
        [1],
    ]
