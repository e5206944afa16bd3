import math
import unicodedata
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels import unicode_classes as uc
from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.counts import CHARS, census

ASCII = st.text(st.characters(max_codepoint=127), max_size=700)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
TEXTS = st.lists(ASCII | ANY, max_size=6)


def counted(texts):
    return census(*string_buffers(pa.array(texts, pa.large_string()))).counts


@settings(deadline=None)  # the first call compiles
@given(TEXTS)
def test_counts_equal_a_plain_count(texts):
    table = uc.class_table()
    for text, row in zip(texts, counted(texts), strict=True):
        expected = Counter(int(table[ord(char)]) for char in text)
        assert {c: int(row[c]) for c in range(uc.CLASSES) if row[c]} == expected
        assert row[CHARS] == len(text)


def test_long_ascii_runs_do_not_overflow_their_lanes():
    [row] = counted(["a" * 100_000 + "1" * 999 + "é" + " " * 5_000])
    assert (row[uc.LATIN], row[uc.DIGIT], row[uc.SPACE]) == (100_001, 999, 5_000)


def test_a_sliced_column_counts_its_own_rows():
    column = pa.array(["aa", "b1", "中"], pa.large_string()).slice(1)
    rows = census(*string_buffers(column)).counts
    assert rows[:, CHARS].tolist() == [2, 1]
    assert rows[1, uc.HAN] == 1


@pytest.mark.parametrize(
    ("chars", "wanted"),
    [
        ("aZéß", uc.LATIN),
        ("Ａｚ", uc.LATIN),
        ("中文𠀀〇々", uc.HAN),
        ("ひカｶー", uc.KANA),
        ("한글", uc.HANGUL),
        ("Жї", uc.CYRILLIC),
        ("Ωλ", uc.GREEK),
        ("عر", uc.ARABIC),
        ("שלום"[0:2], uc.HEBREW),
        ("हि"[0:1], uc.DEVANAGARI),
        ("กข", uc.THAI),
        ("ஆଅ", uc.OTHER_LETTER),
        ("09٣９", uc.DIGIT),
        ("½Ⅷ²", uc.NUMBER),
        (" \t\u00a0\u3000", uc.SPACE),
        ("\n\r\u2028", uc.NEWLINE),
        (".!?。！？…", uc.SENTENCE_END),
        (",;-—、「", uc.PUNCT),
        ("+=$€☃", uc.SYMBOL),
        ("\x00\x07\x1b\x7f\x85"[:4], uc.CONTROL),
        ("\ufffd", uc.REPLACEMENT),
        ("\u0301\u093f", uc.MARK),
    ],
)
def test_classes(chars, wanted):
    table = uc.class_table()
    assert [int(table[ord(char)]) for char in chars] == [wanted] * len(chars)


def test_every_letter_mark_digit_and_control_of_the_lower_planes_has_its_class():
    table = uc.class_table()
    for cp in range(0x30000):
        char = chr(cp)
        major = unicodedata.category(char)
        if major[0] == "L":
            assert table[cp] >= uc.LATIN, hex(cp)
        elif major[0] == "M":
            assert table[cp] == uc.MARK, hex(cp)
        elif major == "Nd":
            assert table[cp] == uc.DIGIT, hex(cp)
        else:
            assert table[cp] < uc.LATIN or cp == 0x3007, hex(cp)


@settings(deadline=None)  # the first call compiles
@given(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))
def test_fold_table(char):
    wanted = unicodedata.normalize("NFKC", char).lower()
    folded = chr(uc.fold_table()[ord(char)])
    assert folded == wanted if len(wanted) == 1 else folded == char
    assert chr(uc.fold_table(False, False)[ord(char)]) == char


@settings(deadline=None)  # the first call compiles
@given(st.lists(ANY, min_size=1, max_size=5))
def test_entropy_equals_its_formula(texts):
    found = census(*string_buffers(pa.array(texts, pa.large_string()))).entropy
    for text, value in zip(texts, found, strict=True):
        n = len(text)
        wanted = -sum(c / n * math.log2(c / n) for c in Counter(text).values())
        assert value == pytest.approx(wanted, abs=1e-9)
