"""The trials of dedup's parts: what they hold against the product is true, and they notice when it is not."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from bench import bloom_trials, long_pairs
from dataflow_ops.layers.dedup import base


@given(st.text("abc 水", min_size=30, max_size=400), st.floats(0.05, 0.4), st.integers(0, 10**6))
def test_the_similarity_of_a_made_pair_is_known(text: str, share: float, seed: int) -> None:
    one, two, true = long_pairs.changed(text, share, random.Random(seed))
    assert true == pytest.approx(Levenshtein.normalized_similarity(one, two))


def test_a_wrong_answer_or_a_slow_one_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    good = [long_pairs.Trial(0.85, 0.85, 0.01), long_pairs.Trial(0.7, 0.0, 0.01)]
    assert long_pairs.told_of(good, "good")
    assert not long_pairs.told_of([*good, long_pairs.Trial(0.79, 0.81, 0.01)], "made up")
    assert not long_pairs.told_of([*good, long_pairs.Trial(0.81, 0.0, 0.01)], "missed")
    assert "missed 1, the farthest 0.0100 above the threshold" in capsys.readouterr().out
    assert not long_pairs.told_of([*good, long_pairs.Trial(0.7, 0.0, 0.03)], "slow")


def test_strangers_stay_and_copies_are_found_behind_the_filters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bloom_trials, "TRIALS", 64_000)
    assert bloom_trials.day(np.random.default_rng(3))
    assert "0 unique documents lost, 64 of 64 copies found." in capsys.readouterr().out
    monkeypatch.setattr(base, "let_through", lambda side, step, kind, wanted: wanted[::2])
    assert not bloom_trials.day(np.random.default_rng(3)), "copies that the filters deny are missed"
