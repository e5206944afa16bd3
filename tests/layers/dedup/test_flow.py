"""What must hold whatever the documents are: survivors, conservation, and independence of how work is cut."""

import json
import random
from itertools import pairwise

import pyarrow as pa
import pytest
from dedup_flow import NUMBERS, STEPS, Flow, Outcome, cut, documents, job
from families import VOCABULARY, ZH, family
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops.job_file import parse_job
from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.kernels.similarity import similarity
from dataflow_ops.layers.dedup import component
from dataflow_ops.layers.dedup.match import MatchStep
from dataflow_ops.protocols import MapStep, RunStep
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Numbers


def check(outcome: Outcome, table: pa.Table, least: float = 0.8) -> None:
    """The survivor guarantee, the counts, and one verdict a document."""
    text = dict(zip(table["doc_id"].to_pylist(), map(fold_text, table["text"].to_pylist()), strict=True))
    removed = outcome.removed()
    copies: dict[bytes, int] = {}
    for doc, row in removed.items():
        survivor = row["survivor_id"]
        assert survivor not in removed
        copies[survivor] = copies.get(survivor, 0) + 1
        assert similarity(text[doc], text[survivor], least) == pytest.approx(row["similarity"], abs=1e-6)
        assert row["similarity"] >= least - 1e-6
        assert (row["verdict"] == "exact") == (text[doc] == text[survivor]) or least == 1.0
        at = outcome.verdicts[survivor]["at"]
        assert (row["survivor_chunk"], row["survivor_row"]) == at
    for doc, row in outcome.verdicts.items():
        if row["verdict"] == "survivor":
            assert row["copies"] == copies.pop(doc)
            assert row["survivor_id"] == doc
    assert not copies
    # No two survivors have the same key text.
    left = [t for d, t in text.items() if d not in removed]
    assert len(left) == len(set(left))
    assert outcome.counts["sign"].documents_in == table.num_rows
    assert outcome.counts["confirm"].rejected == len(removed) == sum(outcome.hits.values())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.lists(st.integers(1, 8), min_size=1, max_size=8), st.data())
def test_survivors_are_verified_and_cutting_changes_nothing(
    seed: int, sizes: list[int], data: st.DataObject
) -> None:
    table = documents(family(seed, sizes))
    plain = Flow(job()).run([table])
    check(plain, table)
    cuts = data.draw(st.lists(st.integers(1, 9), max_size=4))
    ranges = [data.draw(st.sampled_from([1, 2, 8, 32])) for _ in range(4)]
    shuffled = table.take(pa.array(random.Random(seed).sample(range(table.num_rows), table.num_rows)))
    other = Flow(job(), Numbers(*ranges, shard_groups=1), batch=data.draw(st.integers(1, 20))).run(
        cut(shuffled, cuts)
    )
    check(other, table)
    assert {d: v["survivor_id"] for d, v in plain.verdicts.items()} == {
        d: v["survivor_id"] for d, v in other.verdicts.items()
    }
    assert plain.hits == other.hits


def test_outputs_do_not_depend_on_batches() -> None:
    table = documents(family(5, [6, 5, 4, 3, 2, 1, 1]))
    stores = [Flow(job(), batch=b).run(cut(table, [9, 4])).store for b in (1, 5, 1000)]
    for one, two in pairwise(stores):
        for key in one.schemas:
            for partition in one.parts[key]:
                for name in one.parts[key][partition]:
                    assert one.load(*key, partition, name).equals(two.load(*key, partition, name)), key


def test_survivor_order() -> None:
    body = " ".join(family(3, [1]))
    ids = [bytes([i] * 16) for i in range(1, 6)]
    texts = [body + " ", body, body, body + " tail", "  " + body]
    outcome = Flow(job()).run([documents(texts, ids[::-1])])
    assert set(outcome.removed()) == {ids[4], ids[3], ids[2], ids[0]}, "the longest key text stays"
    outcome = Flow(job()).run([documents([texts[0], texts[1], texts[2]], ids[:3][::-1])])
    assert outcome.survivor(ids[2]) == ids[0], "then the shortest stored text with the smallest id"


def test_priority_decides_before_length() -> None:
    settings = parse_job(
        {
            "dataset": {"id": "t"},
            "dedup": {"priority": ["books"]},
            "sources": [
                {"path": "a", "source_id": "w", "domain": "web"},
                {"path": "b", "source_id": "k", "domain": "books"},
            ],
        }
    )
    body = " ".join(family(4, [1]))
    table = documents([body + " and a longer end", body], sources=["w", "k"])
    outcome = Flow(settings).run([table])
    assert list(outcome.removed()) == [table["doc_id"][0].as_py()]
    assert list(Flow(job()).run([table]).removed()) == [table["doc_id"][1].as_py()]


