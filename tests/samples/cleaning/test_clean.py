from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.samples.cleaning.settings import SampleCleanSettings
from dataflow_ops.state.samples.store import SampleStore
from tests.samples.cleaning.table import Said, clean, fill, history, rows, verdicts


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SampleStore]:
    with SampleStore(f"sqlite:///{tmp_path / 's.db'}") as store:
        yield store


WORDS = Path(random.__file__).read_text(encoding="utf-8").split()


def prose(seed: int, words: int = 80) -> str:
    """Words of a real text in an order of their own."""
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(words))


def asked(question: str, answer: str, system: str = "") -> Said:
    frame = [("system", system)] if system else []
    return [*frame, ("user", question), ("assistant", answer)]


PLAIN = SampleCleanSettings.model_validate({"clean": {"quality_rules": {"enabled": False}}})


def plain(**sections: object) -> SampleCleanSettings:
    given = {"clean": {"quality_rules": {"enabled": False}}, **sections}
    return SampleCleanSettings.model_validate(given)


def test_a_changed_turn_keeps_what_it_was(store: SampleStore) -> None:
    fill(store, {"f": [asked("  how\r\nso?\x07 ", "thus"), asked("why?", "e\u0301t")]})
    counts = clean(store, ["f"], PLAIN)
    assert [r["data_content"] for r in rows(store)] == ["how\nso?", "thus", "why?", "ét"]
    assert [r["data_length"] for r in rows(store)] == [7, 4, 4, 2]
    assert history(store) == [
        (1, "normalise", "data_content", "  how\r\nso?\x07 ", "  how\nso? "),
        (1, "outer_blanks", "data_content", "  how\nso? ", "how\nso?"),
        (4, "normalise", "data_content", "e\u0301t", "ét"),
    ]
    assert counts["turns_changed"] == 2
    assert counts["kept"] == counts["dialogues"] == 2


def test_cleaning_again_changes_nothing_more(store: SampleStore) -> None:
    fill(store, {"f": [asked("  how\r\nso?\x07 ", "thus"), asked("why?", "because")]})
    clean(store, ["f"], PLAIN)
    before = [{k: v for k, v in r.items() if k != "updated_at"} for r in rows(store)]
    told = history(store)
    with store.write() as connection:
        connection.exec_driver_sql("DELETE FROM sample_task")
    assert "turns_changed" not in clean(store, ["f"], PLAIN)
    assert [{k: v for k, v in r.items() if k != "updated_at"} for r in rows(store)] == before
    assert history(store) == told


def test_rules_of_dialogues_come_first_and_say_so(store: SampleStore) -> None:
    fill(store, {"f": [[("user", " "), ("assistant", "")], [("user", "a"), ("user", "b")], asked("q", "a")]})
    counts = clean(store, ["f"], plain(dialogue={"answer": True, "max_turns": 2}))
    assert verdicts(store) == {
        ("f", 0): ("REJECTED", "empty_dialogue"),
        ("f", 1): ("REJECTED", "no_answer"),
        ("f", 2): ("KEPT", None),
    }
    assert counts["rule.empty_dialogue"] == counts["rule.no_answer"] == 1
    assert [c[1:] for c in history(store) if c[0] == 3] == [("no_answer", "status", "NEW", "REJECTED")]


def test_rules_of_documents_judge_the_whole_dialogue(store: SampleStore) -> None:
    spam = asked("say it", "buy now! " * 400)
    fill(store, {"f": [spam, asked("What is a bus?", prose(1))]})
    clean(store, ["f"], SampleCleanSettings())
    found = verdicts(store)
    assert found["f", 0][0] == "REJECTED"
    assert found["f", 1] == ("KEPT", None)


def test_equal_dialogues_leave_the_first(store: SampleStore) -> None:
    fill(store, {"a": [asked("Q one?", "Yes"), asked("q ONE?", "yes ")], "b": [asked("Q one?", "Yes")]})
    clean(store, ["a", "b"], PLAIN)
    assert verdicts(store) == {
        ("a", 0): ("KEPT", None),
        ("a", 1): ("DUPLICATE", "exact 1.0000 of a:0"),
        ("b", 0): ("DUPLICATE", "exact 1.0000 of a:0"),
    }


def test_a_shared_system_prompt_makes_nobody_alike(store: SampleStore) -> None:
    frame = prose(7, 600)
    fill(store, {"f": [asked(f"Question {i}: {prose(i, 60)}", prose(100 + i, 60), frame) for i in range(20)]})
    clean(store, ["f"], PLAIN)
    assert {status for status, _ in verdicts(store).values()} == {"KEPT"}


