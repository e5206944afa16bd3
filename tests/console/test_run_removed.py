from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dataflow_ops.console import letters_view, reviews
from dataflow_ops.console.glances import FewChunks
from dataflow_ops.console.matches import locate, snippet
from dataflow_ops.console.place import NotThere, Place
from dataflow_ops.console.removed_view import removed
from dataflow_ops.errors import ConfigError
from dataflow_ops.observe.audit import sample
from dataflow_ops.pipeline.audited import audit_of
from dataflow_ops.state.letters import Letters, add_letters
from tests.console.run_home import Made, begin, link, make, opened


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("removed"))


@pytest.fixture
def place(made: Made, tmp_path: Path) -> Iterator[Place]:
    with opened(made.copy(tmp_path / "home")) as place:
        yield place


def test_rules_and_documents_are_those_of_the_audit(made: Made, place: Place) -> None:
    found = removed(place, made.run, n=50)
    audited = audit_of(made.home, made.run, None, 1000, 0)
    by_rule: dict[str, int] = {}
    for row in audited:
        by_rule[row.rule] = by_rule.get(row.rule, 0) + 1
    assert {one["rule"]: one["hits"] for one in found["rules"]} == by_rule
    real = {(row.doc_id, row.rule): row for row in audited}
    assert found["documents"]
    for one in found["documents"]:
        row = real[one["doc_id"], one["rule"]]
        assert (one["source"], one["path"], one["value"]) == (row.source_id, row.path, row.value)
        bound = one["low"] if one["low"] is not None else one["high"]
        assert bound == row.bound
        if one["low"] is not None:
            assert one["value"] < one["low"]
        if one["match"]:
            start, end = one["match"]
            assert 0 <= start < end <= len(one["snippet"])
        if one["rule"] in ("exact", "near"):
            assert (one["survivor"], one["similarity"]) == (row.survivor_id, row.similarity)
            assert one["survivor_path"] == row.survivor_path != ""
            assert one["enough"] == (0.8 if one["rule"] == "near" else None)
    assert found["cli"] == f"dataflow audit {made.run} --n 50"


def test_whatever_the_seed_chunks_that_removed_something_are_looked_into(made: Made, place: Place) -> None:
    tasks = place.state.newest_tasks(made.run, "parse", 1000)
    removing = place.state.newest_tasks(made.run, "parse", 1000, rule="")
    assert 0 < len(removing) < len(tasks) / 2
    assert all(removed(place, made.run, "parse", seed=seed)["documents"] for seed in range(8))


def test_one_layer_one_rule_another_seed(made: Made, place: Place) -> None:
    assert {d["step"] for d in removed(place, made.run, "dedup", n=50)["documents"]} == {"confirm"}
    assert {r["layer"] for r in removed(place, made.run, "parse")["rules"]} == {"parse"}
    captcha = removed(place, made.run, rule="captcha")
    assert {d["rule"] for d in captcha["documents"]} == {"captcha"}
    shown = captcha["documents"][0]
    start, end = shown["match"]
    assert shown["snippet"][start:end].strip()
    assert shown["rule_text"]["zh"] != shown["rule_text"]["en"]
    draws = {
        tuple(d["doc_id"] for d in removed(place, made.run, "dedup", n=4, seed=seed)["documents"])
        for seed in range(4)
    }
    assert len(draws) > 1
    same = [removed(place, made.run, "dedup", n=4, seed=1)["documents"] for _ in range(2)]
    assert same[0] == same[1]
    with pytest.raises(ConfigError, match="removed nothing here"):
        removed(place, made.run, rule="digit_share")
    with pytest.raises(ConfigError, match="1 to 50"):
        removed(place, made.run, n=51)
    with pytest.raises(NotThere):
        removed(place, "none")


