import json
import math
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.filter.step import COLUMNS, FilterStep
from dataflow_ops.protocols import MapStep
from dataflow_ops.schema import REJECTS, VERDICTS
from tests.layers.filter.documents import batch, judged, rules_of, step

DATA = Path(__file__).parents[2] / "cases" / "data" / "text"
EN = (DATA / "en_prose_ok.txt").read_text()
ZH = (DATA / "zh_prose_ok.txt").read_text()
LOOP = (DATA / "loop.txt").read_text()
PUNCT = (DATA / "punct.txt").read_text()
TEXTS = [EN, "short", LOOP, ZH, PUNCT, "", EN * 3, EN + LOOP, "a\x00" * 300]


def run(filter_step, table, first_row=0):
    return filter_step.process(table, first_row, filter_step.open(None))


def test_it_is_a_map_step_with_aligned_outputs():
    filter_step = step()
    assert isinstance(filter_step, MapStep)
    assert filter_step.inputs[0].columns == COLUMNS
    result = judged(TEXTS)
    verdicts, rejects, stats = (result.outputs[kind] for kind in ("verdicts", "rejects", "stats"))
    assert verdicts.schema == VERDICTS
    assert rejects.schema == REJECTS
    assert stats.schema == filter_step.outputs[2].schema
    assert verdicts.num_rows == stats.num_rows == len(TEXTS)
    kept = verdicts["kept"].to_pylist()
    assert [not k for k in kept] == [row in rejects["row"].to_pylist() for row in range(len(TEXTS))]
    result.counts.check("filter")
    assert (result.counts.kept, result.counts.rejected) == (sum(kept), rejects.num_rows)
    assert sum(result.rule_hits.values()) == rejects.num_rows


def test_batches_do_not_change_a_byte():
    filter_step = step(presets=["gopher", "c4", "fineweb"])
    state = filter_step.open(None)
    rng = random.Random(3)
    texts = [*TEXTS, *("".join(rng.choices("ab cd.\n中文", k=rng.randint(0, 900))) for _ in range(40))]
    table = batch(texts)
    whole = filter_step.process(table, 5, state)
    for size in (1, 7):
        parts = [
            filter_step.process(table.slice(i, size), 5 + i, state) for i in range(0, table.num_rows, size)
        ]
        for kind, rows in whole.outputs.items():
            joined = pa.concat_tables([part.outputs[kind] for part in parts])
            assert joined.equals(rows.combine_chunks()), kind


def test_an_empty_batch():
    result = judged([])
    assert {kind: table.num_rows for kind, table in result.outputs.items()} == {
        "verdicts": 0,
        "rejects": 0,
        "stats": 0,
    }


def test_rejects_name_value_bound_and_side():
    rejects = judged([EN, "short", LOOP, "b" * 90 + "\x01" * 40 + EN]).outputs["rejects"].to_pylist()
    short, loop, control = rejects
    assert (short["row"], short["rule"], short["gate"], short["value"]) == (1, "length", "L1", 5.0)
    assert (short["bound"], short["side"]) == (120.0, "low")
    assert loop["doc_id"] == (2).to_bytes(16, "big")
    assert (loop["gate"], loop["side"], loop["bound"]) == ("L2", "low", 0.20)
    assert loop["value"] < 0.05
    assert (control["rule"], control["side"], control["bound"]) == ("control_ratio", "high", 0.01)
    assert control["value"] == pytest.approx(40 / (130 + len(EN)))


def test_statistics_are_stored_whatever_fails_and_null_where_the_gate_closed():
    filter_step = step()
    stats = judged([EN, "short", LOOP]).outputs["stats"].to_pylist()
    second_gate = {a.rule.statistic for a in filter_step._rules if a.rule.gate == "L2"}
    assert all(stats[1][name] is None for name in second_gate)
    assert all(stats[1][name] is not None for name in set(stats[1]) - second_gate if "_floor" not in name)
    # The loop fails by its zlib ratio, and everything else is there too.
    assert all(value is not None for value in stats[2].values())
    assert stats[2]["top_3gram"] > 0.15
    # Good prose is settled by the floor.
    assert stats[0]["zlib_ratio"] is None
    assert stats[0]["zlib_ratio_floor"] >= 0.20


def test_disabled_rules_are_measured_and_do_not_judge():
    using = step(disable=["zlib_ratio", "stop_words", "top_ngram_coverage", "loop_share", "zlib_window",
                          "repetition_ratio", "avg_sentence_len"])  # fmt: skip
    result = judged([LOOP], using=using)
    assert result.outputs["rejects"].num_rows == 0
    assert result.outputs["stats"]["zlib_ratio"][0].as_py() < 0.05


def test_with_rules_switched_off_everything_is_kept():
    result = judged(TEXTS, using=step(enabled=False))
    assert result.outputs["verdicts"]["kept"].to_pylist() == [True] * len(TEXTS)
    assert result.outputs["stats"]["chars"].to_pylist()[1] == 5


@pytest.mark.parametrize("column", ["raw_chars", "control_chars"])
def test_a_missing_measurement_never_passes(column):
    table = batch([EN, EN])
    index = table.schema.get_field_index(column)
    table = table.set_column(index, column, pa.array([None, table[column][1].as_py()], pa.int32()))
    [reject] = run(step(), table).outputs["rejects"].to_pylist()
    assert (reject["row"], reject["rule"], reject["value"]) == (0, "control_ratio", None)


def test_control_characters_are_judged_by_what_parse_counted():
    table = batch([EN + "\x01" * 40, EN])
    assert "\x01" not in table["text"][0].as_py()
    assert rules_of([EN + "\x01" * 40, EN]) == ["control_ratio", ""]


