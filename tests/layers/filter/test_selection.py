import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.filter.presets import PRESETS
from dataflow_ops.layers.filter.rule import KINDS
from dataflow_ops.layers.filter.rules import RULES
from dataflow_ops.layers.filter.selection import known_rules, select


def selected(quality=None, **length):
    clean = {"quality_rules": quality or {}}
    if length:
        clean["boilerplate_filter"] = length
    return {a.rule.name: a for a in select(parse_job({"dataset": {"id": "t"}, "clean": clean}).clean)}


def bounds(active, kind):
    code = KINDS.index(kind)
    return float(active.low[code]), float(active.high[code])


def test_names_are_unique_and_statistics_have_one_meaning():
    rules = [*RULES, *(rule for preset in PRESETS.values() for rule in preset)]
    assert len({rule.name for rule in rules}) == len(rules)
    by_statistic = {}
    for rule in rules:
        assert by_statistic.setdefault(rule.statistic, rule.measure) is rule.measure
        assert rule.applies_to <= set(KINDS)
        assert set(rule.by_kind) <= set(KINDS)
        assert rule.source


def test_l1_stands_before_l2_and_markers_lead_l2():
    order = list(selected({"presets": ["gopher", "c4"]}).values())
    gates = [active.rule.gate for active in order]
    assert gates == sorted(gates)
    second = [active.rule.name for active in order if active.rule.gate == "L2"]
    assert second[:4] == ["captcha", "error_page", "advertising", "bad_word_ratio"]


@pytest.mark.parametrize("key", ["disable", "enable"])
def test_unknown_names_are_named_with_the_known_ones(key):
    with pytest.raises(ConfigError, match=r"unknown rule 'zlib'.*zlib_ratio"):
        selected({key: ["zlib"]})


def test_unknown_rule_or_kind_in_rules():
    with pytest.raises(ConfigError, match="unknown rule 'nope'"):
        selected({"rules": {"nope": {"low": 1}}})
    with pytest.raises(ConfigError, match="unknown kind of text 'poem'; known: prose, code"):
        selected({"rules": {"zlib_ratio.poem": {"low": 1}}})


def test_crossed_and_nan_bounds_are_refused():
    with pytest.raises(ConfigError, match="length for prose: low 600000 is above high 500000"):
        selected({"rules": {"length": {"low": 600_000}}})
    with pytest.raises(ConfigError, match="NaN"):
        selected({"rules": {"zlib_ratio": {"low": float("nan")}}})


def test_kinds_have_bounds_of_their_own():
    zlib = selected()["zlib_ratio"]
    assert bounds(zlib, "prose")[0] == 0.20
    assert bounds(zlib, "code")[0] == 0.09
    zlib = selected({"min_zlib_ratio": 0.25})["zlib_ratio"]
    assert (bounds(zlib, "prose")[0], bounds(zlib, "code")[0]) == (0.25, 0.09)
    zlib = selected({"min_zlib_ratio": 0.05})["zlib_ratio"]
    assert (bounds(zlib, "prose")[0], bounds(zlib, "code")[0]) == (0.05, 0.05)
    zlib = selected({"min_zlib_ratio": 0.05, "rules": {"zlib_ratio.code": {"low": 0.3}}})["zlib_ratio"]
    assert (bounds(zlib, "prose")[0], bounds(zlib, "code")[0]) == (0.05, 0.3)


def test_length_follows_the_boilerplate_filter():
    length = selected(min_text_len=200, max_text_len=50_000)["length"]
    assert bounds(length, "prose") == (200, 50_000)
    assert bounds(length, "code") == (64, 50_000)
    assert bounds(selected(min_text_len=20)["length"], "code") == (20, 500_000)
    length = selected({"rules": {"length": {"low": 10}}}, min_text_len=200)["length"]
    assert bounds(length, "prose") == (10, 500_000)


def test_rules_off_by_default_and_measured_only():
    active = selected()
    assert not active["han_share"].judges.any()
    assert not active["digit_share"].judges.any()
    assert selected({"enable": ["han_share"]})["han_share"].judges.tolist() == [True, False, False, False]
    assert selected({"rules": {"digit_share": {"high": 0.3}}})["digit_share"].judges[0]


def test_a_bound_for_a_kind_makes_the_rule_judge_it():
    rule = selected({"rules": {"repetition_ratio.code": {"high": 0.99}}})["repetition_ratio"]
    assert rule.judges[KINDS.index("code")]
    assert not selected()["repetition_ratio"].judges[KINDS.index("code")]


def test_disabled_and_switched_off_rules_do_not_judge():
    assert not selected({"disable": ["zlib_ratio"]})["zlib_ratio"].judges.any()
    assert not any(active.judges.any() for active in selected({"enabled": False}).values())


def test_single_rules_of_presets_and_redpajama_names():
    assert "gopher_bullets" not in selected()
    assert selected({"enable": ["gopher_bullets"]})["gopher_bullets"].judges[0]
    assert not selected({"disable": ["rps_doc_frac_chars_top_3gram"]})["top_ngram_coverage"].judges.any()


@settings(deadline=None)  # the first call compiles
@given(st.sampled_from(sorted(known_rules())), st.floats(0, 1), st.sampled_from(["low", "high"]))
def test_every_rule_is_reached_by_its_name(name, value, side):
    other = {"high": 10.0} if side == "low" else {"low": -1.0}
    if name in ("length", "gopher_word_count") and side == "low":
        other = {"high": 10**6}
    active = selected({"rules": {name: {side: value, **other}}})[name]
    assert bounds(active, "prose")[0 if side == "low" else 1] == value
