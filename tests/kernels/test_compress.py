import random
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels import compress
from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.counts import census

BOUNDS_IN_USE = (0.06, 0.10, 0.12, 0.20)


def kernel(text):
    data, offsets = string_buffers(pa.array([text], pa.large_string()))
    return data, offsets, np.zeros(1, np.int64)


def floors(text):
    data, offsets, row = kernel(text)
    found = compress.estimate(data, offsets, row)
    bits = census(data, offsets).entropy[0] * len(text) / (8 * data.size)
    whole = compress.whole_floor(found.whole, found.matches, found.far, bits)
    return whole[0], compress.floor_of(found.window, bits)[0]


def a_text(seed):
    """Texts made to be awkward: few symbols, skewed symbols, few words, near-loops, a loop in the middle."""
    rng = random.Random(seed)
    letters = [
        chr(rng.choice([rng.randint(33, 126), rng.randint(0x4E00, 0x9FA5)]))
        for _ in range(rng.randint(1, 40))
    ]
    n = rng.randint(120, 6_000)
    how = rng.randint(0, 4)
    if how == 0:
        return "".join(rng.choices(letters, k=n))
    if how == 1:
        return "".join(rng.choices(letters, [1 / (i + 1) ** 2 for i in range(len(letters))], k=n))
    words = ["".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(rng.randint(1, 60))]
    if how == 2:
        return "".join(rng.choice(words) + rng.choice([" ", ""]) for _ in range(n // 4))
    period = "".join(rng.choices(letters, k=rng.randint(1, 200)))
    if how == 3:
        loop = list(period * (n // len(period) + 2))
        for _ in range(rng.randint(0, 60)):
            loop[rng.randrange(len(loop))] = rng.choice(letters)
        return "".join(loop)
    filler = "".join(rng.choices(letters, k=n))
    return filler + period * (3_000 // len(period)) + filler


@settings(deadline=None)  # the first call compiles
@given(st.integers(0, 10**9))
def test_the_floor_changes_no_decision(seed):
    text = a_text(seed)
    args = kernel(text)
    whole, window = floors(text)
    exact, exact_window = compress.zlib_ratio(*args)[0], compress.window_zlib_ratio(*args)[0]
    for bound in BOUNDS_IN_USE:
        assert not (whole >= bound > exact)
        assert not (window >= bound > exact_window)


def windows(data):
    """Ratios of all windows, the last first."""
    return [len(zlib.compress(data[end - 2048 : end], 1)) / 2048 for end in range(len(data), 2047, -512)]


@settings(deadline=None)
@given(st.integers(0, 10**9))
def test_a_windows_ratio_is_that_of_one_of_its_windows_and_of_the_lowest_where_they_are_few(seed):
    text = a_text(seed)
    data = text.encode()
    found = compress.window_zlib_ratio(*kernel(text))[0]
    known = windows(data)
    if len(known) <= compress.SUSPECTS:
        assert found == min(known, default=len(zlib.compress(data, 1)) / len(data))
    else:
        assert found in known


@pytest.mark.parametrize("at", [0, 3, 11, 20])
def test_the_window_with_a_loop_is_among_the_suspects(at):
    rng = random.Random(at)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(3_000)]
    data = " ".join(words).encode()[: 24 * 512]
    loop = b"the same again, " * 128
    data = data[: at * 512] + loop + data[at * 512 + len(loop) :]
    found = compress.window_zlib_ratio(*kernel(data.decode()))[0]
    assert found == min(windows(data)) < 0.06


def test_ratios_are_zlibs():
    text = "the level rose, " * 20 + "水位上涨。" * 300
    data = text.encode()
    args = kernel(text)
    assert compress.zlib_ratio(*args)[0] == len(zlib.compress(data, 1)) / len(data)
    assert compress.window_zlib_ratio(*args)[0] == min(windows(data))
    assert compress.zlib_ratio(*kernel(""))[0] == compress.window_zlib_ratio(*kernel(""))[0] == 1


@pytest.mark.parametrize("period", [8, 25, 120, 400])
def test_loops_are_found_where_they_are(period):
    rng = random.Random(period)
    prose = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz    ", k=3_000))
    loop = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=period))
    clean, half = kernel(prose), kernel(prose + loop * (2_000 // period))
    assert compress.estimate(*clean).loops[0] == 0
    assert compress.estimate(*half).loops[0] == pytest.approx(2_000 / 5_000, abs=0.11)


def test_a_passage_that_stands_three_times_is_no_loop():
    rng = random.Random(2)
    passage = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz    ", k=260))
    assert compress.estimate(*kernel(passage * 3)).loops[0] == 0
    assert compress.estimate(*kernel(passage * 6)).loops[0] > 0.8


def test_rules_of_dashes_are_no_loops():
    assert compress.estimate(*kernel("-" * 500 + "\n" + "= " * 200)).loops[0] == 0


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=4), st.data())
def test_a_document_is_told_the_same_whatever_was_parsed_before(seeds, data):
    texts = [a_text(seed) for seed in seeds]
    body, offsets = string_buffers(pa.array(texts, pa.large_string()))
    rows = np.array(data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=8)), np.int64)
    found = compress.estimate(body, offsets, rows)
    for at, row in enumerate(rows):
        alone = compress.estimate(*kernel(texts[row]))
        for name in ("whole", "window", "loops", "matches", "far"):
            assert getattr(found, name)[at] == getattr(alone, name)[0]