def test_kind_and_script():
    code = "int main(void) {\n    int a = 1;\n    int b = 2;\n    return a + b;\n}\nvoid f(void) {\n}\n"
    table = "\n".join(f"| {i} | value {i * 7} | {i * 13} |" for i in range(30))
    texts = [EN, ZH, code, table, "да " * 60, "これは日本語の文章です。漢字もあります。", "12 34 !!", EN, EN]
    verdicts = judged(texts, [""] * 7 + ["code", "dialogue"]).outputs["verdicts"]
    kinds = ["prose", "prose", "code", "table", "prose", "prose", "prose", "code", "dialogue"]
    scripts = ["latin", "han", "latin", "latin", "cyrillic", "kana", "none", "latin", "latin"]
    assert verdicts["kind"].to_pylist() == kinds
    assert verdicts["script"].to_pylist() == scripts


def test_dialogues_are_not_judged_as_prose():
    turns = "Hi!\nYes.\nYes.\nYes."
    assert rules_of([turns], ["dialogue"]) == [""]
    assert rules_of([turns], [""]) == ["length"]


def test_a_loop_in_the_second_half_is_found():
    prose = " ".join(f"{a} {b}" for a, b in zip(EN.split() * 3, reversed(EN.split() * 3), strict=True))
    half = prose + "then the level rose again, " * 60
    assert rules_of([half], using=step(disable=["zlib_ratio", "top_ngram_coverage", "stop_words"])) == [
        "loop_share"
    ]


def test_replacement_characters():
    assert rules_of([EN + "\ufffd" * 20]) == ["replacement_ratio"]


def test_presets_add_published_rules():
    lists = "\n".join(f"- point {i} about the level of that gauge and the keeper" for i in range(40))
    by_default = ["zlib_ratio", "stop_words", "top_ngram_coverage", "zlib_window", "repetition_ratio"]
    using = step(presets=["gopher"], disable=by_default)
    assert rules_of([EN, lists], using=using) == ["", "gopher_bullets"]
    assert rules_of([EN, EN + " {x}"], using=step(presets=["c4"])) == ["", "c4_curly_brackets"]
    no_stops = EN.replace(".", ",\n")
    assert rules_of([no_stops], using=step(presets=["fineweb"])) == ["fineweb_ended_lines"]


def test_bad_words_of_the_job():
    text = EN + " The gauge was a Frumious  bandersnatch."
    assert rules_of([text], using=step(max_bad_word_ratio=0.005)) == [""]
    using = step(max_bad_word_ratio=0.005, bad_words=["frumious bandersnatch"])
    assert rules_of([text], using=using) == ["bad_word_ratio"]


def test_bounds_on_sentences_and_repetition_work_when_given():
    assert rules_of([EN], using=step(max_avg_sentence_len=40)) == ["avg_sentence_len"]
    assert rules_of([EN], using=step(min_avg_sentence_len=400)) == ["avg_sentence_len"]
    twice = EN + "\n" + EN
    assert rules_of([twice], using=step()) == [""]
    assert rules_of([EN, twice], using=step(max_repetition_ratio=0.25)) == ["", "repetition_ratio"]


def test_values_are_those_of_stats():
    result = judged(TEXTS)
    stats = result.outputs["stats"].to_pylist()
    statistic = {rule.name: rule.statistic for rule in step().rules}
    for reject in result.outputs["rejects"].to_pylist():
        assert stats[reject["row"]][statistic[reject["rule"]]] == reject["value"]


def test_the_fingerprint_covers_what_shapes_output():
    base = json.dumps(step().fingerprint(), sort_keys=True)
    assert base == json.dumps(step().fingerprint(), sort_keys=True)
    changed = [
        step(min_zlib_ratio=0.21),
        step(disable=["zlib_ratio"]),
        step(bad_words=["x"]),
        step(presets=["c4"]),
        step(enabled=False),
        step(rules={"zlib_ratio.code": {"low": 0.1}}),
        FilterStep(parse_job({"dataset": {"id": "t"}, "clean": {"normalization": {"lower_case": False}}})),
        FilterStep(parse_job({"dataset": {"id": "t"}, "clean": {"boilerplate_filter": {"min_text_len": 9}}})),
    ]
    prints = [json.dumps(other.fingerprint(), sort_keys=True) for other in changed]
    assert len({base, *prints}) == len(changed) + 1
    assert step().rules_tag() == step(bad_words=[]).rules_tag() != changed[1].rules_tag()
    assert step().rules_tag() == changed[0].rules_tag()  # a bound: it stands in the manifest
    assert changed[3].rules_tag().startswith("default+c4@")


def test_statistics_are_finite():
    rng = random.Random(5)
    alphabets = [
        "ab c.\n",
        "中文。\n",
        "\u0301\u093f ",
        "0123456789\n",
        "☃= \t",
        "{};\n",
        "กขค ",
        "\ufffd",
        "\U0001f600 a",
    ]
    texts = ["".join(rng.choices(rng.choice(alphabets), k=rng.randint(0, 400))) for _ in range(300)]
    using = step(
        presets=["gopher", "c4", "fineweb"], rules={"length": {"low": 0}, "meaningful_ratio": {"low": 0}}
    )
    stats = judged(texts, using=using).outputs["stats"]
    for name in stats.column_names:
        values = stats[name].drop_null().to_numpy()
        assert np.isfinite(values).all(), name
        assert not any(math.isnan(v) for v in values)