def test_a_survivor_may_lie_in_a_chunk_that_nothing_was_drawn_from(made: Made, place: Place) -> None:
    """Each chunk by itself: most survivors are elsewhere, and there is no version below."""
    every = [one for one in place.state.records_of_step(made.run, "parse").values()]
    roots = [one.partition for one in place.state.records_of_step(made.run, "confirm").values()]
    shown = 0
    for chunk in sorted(one.partition for one in every):
        reader = FewChunks(place, made.run, [chunk], {"confirm": roots}, ["confirm"])
        assert list(reader.outputs("base", "text")) == []
        shown += len(sample(reader, None, 50, 0, 100))
    assert shown == sum(one["hits"] for one in removed(place, made.run, "dedup")["rules"])


def test_while_a_run_is_on_its_way_only_what_it_did(made: Made, place: Place) -> None:
    begin(place, "now", made.run)
    assert removed(place, "now")["documents"] == []
    link(place, "now", made.run, "discover", "fetch", "parse", "filter")
    found = removed(place, "now", n=50)
    assert {one["layer"] for one in found["rules"]} == {"parse", "filter"}
    assert {one["step"] for one in found["documents"]} == {"parse", "filter"}


def test_a_verdict_is_shown_counted_and_taken_back(made: Made, place: Place) -> None:
    doc = removed(place, made.run, rule="captcha")["documents"][0]["doc_id"]
    reviews.review(place, made.run, doc, "captcha", "keep", "ann")
    shown = removed(place, made.run, rule="captcha")["documents"][0]["review"]
    assert (shown["verdict"], shown["who"]) == ("keep", "ann")
    assert reviews.counts(place, made.run) == {
        "keep": 1,
        "drop": 0,
        "by_rule": [{"rule": "captcha", "keep": 1, "drop": 0}],
    }
    reviews.review(place, made.run, doc, "captcha", "", "ann")
    assert reviews.counts(place, made.run)["by_rule"] == []
    one = reviews.review_found(place, None, doc[:12], "drop", "bob")
    assert (one.doc_id, one.rule) == (doc, "captcha")
    with pytest.raises(ConfigError, match="beginning"):
        reviews.review(place, made.run, doc[:8], "captcha", "keep", "ann")


def test_letters_by_group_and_one_answer_to_all(made: Made, place: Place) -> None:
    (group,) = letters_view.letters(place, made.run)["groups"]
    assert (group["error"], group["step"], group["layer"], group["count"]) == (
        "MalformedRecord",
        "parse",
        "parse",
        1,
    )
    assert group["example"]["path"] == "broken.jsonl"
    assert group["states"] == {"open": 1, "retried": 0, "dropped": 0}
    assert letters_view.letters(place, made.run, "filter")["groups"] == []
    number = letters_view.change(place, made.run, "drop", "MalformedRecord", "parse")
    assert number == 1
    (group,) = letters_view.letters(place, made.run)["groups"]
    assert group["states"] == {"open": 0, "retried": 0, "dropped": 1}
    letters: Letters = place.state
    (dropped,) = letters.dead_letters(made.run, state=None)
    # Out for good: only its own answer brings a dropped letter back, never its group's.
    assert letters_view.change(place, made.run, "retry", "MalformedRecord", "parse") == 0
    assert [d.state for d in letters.dead_letters(made.run, state=None)] == ["dropped"]
    assert letters_view.change(place, made.run, "retry", "MalformedRecord", "parse", dropped.id) == 1
    assert letters_view.change(place, made.run, "retry", "MalformedRecord", "parse", dropped.id) == 0
    assert [d.state for d in letters.dead_letters(made.run, state=None)] == ["retried"]
    told = letters_view.told(place, made.run, "retry", 1)
    assert (told["code"], told["values"]) == ("letters_retried", {"count": 1, "dataset": "tiny"})
    assert told["message"] == "1 letter waits for the next run of tiny: it reads its chunk anew."
    assert letters_view.told(place, made.run, "drop", 1200)["message"].startswith("1,200 letters dropped")
    assert letters_view.told(place, made.run, "drop", 0)["code"] == "letters_none"


