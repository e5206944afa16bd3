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


def grams(hashes, size):
    return [tuple(hashes[i : i + size].tolist()) for i in range(len(hashes) - size + 1)]


@settings(deadline=None)  # the first call compiles
@given(TEXT, st.lists(st.integers(1, 9), min_size=1, max_size=5, unique=True).map(sorted))
def test_ngrams_equal_a_counter_and_marking_each_repeat(text, sizes):
    hashes, lengths, _ = units_of(text)
    n, room = hashes.size, scratch(len(text.encode()))
    at, slots, values = room.at, room.slots, room.values
    number = {h: i for i, h in enumerate(dict.fromkeys(hashes.tolist()))}
    slots[:n] = [number[h] for h in hashes.tolist()]
    values[: len(number)] = list(Counter(hashes.tolist()).values())
    m, before = 0, 0
    for size in sizes:
        m = (
            ngrams.narrow(at, m, slots, values, size - before)
            if before
            else ngrams.runs(slots, values, n, size, at)
        )
        before = size
        most, inside = ngrams.count(hashes, lengths, size, at, m, slots, room.keys, values)
        all_grams = grams(hashes, size)
        counted = Counter(all_grams)
        wanted = max(counted.values(), default=0)
        assert most == wanted or max(most, wanted) <= 1
        assert {i for i, gram in enumerate(all_grams) if counted[gram] > 1} <= set(at[:m].tolist())
        seen, marked = set(), np.zeros(n, bool)
        for i, gram in enumerate(all_grams):
            if gram in seen:
                marked[i : i + size] = True
            seen.add(gram)
        assert inside == lengths[marked].sum()


@pytest.mark.parametrize("text", ["a" * 5_000, "a " * 5_000, "中" * 3_000, "中a" * 3_000, ""])
def test_scratch_suffices(text):
    data, _ = string_buffers(pa.array([text], pa.large_string()))
    assert units_of(text)[0].size <= scratch(data.size).hashes.size
