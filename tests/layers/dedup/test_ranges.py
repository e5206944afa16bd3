"""Whatever memory there is, dedup writes the same."""

import pyarrow as pa
import pytest
from dedup_flow import Flow, Store, above, cut, documents, job
from families import family
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_incremental import days

from dataflow_ops.layers.dedup import spill
from dataflow_ops.layers.dedup.match import MatchStep
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Numbers

BUDGETS = (1, 20_000, 200_000)
"""Bytes: a row at a time; some rows; more than some ranges have."""
FEW = Numbers(2, 2, 2, 2, shard_groups=1)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_BATCH_BYTES", 256)


def same(one: Store, other: Store) -> None:
    """All outputs, to the byte: rows and their order in each slice."""
    assert one.schemas == other.schemas
    for name in one.schemas:
        for partition in one.parts[name].keys() | other.parts[name].keys():
            slices = [store.parts[name].get(partition, {}) for store in (one, other)]
            for cut_ in slices[0].keys() | slices[1].keys():
                tables = [store.load(*name, partition, cut_).combine_chunks() for store in (one, other)]
                assert tables[0].equals(tables[1]), (name, partition, cut_)


def under(budget: int, of: JobSettings, chunks: list[pa.Table], limit: int = 10_000, **more: object) -> Flow:
    flow = Flow(of, FEW, memory_budget=budget, **more)  # type: ignore[arg-type]
    flow.build = {"match": MatchStep(of, limit)}
    return flow


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.sampled_from(BUDGETS),
    st.sampled_from([2, 3, 10_000]),
    st.booleans(),
)
def test_outputs_do_not_depend_on_memory(
    seed: int, sizes: list[int], budget: int, limit: int, exact: bool
) -> None:
    of = job(exact=exact)
    chunks = cut(documents(family(seed, sizes)), [5, 7, 3])
    plain = under(1 << 40, of, chunks, limit).run(chunks)
    tight = under(budget, of, chunks, limit).run(chunks)
    same(plain.store, tight.store)
    assert plain.counts == tight.counts
    assert plain.hits == tight.hits
    assert "ranges_split" not in plain.metrics
    assert "ranges_split" in tight.metrics or budget > 1 or len(sizes) == sum(sizes)
    for name in ("exact_groups", "exact_copies", "buckets", "bucket_members", "buckets_split", "components"):
        assert plain.metrics.get(name) == tight.metrics.get(name), name


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 8), min_size=1, max_size=7),
    st.sampled_from(BUDGETS),
    st.sampled_from([2, 3, 10_000]),
)
def test_outputs_of_a_day_do_not_depend_on_memory(
    seed: int, sizes: list[int], budget: int, limit: int
) -> None:
    stores: list[Store] = []
    for table in days(seed, sizes, 3):
        of = above(job()) if stores else job()
        chunks = cut(table, [4, 3])
        plain = under(1 << 40, of, chunks, limit, below=stores).run(chunks)
        tight = under(budget, of, chunks, limit, below=stores).run(chunks)
        same(plain.store, tight.store)
        assert plain.hits == tight.hits
        stores.append(plain.store)


@pytest.mark.parametrize("budget", [3_000, 200_000])
def test_one_text_and_one_template_beyond_memory(budget: int) -> None:
    """Copies of one text, and as many pages that share all their bands."""
    [page] = family(3, [1])
    texts = [page] * 90 + [f"{page} {i:03d}" for i in range(90)]
    chunks = cut(documents(texts), [40] * 4)
    plain = under(1 << 40, job(), chunks, 20).run(chunks)
    tight = under(budget, job(), chunks, 20).run(chunks)
    same(plain.store, tight.store)
    assert tight.metrics["ranges_split"] > plain.metrics.get("ranges_split", 0)
    assert len(plain.removed()) >= 89