def test_rejected_documents_take_no_part() -> None:
    body = " ".join(family(6, [1]))
    table = documents([body, body, "x" * 50])
    table = table.set_column(3, "kept", pa.array([False, True, None]))
    outcome = Flow(job()).run([table])
    assert not outcome.verdicts
    assert outcome.counts["sign"].skipped == {"rejected_before": 2}


@pytest.mark.parametrize(
    ("switches", "left"), [({"exact": False}, 2), ({"near": False}, 3), ({"exact": False, "near": False}, 5)]
)
def test_switches(switches: dict[str, bool], left: int) -> None:
    a, b = family(8, [1]), family(9, [1])
    table = documents([a[0], a[0] + " ", a[0] + " more", b[0], b[0]])
    outcome = Flow(job(**switches)).run(cut(table, [2]))
    assert 5 - len(outcome.removed()) == left


def test_nothing_in_nothing_out() -> None:
    outcome = Flow(job()).run([documents([])])
    assert not outcome.verdicts
    assert all(c.documents_in == 0 for c in outcome.counts.values())


def test_word_shingles() -> None:
    settings = job(shingle_unit="word")
    table = documents(family(11, [6, 5, 1]))
    outcome = Flow(settings).run(cut(table, [4]))
    check(outcome, table)
    assert outcome.removed()


@pytest.mark.parametrize("limit", [2, 3])
def test_overfull_bucket_is_cut_and_reported(limit: int) -> None:
    body = " ".join(family(12, [1]) * 2)
    table = documents([body + f" {i}" for i in range(12)])
    flow = Flow(job(), build={"match": MatchStep(job(), limit)})
    outcome = flow.run(cut(table, [5]))
    assert outcome.metrics["buckets_split"] > 0
    check(outcome, table)
    assert len(outcome.removed()) >= 12 - 12 // limit - 1


def test_leaders_are_capped_and_the_rest_stays() -> None:
    words = [f"{w}{i}" for i in range(20) for w in VOCABULARY]
    pages = [" ".join(words[:150] + random.Random(i).sample(words, 60)) for i in range(30)]
    capped = Flow(job(verify={"max_leaders": 1})).run([documents(pages)])
    check(capped, documents(pages))
    assert capped.metrics["leaders_capped"] > 0
    free = Flow(job()).run([documents(pages)])
    assert free.metrics["leaders_capped"] == 0
    assert set(capped.removed()) <= set(free.removed())


def test_family_under_a_longer_stranger_is_found() -> None:
    words = [f"{w}{i}" for i in range(20) for w in VOCABULARY]
    shared = " ".join(words[:150])
    stranger = shared + " " + " ".join(words[200:300])
    table = documents([stranger, shared + " end", shared + " the end", shared])
    outcome = Flow(job(verify={"min_similarity": 0.9})).run([table])
    assert len(outcome.removed()) == 2
    assert outcome.survivor(table["doc_id"][0].as_py()) == table["doc_id"][0].as_py()


