import json
from pathlib import Path

import pytest
from dedup_flow import Flow, Outcome, cut, documents, job

from dataflow_ops import schema
from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.kernels.similarity import similarity

DATA = Path(__file__).parents[2] / "cases" / "data"


def read(name: str) -> dict[str, str]:
    lines = (DATA / name).read_text("utf-8").split("\n")
    return {row["id"]: row["text"] for row in (json.loads(line) for line in lines if line)}


def run(texts: dict[str, str], chunks: int = 2) -> tuple[Outcome, dict[bytes, str]]:
    ids = {schema.doc_id("case", name, 0): name for name in texts}
    table = documents(list(texts.values()), list(ids))
    outcome = Flow(job()).run(cut(table, [-(-len(texts) // chunks)] * (chunks - 1)))
    return outcome, ids


def survivors(outcome: Outcome, ids: dict[bytes, str]) -> set[str]:
    return set(ids.values()) - {ids[d] for d in outcome.removed()}


def test_fullwidth_pair_is_exact_and_the_shorter_stored_text_stays() -> None:
    texts = read("norm/fullwidth_pair.jsonl")
    outcome, ids = run(texts)
    assert survivors(outcome, ids) == {"half"}
    (row,) = outcome.removed().values()
    assert (row["verdict"], row["similarity"]) == ("exact", 1.0)


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_pairs(chunks: int) -> None:
    outcome, ids = run(read("dedup/pairs.jsonl"), chunks)
    assert survivors(outcome, ids) == {"a-long", "b-unrelated", "c-short-1", "c-short-2"}
    (survivor,) = (v for v in outcome.verdicts.values() if v["verdict"] == "survivor")
    assert survivor["copies"] == 3
    assert outcome.counts["confirm"].rejected == 3


@pytest.mark.parametrize("chunks", [1, 3])
def test_chain_never_swallows_its_unlike_ends(chunks: int) -> None:
    texts = read("dedup/chain.jsonl")
    outcome, ids = run(texts, chunks)
    removed = outcome.removed()
    assert removed, "neighbours in the chain are alike"
    for doc, row in removed.items():
        survivor = row["survivor_id"]
        assert survivor not in removed
        alike = similarity(fold_text(texts[ids[doc]]), fold_text(texts[ids[survivor]]), 0.8)
        assert alike == pytest.approx(row["similarity"], abs=1e-6)
    by_name = {name: doc for doc, name in ids.items()}
    assert outcome.survivor(by_name["chain-00"]) != outcome.survivor(by_name["chain-39"])


def test_template_pages_all_survive() -> None:
    texts = read("dedup/template.jsonl")
    outcome, ids = run(texts)
    assert survivors(outcome, ids) == set(texts)


def test_short_texts_match_only_exactly() -> None:
    outcome, ids = run({"a": "Too short.", "b": "too  SHORT.", "c": "Too shorts"})
    assert len(survivors(outcome, ids)) == 2
    assert "c" in survivors(outcome, ids)
