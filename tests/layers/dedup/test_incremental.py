"""New documents against a version below them: it stays, they yield, and nothing is compared by hearsay."""

import random

import numpy as np
import pyarrow as pa
import pytest
from dedup_flow import Flow, Outcome, Store, above, alias, cut, documents, job
from families import family
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops import schema
from dataflow_ops.errors import BaseDamaged
from dataflow_ops.kernels.bloom import Bloom
from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.kernels.similarity import similarity
from dataflow_ops.layers.dedup.compare import leader_walk
from dataflow_ops.layers.dedup.match import MatchStep
from dataflow_ops.values import Numbers


def texts_of(*tables: pa.Table) -> dict[bytes, str]:
    return {
        doc: fold_text(text)
        for table in tables
        for doc, text in zip(table["doc_id"].to_pylist(), table["text"].to_pylist(), strict=True)
    }


def days(seed: int, sizes: list[int], parts: int) -> list[pa.Table]:
    """Documents of several days; families spread over them."""
    table = documents(family(seed, sizes))
    owner = random.Random(seed + 1).choices(range(parts), k=table.num_rows)
    return [table.filter(pa.array([o == day for o in owner])).combine_chunks() for day in range(parts)]


def check(outcome: Outcome, own: pa.Table, below: dict[bytes, str], least: float = 0.8) -> None:
    """Only own documents are judged; each removed one is like the survivor it names, own or below."""
    text = texts_of(own)
    removed = outcome.removed()
    copies: dict[bytes, int] = {}
    for doc, row in removed.items():
        survivor = row["survivor_id"]
        assert doc in text
        assert survivor not in removed
        assert (survivor in text) != (survivor in below)
        copies[survivor] = copies.get(survivor, 0) + 1
        other = text.get(survivor) or below[survivor]
        assert similarity(text[doc], other, least) == pytest.approx(row["similarity"], abs=1e-6)
        assert (row["verdict"] == "exact") == (text[doc] == other)
    for doc, row in outcome.verdicts.items():
        if row["verdict"] == "survivor":
            assert doc in text, "nothing is said again of documents below"
            assert row["copies"] == copies.pop(doc)
    assert set(copies) <= set(below)
    left = [t for d, t in text.items() if d not in removed] + list(below.values())
    assert len(left) == len(set(left)), "no exact copy of anything stays"
    assert outcome.counts["confirm"].rejected == len(removed)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.lists(st.integers(1, 8), min_size=1, max_size=7), st.data())
def test_new_documents_yield_to_those_below_however_work_is_cut(
    seed: int, sizes: list[int], data: st.DataObject
) -> None:
    first, second, third = days(seed, sizes, 3)
    below: dict[bytes, str] = {}
    stores: list[Store] = []
    for table in (first, second, third):
        settings_ = above(job()) if stores else job()
        plain = Flow(settings_, below=stores).run([table])
        check(plain, table, below)
        ranges = [data.draw(st.sampled_from([1, 2, 8])) for _ in range(2)]
        cuts = data.draw(st.lists(st.integers(1, 9), max_size=3))
        numbers = Numbers(4, 4, ranges[0], ranges[1], shard_groups=1)  # keys and bands are cut as below
        other = Flow(settings_, numbers, batch=data.draw(st.integers(1, 20)), below=stores).run(
            cut(table, cuts)
        )
        assert {d: v["survivor_id"] for d, v in plain.verdicts.items()} == {
            d: v["survivor_id"] for d, v in other.verdicts.items()
        }
        below |= {d: t for d, t in texts_of(table).items() if d not in plain.removed()}
        stores.append(plain.store)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.lists(st.integers(2, 6), min_size=1, max_size=5))
def test_exact_copies_of_survivors_below_are_all_removed(seed: int, sizes: list[int]) -> None:
    table = documents(family(seed, sizes))
    base = Flow(job()).run([table])
    again = documents(
        table["text"].combine_chunks(), [schema.doc_id("t", "g", i) for i in range(table.num_rows)]
    )
    found = Flow(above(job()), below=[base.store]).run([again])
    survivors = {d for d in texts_of(table) if d not in base.removed()}
    exact = {fold_text(t) for d, t in texts_of(table).items() if d in survivors}
    for doc, text in texts_of(again).items():
        if text in exact:
            assert found.removed()[doc]["verdict"] == "exact"


def test_the_longest_new_text_yields_all_the_same() -> None:
    body = " ".join(family(4, [1, 1]))
    base = documents([body], [schema.doc_id("s", "old", 0)])
    new = documents([body + " lava", body + " lava7 hexagon9"])
    below = Flow(job()).run([base])
    found = Flow(above(job()), below=[below.store]).run([new])
    assert {row["survivor_id"] for row in found.removed().values()} == {schema.doc_id("s", "old", 0)}
    assert len(found.removed()) == 2


def test_what_was_replaced_or_removed_below_is_no_survivor() -> None:
    one, other = family(7, [1])[0], family(8, [1])[0]
    base = documents([one, one + " copy", other], [schema.doc_id("s", "old", i) for i in range(3)])
    below = Flow(job()).run([base])
    [lost] = below.removed()
    kept = below.removed()[lost]["survivor_id"]
    at = {doc: i for i, doc in enumerate(base["doc_id"].to_pylist())}
    chunk = int(alias(0, schema.chunk_name(1000)), 16)
    new = documents([one + " copy", other])
    found = Flow(above(job()), below=[below.store], gone=[(chunk, at[kept])]).run([new])
    first, second = new["doc_id"].to_pylist()
    assert first not in found.removed(), "its only survivor was replaced; the copy below was removed before"
    assert found.removed()[second]["survivor_id"] == schema.doc_id("s", "old", 2)
    found = Flow(above(job()), below=[below.store]).run([new])
    assert found.removed()[first]["survivor_id"] == kept