def test_a_group_opens_to_its_letters_and_each_can_be_answered(made: Made, place: Place) -> None:
    (first,) = place.state.dead_letters(made.run)
    more = [
        replace(first.letter, position=1000 + i, message="no brace" if i % 2 else "no quote")
        for i in range(letters_view.PAGE + 4)
    ]
    with place.state.db.write() as connection:
        add_letters(connection, place.state.db, first.task_key, more)
    (group,) = letters_view.letters(place, made.run)["groups"]
    assert (group["count"], group["messages"]) == (letters_view.PAGE + 5, 3)
    page = letters_view.page(place, made.run, "MalformedRecord", "parse")
    rest = letters_view.page(place, made.run, "MalformedRecord", "parse", page["next"])
    assert (len(page["letters"]), len(rest["letters"]), rest["next"]) == (letters_view.PAGE, 5, None)
    shown = {one["id"]: one for one in [*page["letters"], *rest["letters"]]}
    assert len(shown) == letters_view.PAGE + 5
    one = shown[first.id]
    assert (one["source"], one["path"], one["state"]) == ("rows", "broken.jsonl", "open")
    assert one["message"] == first.letter.message
    assert one["cli"]["drop"] == f"dataflow dead-letters drop {first.id[:12]} --dataset tiny"

    def states() -> dict[str, int]:
        (group,) = letters_view.letters(place, made.run)["groups"]
        found: dict[str, int] = group["states"]
        return found

    other = next(id_ for id_ in shown if id_ != first.id)
    assert letters_view.change(place, made.run, "drop", "MalformedRecord", "parse", first.id) == 1
    assert letters_view.change(place, made.run, "retry", "MalformedRecord", "parse", other) == 1
    assert states() == {"open": letters_view.PAGE + 3, "retried": 1, "dropped": 1}
    # An id from elsewhere answers nothing: the rights asked for are those of this run.
    assert letters_view.change(place, made.run, "drop", "FileError", "parse", other) == 0
    begin(place, "empty", made.run)
    open_ = next(id_ for id_ in shown if id_ not in (first.id, other))
    assert letters_view.change(place, "empty", "drop", "MalformedRecord", "parse", open_) == 0
    assert states()["open"] == letters_view.PAGE + 3
    assert letters_view.change(place, made.run, "retry", "MalformedRecord", "parse") == letters_view.PAGE + 3
    assert states() == {"open": 0, "retried": letters_view.PAGE + 4, "dropped": 1}


@pytest.mark.parametrize(
    ("rule", "text", "passage"),
    [
        ("captcha", "Wait. Please Verify You Are Human now.", "Verify You Are Human"),
        ("error_page", "Sorry\n404 Page Not Found\nbye", "404 Page Not Found"),
        ("captcha", "İİ 请完成验证 谢谢", "完成验证"),
        ("replacement_ratio", "caf\ufffd\ufffd au lait", "\ufffd\ufffd"),
        ("zlib_ratio", "x " + "buy it now " * 20, "buy it now"),
        ("zlib_ratio", "好" + "买买看" * 20, "买买看"),
        ("zlib_ratio", "every word of this differs from each other one", None),
        ("length", "short", None),
        ("top_ngram_coverage", "", None),
    ],
)
def test_the_passage_a_rule_objects_to(rule: str, text: str, passage: str | None) -> None:
    match = locate(rule, text)
    assert (None if match is None else text[match[0] : match[1]]) == passage
    shown, inside = snippet(text, match)
    assert (None if inside is None else shown[inside[0] : inside[1]]) == passage


def test_a_passage_deep_in_a_text_is_shown_with_its_neighbourhood() -> None:
    text = "a b c d " * 500 + "verify you are human" + " e f g" * 500
    shown, inside = snippet(text, locate("captcha", text))
    assert inside is not None
    assert shown[inside[0] : inside[1]] == "verify you are human"
    assert len(shown) < 500
