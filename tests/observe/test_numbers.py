"""Alarms, drift, banding, histograms, number formats: the pure parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.observe import alarms, banding, drift, markup
from dataflow_ops.observe.losses import SourceLoss
from dataflow_ops.observe.spread import LogHistogram
from dataflow_ops.observe.texts import TEXTS


def test_source_alarm_names_source_step_and_top_rule():
    losses = [
        SourceLoss("small", "filter", 10, 10, {"length": 10}),
        SourceLoss("good", "filter", 1000, 950, {"length": 950}),
        SourceLoss("bad", "filter", 1000, 951, {"b": 400, "a": 400, "c": 151}),
        SourceLoss("undrawn", "plan", 1000, 999, {"not_sampled": 999}),
    ]
    found = alarms.source_losses(losses, 0.95)
    assert [(a.facts["source"], a.facts["step"], a.facts["rule"]) for a in found] == [("bad", "filter", "a")]
    assert (
        "Source bad lost 95.1% of its documents in filter (951 of 1,000), most to a (400)"
        in alarms.message(found[0].as_data())
    )


@pytest.mark.parametrize(
    ("near", "documents", "kinds"),
    [(0, 9999, []), (0, 10_000, ["near_low"]), (850, 10_000, []), (5001, 10_000, ["near_high"])],
)
def test_near_share_band(near, documents, kinds):
    assert [a.kind for a in alarms.near_share(near, documents)] == kinds


def test_every_alarm_has_its_text():
    found = [
        *alarms.near_share(0, 10_000),
        *alarms.near_share(9_000, 10_000),
        *alarms.full_buckets({"buckets_split": 3, "leaders_capped": 1, "buckets": 9}),
        *alarms.dead_share(2, 100, 0.01),
        *alarms.shortages(
            [
                {"domain": "{x}", "shortage": 5, "asked": 9, "target": 4, "supply": 4, "drawn": 3},
                {"domain": "b", "shortage": 0},
            ]
        ),
    ]
    # The same numbers as the mixing plan's note: what was asked for, not what was left of it.
    assert "{x} is short of 5 tokens: 9 asked for, 4 there, 3 given" in alarms.message(found[-1].as_data())
    assert len(found) == 6
    assert len({alarms.message(a.as_data()) for a in found}) == 6
    assert {f"a_{a.kind}" for a in found} <= set(TEXTS)


def test_dead_share_at_the_limit_is_within():
    assert alarms.dead_share(1, 1000, 0.001) == []
    assert alarms.dead_share(0, 0, 0.001) == []


def side(**domains):
    rows = [{"name": k, "documents": v, "tokens": v} for k, v in domains.items()]
    return {"shares": {"domain": rows}, "lengths": {}}


def test_drift_sees_what_came_and_went():
    found = drift.compare(side(web=90, code=10), side(web=80, books=20), {"domain": 0.15})
    moves = {d.name: (round(d.move, 6), d.beyond) for d in found if d.measure == "documents"}
    assert moves == {"books": (0.2, True), "code": (-0.1, False), "web": (-0.1, False)}
    assert found[0].name == "books"


def test_the_row_of_all_others_drifts_like_any_other():
    one, other = side(en=90), side(en=80)
    for found, rest in ((one, 10), (other, 20)):
        found["shares"]["domain"].append({"name": None, "documents": rest, "tokens": rest})
    assert {d.name: round(d.move, 6) for d in drift.compare(one, other)} == {"en": -0.1, "all others": 0.1}


def test_drift_at_the_limit_is_within():
    found = drift.compare(side(a=50, b=50), side(a=55, b=45), {"domain": 0.05})
    assert found
    assert not any(d.beyond for d in found)


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 10**9), max_size=6))
def test_nothing_drifts_from_itself(domains):
    one = side(**domains)
    assert drift.compare(one, one) == []


def test_drift_between_manifests():
    def made(web, code):
        cells = {"web": {"rows": web, "tokens": 2 * web}, "code": {"rows": code, "tokens": 2 * code}}
        return drift.from_manifest({"totals": {"by_domain": cells, "by_language": {}}})

    found = drift.compare(made(90, 10), made(70, 30), {"domain": 0.1})
    assert {(d.name, d.measure, round(d.move, 6), d.beyond) for d in found} == {
        ("web", "documents", -0.2, True), ("web", "tokens", -0.2, True),
        ("code", "documents", 0.2, True), ("code", "tokens", 0.2, True),
    }  # fmt: skip
    assert drift.compare(drift.from_manifest({}), made(1, 1)) == []


def test_drift_of_lengths_is_total_variation():
    old = {"lengths": {"chars": {"edges": [1, 2, 4], "counts": [1, 1]}}}
    new = {"lengths": {"chars": {"edges": [2, 4, 8], "counts": [1, 1]}}}
    (one,) = drift.compare(old, new, {"chars": 0.4})
    assert (one.what, one.move, one.beyond) == ("chars", 0.5, True)
    assert drift.compare({}, new) == []


@pytest.mark.parametrize(("jaccard", "p"), [(0.5, 0.06), (0.7, 0.61), (0.8, 0.95)])
def test_s_curve_of_the_default_bands(jaccard, p):
    assert banding.match_probability(jaccard, 16, 8) == pytest.approx(p, abs=0.005)


@given(st.integers(1, 64), st.integers(1, 16))
def test_neighbours_fit_the_signature_and_lie_on_either_side(bands, rows):
    curve = banding.s_curve(bands, rows, 128)
    for key, sign in (("looser", -1), ("stricter", 1)):
        if (other := curve[key]) is not None:
            assert other["bands"] * other["rows"] <= 128
            assert sign * (other["threshold"] - curve["threshold"]) > 0


@given(st.lists(st.floats(0, 1e12), max_size=50), st.sampled_from([1, 4]))
def test_histogram_counts_each_value_in_its_bin(values, per_octave):
    histogram = LogHistogram(per_octave)
    histogram.add(np.array(values))
    data = histogram.as_data()
    assert sum(data["counts"]) == len(values)
    for i, n in enumerate(data["counts"]):
        low, high = data["edges"][i] * (1 - 1e-4), data["edges"][i + 1] * (1 + 1e-4)
        assert n <= sum(low <= max(v, 1.0) <= high for v in values)


def test_histogram_leaves_nan_out():
    histogram = LogHistogram()
    histogram.add(np.array([math.nan, 3.0]))
    assert histogram.counts == {1: 1}


@pytest.mark.parametrize(
    ("value", "english", "chinese"),
    [(0, "0", "0"), (999, "999", "999"), (1234, "1.23k", "1,234"), (999_999, "1M", "100万"),
     (12_345, "12.3k", "1.23万"), (123_456_789, "123M", "1.23亿"), (2.5e12, "2.5T", "2.5万亿"),
     (0.5, "0.5", "0.5"),
     (9_999_600, "10M", "1,000万"), (35_000_000, "35M", "3,500万")],
)  # fmt: skip
def test_compact_numbers(value, english, chinese):
    assert markup.compact(value) == (english, chinese)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 10, "0%"),
        (1, 10**9, "<0.01%"),
        (1, 3, "33.3%"),
        (10, 10, "100%"),
        (999_999, 10**6, "99.99%"),
        (1, 0, "–"),
    ],
)
def test_percent_never_rounds_to_all_or_nothing(part, whole, text):
    assert markup.percent(part, whole) == text


@given(st.text())
def test_escaping_leaves_no_markup_and_no_control(text):
    out = markup.esc(text)
    assert not set("<>\"'") & set(out)
    out.encode("utf-8")
    assert not any(ord(c) < 32 and c not in "\t\n\r" for c in out)


def test_facts_with_braces_are_text():
    assert "{limit}" in markup.say("a_shortage", domain="{limit}", short=1, asked=2, supply=1, given=1)