def test_two_documents_below_are_never_held_against_each_other() -> None:
    """Both are like the new one, which joins them to one component: they stay, whatever they are to each
    other, and the nearer one takes it."""
    text = [f"w{i}" for i in range(300)]
    near = [w if i % 60 else "x" for i, w in enumerate(text)]
    new = [w if i % 90 else "y" for i, w in enumerate(text)]
    stores = [
        Flow(job()).run([documents([" ".join(words)], [schema.doc_id("s", "old", i)])]).store
        for i, words in enumerate((near, text))
    ]
    found = Flow(above(job()), below=stores).run([documents([" ".join(new)])])
    [row] = found.removed().values()
    assert row["survivor_id"] == schema.doc_id("s", "old", 1)
    assert found.counts["confirm"].documents_in == 1


def test_nothing_new_reads_nothing_below() -> None:
    below = Flow(job()).run([documents(family(2, [3, 3]))])
    found = Flow(above(job()), below=[below.store]).run([documents([])])
    assert not found.verdicts
    strangers = Flow(above(job()), below=[below.store]).run([documents(family(99, [1]))])
    assert strangers.metrics.get("texts_recalled", 0) == 0


def test_filters_know_every_key_and_tell_when_they_outgrow_the_capacity() -> None:
    table = documents(family(21, [3, 2, 2]))
    made = Flow(job()).run([table]).store
    for kind, of, column in (("keys", "exact", "sha1"), ("bands", "match", "band")):
        for prefix, handles in made.parts[of, "filter"].items():
            [row] = handles[""][0].to_pylist()
            keys = made.load("sign", kind, schema.chunk_name(1000), prefix)[column]
            values = [int.from_bytes(k[:8], "big") if kind == "keys" else k for k in keys.to_pylist()]
            assert row["keys"] == len(values)
            assert Bloom.of_bytes(row["bits"]).may_contain(np.array(values, np.uint64)).all()
    small = Flow(job(global_bloom={"capacity": 1})).run([table])
    assert small.metrics["filters_resized"] > 0
    assert "filters_resized" not in Flow(job()).run([table]).metrics
    again = documents(
        table["text"].combine_chunks(), [schema.doc_id("t", "g", i) for i in range(table.num_rows)]
    )
    wanted = Flow(above(job()), below=[made]).run([again]).removed()
    assert Flow(above(job()), below=[small.store]).run([again]).removed().keys() == wanted.keys()


def test_without_filters_the_tables_are_asked() -> None:
    body = family(13, [1])[0]
    below = Flow(job()).run([documents([body], [schema.doc_id("s", "old", 0)])]).store
    for of in ("exact", "match"):
        below.parts[of, "filter"].clear()
    found = Flow(above(job()), below=[below]).run([documents([body])])
    assert [row["verdict"] for row in found.removed().values()] == ["exact"]


def test_a_full_bucket_is_cut_by_length_and_each_part_keeps_its_base() -> None:
    """Members of a band that all share: parts of a cut bucket hold documents below beside new ones."""
    rng = random.Random(4)
    lines = [" ".join(f"w{rng.randrange(40)}" for _ in range(60)) for _ in range(2)]
    texts = [lines[0] + " " + lines[1][: 5 * i] for i in range(40)]
    below = Flow(job()).run([documents(texts[::2], [schema.doc_id("s", "old", i) for i in range(20)])])
    build = {"match": MatchStep(above(job()), max_bucket=6)}
    new = documents(texts[1::2])
    found = Flow(above(job()), below=[below.store], build=build).run([new])
    assert found.metrics["buckets_split"] > 0
    assert len(found.removed()) >= 18


def test_settled_members_are_leaders_from_the_outset() -> None:
    compared = []

    def similar(a: int, b: int, equal: int, may_spare: bool) -> float:
        compared.append((a, b))
        return 0.9 if (a, b) in {(1, 3)} else 0.0

    edges, beyond = leader_walk(
        [0, 1, 2, 3, 4], [0] * 5, lambda many, _: -pa.array(many).to_numpy(), similar, 2, 3
    )
    assert edges == [(1, 3, 0.9)]
    assert not {(0, 1), (0, 2), (1, 2)} & set(compared)
    assert beyond == 1, "the last one was held against two of three"


def test_a_text_below_that_rotted_is_told() -> None:
    body = family(13, [1])[0]
    below = Flow(job()).run([documents([body], [schema.doc_id("s", "old", 0)])])
    name = schema.chunk_name(1000)
    handle = below.store.parts["parse", "text"][name][""][0]
    assert isinstance(handle, pa.Table)
    rotten = handle.set_column(1, "text", pa.array([body + "!!"], pa.large_string()))
    below.store.parts["parse", "text"][name][""][0] = rotten
    with pytest.raises(BaseDamaged, match="not the one that was signed"):
        Flow(above(job()), below=[below.store]).run([documents([body + " more"])])