def test_short_dialogues_are_only_compared_for_being_equal(store: SampleStore) -> None:
    sums = [
        asked(f"What is {a} plus {b}, please? Answer with the number alone.", str(a + b))
        for a in range(9)
        for b in range(9)
    ]
    fill(store, {"f": sums})
    clean(store, ["f"], PLAIN)
    assert {status for status, _ in verdicts(store).values()} == {"KEPT"}


def test_what_the_data_set_keeps_elsewhere_counts(store: SampleStore) -> None:
    long = prose(3, 120)
    fill(store, {"old": [asked(long, "yes")]})
    fill(store, {"new": [asked(long + " indeed", "yes")]})
    clean(store, ["old"], PLAIN)
    with store.write() as connection:
        connection.exec_driver_sql("DELETE FROM sample_task")
    clean(store, ["new"], PLAIN)
    status, rule = verdicts(store)["new", 0]
    assert status == "DUPLICATE"
    assert rule is not None
    assert rule.startswith("near 0.9")
    assert rule.endswith(" of old:0")


def test_scope_files_does_not_look_elsewhere(store: SampleStore) -> None:
    fill(store, {"old": [asked("Q one?", "yes")], "new": [asked("Q one?", "yes")]})
    clean(store, ["old"], PLAIN)
    with store.write() as connection:
        connection.exec_driver_sql("DELETE FROM sample_task")
    clean(store, ["new"], plain(near={"scope": "files"}))
    assert verdicts(store)["new", 0] == ("KEPT", None)


def test_a_dialogue_longer_than_a_batch_is_read_whole(store: SampleStore) -> None:
    long = [("user" if i % 2 else "assistant", prose(i, 10)) for i in range(50)]
    fill(store, {"f": [asked("a", "b"), long, asked("c", "d")]})
    counts = clean(store, ["f"], plain(batch_rows=5))
    assert counts["dialogues"] == counts["kept"] == 3
    assert counts["turns"] == 54


def corpus(seed: int, n: int) -> list[Said]:
    """Dialogues, some of them edited copies of others."""
    draw = random.Random(seed)
    made: list[Said] = []
    for i in range(n):
        if made and draw.random() < 0.5:
            [(role, question), (_, answer)] = draw.choice(made)
            words = answer.split(" ")
            for _ in range(draw.choice([0, 1, 3, 8, 30])):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
            made.append([(role, question), ("assistant", " ".join(words))])
        else:
            made.append(asked(prose(seed * 1000 + i, 12), prose(seed * 2000 + i, draw.choice([5, 40, 90]))))
    return made


def oracle(dialogues: Sequence[Said], least: float, min_characters: int) -> list[bool]:
    """Which are kept, comparing each with all that were kept before it."""
    kept: list[str] = []
    out = []
    for said in dialogues:
        key = fold_text("\n\n".join(f"{role}: {content}".rstrip(" ") for role, content in said))
        near = len(key) >= min_characters
        same = any(
            key == k
            or (near and len(k) >= min_characters and Levenshtein.normalized_similarity(key, k) >= least)
            for k in kept
        )
        out.append(not same)
        if not same:
            kept.append(key)
    return out


@pytest.mark.parametrize("seed", range(3))
def test_removed_are_exactly_those_that_an_earlier_kept_one_says(store: SampleStore, seed: int) -> None:
    dialogues = corpus(seed, 150)
    fill(store, {"f": dialogues})
    # 64 bands of 2: every pair above .9 meets, so that the oracle may be asked for the very same set.
    clean(store, ["f"], plain(dedup={"minhash": {"band": 64, "rows_per_band": 2}}))
    found = [status == "KEPT" for status, _ in verdicts(store).values()]
    assert found == oracle(dialogues, 0.9, 200)
    assert 20 < sum(found) < 140


quick = hypothesis_settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@quick
@given(st.integers(0, 99), st.integers(1, 60), st.sets(st.integers(1, 8)))
def test_neither_batches_nor_restarts_change_the_outcome(
    tmp_path_factory: pytest.TempPathFactory, seed: int, batch_rows: int, restarts: set[int]
) -> None:
    dialogues = corpus(seed, 40)
    files = {"a": dialogues[:25], "b": dialogues[25:]}
    outcomes = []
    for rows_at_once, cuts in ((10_000, set()), (batch_rows, restarts)):
        with SampleStore(f"sqlite:///{tmp_path_factory.mktemp('s') / 's.db'}") as store:
            fill(store, files)
            counts = clean(store, ["a", "b"], plain(batch_rows=rows_at_once), sorted(cuts))
            outcomes.append((verdicts(store), history(store), counts))
    assert outcomes[0] == outcomes[1]
