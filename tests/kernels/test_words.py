import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels import ngrams
from dataflow_ops.kernels import unicode_classes as uc
from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.words import scratch, units_of

PIECES = ["the", "gauge", "level", "水", "位", " ", " ", "\n", ". ", "。", "3.14", "-", "É", "ひ", "#"]
TEXT = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)


def is_word(char):
    return char != "〇" and (unicodedata.category(char)[0] in "LM" or unicodedata.category(char)[0] == "N")


def is_single(char):
    return int(uc.class_table()[ord(char)]) in (uc.HAN, uc.KANA)


def oracle(text):
    """Units as ``(folded text, segment)``, character by character."""
    fold = uc.fold_table()
    units, word, segment, filled = [], "", 0, False
    for i, char in enumerate([*text, "\0"]):
        single = i < len(text) and is_single(char)
        if i < len(text) and not single and is_word(char):
            word += char
            continue
        if word:
            units.append((word, segment))
            word, filled = "", True
        if single:
            units.append((char, segment))
            filled = True
            continue
        newline = char in "\n\r\u2028\u2029"
        after = text[i + 1 : i + 2]
        full_stop = char in uc.SENTENCE_ENDS and (ord(char) > 127 or not after or after.isspace())
        if filled and (newline or full_stop):
            segment, filled = segment + 1, False
    return [("".join(chr(fold[ord(c)]) if ord(c) < 0x10000 else c for c in w), s) for w, s in units]


@settings(deadline=None)  # the first call compiles
@given(TEXT | ANY)
def test_units_equal_a_plain_tokeniser(text):
    hashes, lengths, segments = units_of(text)
    wanted = oracle(text)
    assert lengths.tolist() == [len(unit) for unit, _ in wanted]
    assert segments.tolist() == [segment for _, segment in wanted]
    by_hash = {}
    for h, (unit, _) in zip(hashes.tolist(), wanted, strict=True):
        assert by_hash.setdefault(h, unit) == unit
    assert len(set(by_hash.values())) == len(by_hash)


def test_case_width_and_punctuation_do_not_matter():
    a, b = units_of("Buy NOW, ｆｒｅｅ!"), units_of("buy now free")
    assert a[0].tolist() == b[0].tolist()


def test_sentences_end_at_stops_before_space_and_at_lines():
    *_, segments = units_of("Pi is 3.14 at example.org. Next! 水位。上涨\n\nend")
    assert segments.tolist() == [0] * 7 + [1] + [2, 2, 3, 3] + [4]


def units(text):
    hashes, lengths, _ = units_of(text)
    room = scratch(len(text.encode()))
    return hashes, lengths, room.keys, room.values


def grams(hashes, size):
    return [tuple(hashes[i : i + size].tolist()) for i in range(len(hashes) - size + 1)]


@settings(deadline=None)  # the first call compiles
@given(TEXT, st.integers(2, 6))
def test_top_count_equals_a_counter(text, size):
    hashes, _, keys, values = units(text)
    wanted = Counter(grams(hashes, size)).most_common(1)
    found = ngrams.top_count(hashes, hashes.size, size, keys, values)
    assert found == (wanted[0][1] if wanted else 0)


@settings(deadline=None)  # the first call compiles
@given(TEXT, st.integers(2, 6))
def test_repeated_chars_equal_marking_each_repeat(text, size):
    hashes, lengths, keys, values = units(text)
    seen, inside = set(), np.zeros(hashes.size, bool)
    for i, gram in enumerate(grams(hashes, size)):
        if gram in seen:
            inside[i : i + size] = True
        seen.add(gram)
    found = ngrams.repeated_chars(hashes, lengths, hashes.size, size, keys, values)
    assert found == (lengths[inside].sum(), lengths.sum())


@pytest.mark.parametrize("text", ["a" * 5_000, "a " * 5_000, "中" * 3_000, "中a" * 3_000, ""])
def test_scratch_suffices(text):
    data, _ = string_buffers(pa.array([text], pa.large_string()))
    assert units_of(text)[0].size <= scratch(data.size).hashes.size
