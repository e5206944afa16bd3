import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from dataflow_ops.kernels import similarity as s

ALPHABET = "abcdefghijklmnopqrstuvwxyz水库的管理员每天"


def prose(seed: int, length: int) -> str:
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices(ALPHABET, k=rng.randint(1, 8))) for _ in range(4000)]
    out: list[str] = []
    size = 0
    while size < length:
        out.append(rng.choice(vocabulary))
        size += len(out[-1])
    return "".join(out)[:length]


def edited(text: str, every: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    out, i = [], 0
    while i < len(text):
        n = max(1, int(rng.expovariate(1 / every)))
        out.append(text[i : i + n])
        i += n
        match rng.randrange(3):
            case 0:
                i += rng.randint(1, 6)
            case 1:
                out.append("".join(rng.choices(ALPHABET, k=rng.randint(1, 6))))
            case _:
                i += 3
                out.append("zyx")
    return "".join(out)


@given(st.text("ab水", max_size=30), st.text("ab水", max_size=30), st.sampled_from([0.0, 0.5, 0.8, 0.9, 1.0]))
def test_exact_below_the_limit(a: str, b: str, least: float) -> None:
    exact = 1.0 - Levenshtein.distance(a, b) / max(len(a), len(b)) if a or b else 1.0
    assert s.similarity(a, b, least) == (exact if exact >= least else 0.0)


@pytest.mark.parametrize("least", [0.7, 0.8, 0.83, 0.9])
def test_the_threshold_itself_is_reached(least: float) -> None:
    for n in (10, 100, 400):
        a = "a" * n
        for distance in range(n):
            value = s.similarity(a, "b" * distance + a[distance:], least)
            assert (value > 0) == (1.0 - distance / n >= least)


@pytest.mark.parametrize("every", [20, 60, 500])
def test_long_texts_come_close_to_the_exact_value(every: int) -> None:
    a = prose(1, 22_000)
    b = edited(a, every)
    exact = Levenshtein.normalized_similarity(a, b)
    assert exact > 0.8
    assert exact - 0.01 <= s.similarity(a, b, 0.8) <= exact


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([5, 8, 12, 30]), st.booleans(), st.integers(0, 4))
def test_long_texts_never_come_out_too_similar(seed: int, every: int, moved: bool, repeats: int) -> None:
    limit = s.EXACT_CHARS
    a = prose(seed, 6_000)
    b = edited(a, every, seed)
    if moved:
        b = b[2000:] + b[:2000]
    a, b = a * (1 + repeats), b * (1 + repeats)
    a, b = (
        a + prose(seed + 1, max(0, limit + 100 - len(a))),
        b + prose(seed + 1, max(0, limit + 100 - len(b))),
    )
    exact = Levenshtein.normalized_similarity(a, b)
    value = s.similarity(a, b, 0.5)
    assert value == 0.0 or 0.5 <= value <= exact + 1e-12
    assert value == s.similarity(b, a, 0.5) or abs(value - s.similarity(b, a, 0.5)) < 0.05


@pytest.mark.parametrize("length", [30_000, 150_000])
@pytest.mark.parametrize("size", [1, 400, 6_000])
def test_whole_blocks_of_long_texts_count_exactly(length: int, size: int) -> None:
    """Strange characters cost one operation each, so the distance is known."""
    a = prose(7, length)
    b = list(a)
    blocks = range(0, length // 5, size)
    for n in blocks:
        at = 500 + n * 4
        b[at : at + size] = "\ue000" * size
    changed = b.count("\ue000")
    true = 1.0 - changed / length
    assert 0.75 < true < 0.9
    if size > 1:
        assert s.similarity(a, "".join(b), 0.7) == pytest.approx(true, abs=2e-4)
    assert s.similarity(a, "".join(b), 0.7) <= true + 1e-12


def test_passages_that_occur_often_hide_no_copy() -> None:
    """Nothing in a long table occurs once in the whole text, but most rows do among those around them."""
    row = prose(8, 60)
    table = "".join(f"{row}{n % 120:03}" for n in range(240))
    a = prose(9, 15_000) + table + prose(10, 15_000)
    b = a[:17_000] + "\ue000" * 900 + a[17_900:]
    assert s.similarity(a, b, 0.8) == pytest.approx(1.0 - 900 / len(a), abs=2e-4)


def common(a: str, b: str) -> int:
    """With how many characters two texts begin alike."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@given(st.text("ab", max_size=12), st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_what_two_texts_share_at_their_ends_is_taken_off(head: str, tail: str, middle: str) -> None:
    a, b = head + middle + tail, head + middle[::-1] + "b" + tail
    codes = [np.frombuffer(t.encode("utf-32-le"), np.uint32) for t in (a, b)]
    one, two = s._Part(0, len(a), 0, len(b)).without_ends(codes[0], codes[1]).of(a, b)
    begin = common(a, b)
    end = common(a[begin:][::-1], b[begin:][::-1])
    assert (one, two) == (a[begin : len(a) - end], b[begin : len(b) - end])


def test_half_a_million_characters_in_twenty_milliseconds() -> None:
    a = prose(2, 500_000)
    pairs = [(a, edited(a, every)) for every in (25, 200)] + [
        (a, prose(3, 500_000)),
        (a, a[100_000:] + a[:100_000]),
    ]
    for one, two in pairs:
        best = 1.0
        for _ in range(4):
            began = time.process_time()
            s.similarity(one, two, 0.8)
            best = min(best, time.process_time() - began)
        assert best <= 0.020
    assert s.similarity(*pairs[0], 0.8) > 0.8
    assert s.similarity(*pairs[2], 0.8) == 0.0


def test_anchors_ascend_in_both() -> None:
    a = prose(4, 50_000)
    b = edited(a[20_000:] + a[:20_000], 100)
    codes = [np.frombuffer(t.encode("utf-32-le"), np.uint32) for t in (a, b)]
    for cuts in s.anchors(*codes):
        assert len(cuts) > 10
        assert (np.diff(cuts) >= 256).all()


@given(st.lists(st.integers(0, 50), max_size=40))
def test_longest_increasing_subsequence(values: list[int]) -> None:
    picked = s._increasing(np.array(values, np.int64))
    taken = [values[i] for i in picked]
    assert taken == sorted(set(taken))
    best = [0] * len(values)
    for i, v in enumerate(values):
        best[i] = 1 + max((best[j] for j in range(i) if values[j] < v), default=0)
    assert len(taken) == max(best, default=0)


@given(st.text("ab 中", max_size=90), st.text("ab 中", max_size=90), st.floats(0, 1), st.floats(0, 1))
def test_a_guess_changes_nothing(a: str, b: str, least: float, expected: float) -> None:
    assert s.similarity(a, b, least, expected) == s.similarity(a, b, least)


def test_a_similarity_is_expected_from_common_shingles() -> None:
    assert s.expected_similarity(1.0, 13) == 1.0
    assert s.expected_similarity(0.0, 13) == 0.0
    assert s.expected_similarity(0.5, 1) == 2 / 3
    assert s.expected_similarity(0.2, 13) < s.expected_similarity(0.2, 26) < s.expected_similarity(0.4, 26)
