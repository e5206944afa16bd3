import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels import textstats as ts
from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.words import units_of

FUNCTION = {"en": ["the", "of", "and", "a"], "zh": ["的", "是"]}
PHRASES = [("not found", 0), ("找不到", 0), ("buy now", 1), ("damn", 2)]
LEX = ts.lexicon(FUNCTION, [(0.1, 3.0), (0.1, 1.5)], PHRASES, [True, True, False])
WORDS = [
    "the",
    "of",
    "and",
    "a",
    "gauge",
    "level",
    "keeper",
    "not",
    "found",
    "buy",
    "now",
    "damn",
    "的",
    "水",
]


def measure(*texts):
    column = pa.array(texts, pa.large_string())
    return ts.measure(
        *string_buffers(column), np.arange(len(texts)), LEX, units_of("the of")[0], (2, 3), (5,)
    )


def oracle_stuffing(words):
    n = len(words)
    counts = Counter(words)
    best, share = None, 0
    for language, listed in FUNCTION.items():
        here = sum(counts[w] for w in listed)
        if here > share:
            best, share = language, here
    credited = False
    if best:
        listed = [counts[w] for w in FUNCTION[best] if counts[w]]
        spread = 2 ** -sum(c / share * np.log2(c / share) for c in listed)
        minimum = dict(zip(FUNCTION, [(0.1, 3.0), (0.1, 1.5)], strict=True))[best]
        credited = share / n >= minimum[0] and spread >= minimum[1] - 1e-12
    content = sorted((c for w, c in counts.items() if not (credited and w in FUNCTION[best])), reverse=True)
    k = 16 if 2 * sum(len(w) == 1 for w in words) > n else 8
    return sum(content[:k]) / sum(content) if n >= ts.MIN_UNITS and content else 0.0


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=200))
def test_stuffing_equals_a_plain_count(words):
    [row] = measure(" ".join(words))
    assert row[ts.UNITS] == len(words)
    assert row[ts.STUFFING] == pytest.approx(oracle_stuffing(words))
    assert row[ts.TARGETS] == len({"the", "of"} & set(words))


def test_keywords_are_concentrated_and_prose_is_not():
    rng = random.Random(1)
    keys = ["cheap", "gauge", "best", "price", "of", "deal"]
    stuffed = " ".join(rng.choice(keys) for _ in range(400))
    vocabulary = [f"word{i}" for i in range(300)]
    prose = " ".join(
        rng.choice(FUNCTION["en"]) if rng.random() < 0.4 else rng.choice(vocabulary) for _ in range(400)
    )
    values = measure(stuffed, prose)[:, ts.STUFFING]
    assert values[0] == 1
    assert values[1] < 0.2


def test_phrases_mark_their_sentence_or_only_themselves():
    text = "Page not found. A keeper walks. Buy\nnow. damn level"
    [row] = measure(text)
    chars = sum(map(len, text.replace(".", "").split()))
    shares = row[ts.COLUMNS + 3 :]
    # "Buy" and "now" stand in two lines: no phrase.
    assert shares.tolist() == pytest.approx([len("Pagenotfound") / chars, 0, 4 / chars])


def test_phrases_count_once_and_reach_over_no_sentence():
    [row] = measure("找不到找不到。not. found")
    assert row[ts.COLUMNS + 3] == pytest.approx(6 / 14)


def test_empty_text():
    [row] = measure("")
    assert row.tolist() == [0] * (ts.COLUMNS + 6)


def test_values_do_not_depend_on_the_neighbours():
    texts = ["the level of a gauge " * 30, "", "水位的 " * 80, "damn " * 4]
    together = measure(*texts)
    for text, row in zip(texts, together, strict=True):
        assert measure(text)[0].tolist() == row.tolist()


def test_top_ngram_needs_two_occurrences():
    row, loop = measure("one two three four", "one two three one two three")
    assert row[ts.COLUMNS : ts.COLUMNS + 2].tolist() == [0, 0]
    assert loop[ts.COLUMNS + 1] == 1