def test_large_components_keep_the_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the whole walk off, only nodes within two edges are compared: fewer found, none unverified."""
    table = documents(family(21, [8, 8, 8, 6, 4]))
    whole = Flow(job()).run(cut(table, [11]))
    monkeypatch.setattr(component, "WHOLE_WALK", 0)
    monkeypatch.setattr(component, "MAX_MOVES", 0)
    outcome = Flow(job()).run(cut(table, [11]))
    check(outcome, table)
    assert outcome.metrics["confirm_compared"] <= whole.metrics["confirm_compared"]
    assert len(outcome.removed()) > 0.8 * len(whole.removed()) > 0


def test_removed_document_goes_to_the_most_similar_survivor() -> None:
    rng = random.Random(1)
    tokens, others = (
        ["".join(rng.choices("abcdefghijklmnopqrst", k=6)) for _ in range(200)] for _ in range(2)
    )
    longest = others[:20] + tokens[20:] + ["longest"]
    base = tokens[:100] + others[100:124] + tokens[124:] + ["b"]
    copy = tokens[:100] + others[100:108] + tokens[108:]
    texts = [" ".join(t) for t in (longest, base, copy)]
    keys = [fold_text(t) for t in texts]
    first, second = similarity(keys[0], keys[2], 0.85), similarity(keys[1], keys[2], 0.85)
    assert similarity(keys[0], keys[1], 0.85) == 0.0 < first < second
    table = documents(texts)
    outcome = Flow(job(verify={"min_similarity": 0.85})).run([table])
    ids = table["doc_id"].to_pylist()
    assert {d: v["survivor_id"] for d, v in outcome.removed().items()} == {ids[2]: ids[1]}


def test_copies_near_the_script_line_still_meet() -> None:
    rng = random.Random(2)
    mixed = "".join(rng.choice(ZH) if i % 50 < 17 else rng.choice("abcdefghijklm") for i in range(800))
    less = mixed + " and a line of letters at the end of it"
    share = [sum(c > "\x80" for c in t) / len(t) for t in (mixed, less)]
    assert share[1] < 1 / 3 < share[0]
    assert len(Flow(job()).run([documents([mixed, less])]).removed()) == 1


def test_texts_of_stars_are_not_collected() -> None:
    """A group whose members were all compared with the best already has nothing left to compare."""
    text = family(3, [1])[0]
    table = documents([text + " as it is", *(text + end for end in (" x", " y", " z", " z"))])
    outcome = Flow(job()).run(cut(table, [2]))
    assert len(outcome.removed()) == 4
    assert outcome.metrics["confirm_compared"] == outcome.metrics.get("texts_collected", 0) == 0
    some = Flow(job()).run([documents([*table["text"].to_pylist(), *family(21, [8, 8, 8, 6, 4])])])
    members = sum(
        some.store.load("unite", "members", p, None).num_rows for p in some.store.parts["unite", "members"]
    )
    assert 0 < some.metrics["texts_collected"] < members


def test_steps_are_what_the_engine_needs() -> None:
    for cls in STEPS:
        step = cls(job())
        assert isinstance(step, MapStep if step.name == "sign" else RunStep)
        assert step.layer == "dedup"
        assert step.fingerprint()["step"] >= 1
        json.dumps(step.fingerprint())


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({"minhash": {"seed": 2}}, {"sign", "match", "gather", "collect", "confirm"}),
        ({"verify": {"min_similarity": 0.9}}, {"verify", "confirm"}),
        ({"verify": {"max_leaders": 9}}, {"verify"}),
        ({"exact": False}, {"exact", "match"}),
        ({"near": False}, {"sign"}),
    ],
)
def test_fingerprints_move_with_their_settings(change: dict[str, object], moved: set[str]) -> None:
    def prints(settings: JobSettings) -> dict[str, object]:
        return {cls.name: dict(cls(settings).fingerprint()) for cls in STEPS}

    before, after = prints(job()), prints(job(**change))
    assert {name for name in before if before[name] != after[name]} == moved


def test_pairs_are_readable() -> None:
    texts = family(3, [1])
    table = documents([texts[0], texts[0] + " x", texts[0] + "  x"])
    outcome = Flow(job(), NUMBERS).run(cut(table, [1]))
    rows = [
        r
        for p in outcome.store.parts["confirm", "pairs"]
        for r in outcome.store.load("confirm", "pairs", p, None).to_pylist()
    ]
    assert sorted(r["verdict"] for r in rows) == ["exact", "near"]
    for row in rows:
        assert outcome.verdicts[bytes.fromhex(row["removed"])]["survivor_id"] == bytes.fromhex(
            row["survivor"]
        )
        assert row["removed_chunk"] in outcome.store.parts["sign", "signatures"]


def test_copies_inside_a_crowded_template_are_found() -> None:
    """Beyond the cap of leaders in the template's bucket, copies still meet in buckets of their own."""
    rng = random.Random(4)

    def words(n: int) -> str:
        return " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 8))) for _ in range(n))

    template = words(120)
    pages = [template + " " + words(60) for _ in range(150)]
    pages += [page + " again" for page in pages[100:130]]
    table = documents(pages)
    outcome = Flow(job(verify={"max_leaders": 8})).run(cut(table, [70]))
    check(outcome, table)
    assert outcome.metrics["leaders_capped"] > 10
    assert set(outcome.removed()) == set(table["doc_id"].to_pylist()[100:130])


def test_a_crowd_joined_elsewhere_hides_no_pair_and_raises_no_alarm() -> None:
    """Copies of one text, with a part in common that it lacks, fill a bucket in which other pairs meet."""
    rng = random.Random(1)

    def letters(n: int) -> str:
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=n))

    def changed(text: str, at: int, n: int) -> str:
        return text[:at] + letters(n) + text[at + n :]

    best, part = letters(600) + "zz", letters(60)
    crowd = [changed(part + best[60:600], rng.randrange(60, 540), 30) for _ in range(60)]
    pairs = []
    for _ in range(3):
        one = changed(part + best[60:600], rng.randrange(60, 460), 135)
        pairs += [one[:599], changed(one, rng.randrange(60, 520), 60)[:598]]
    table = documents([best, *crowd, *pairs])
    outcome = Flow(job(verify={"max_leaders": 4})).run([table])
    check(outcome, table)
    ids = table["doc_id"].to_pylist()
    assert outcome.metrics["pairs_spared"] > 4
    assert outcome.metrics["leaders_capped"] == 0
    assert set(ids[62::2]) <= set(outcome.removed()), "the second of each pair, however many came before it"
    assert ids[0] not in outcome.removed()
