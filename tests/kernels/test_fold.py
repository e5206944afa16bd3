import random
import sys
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.kernels import fold as f

# Every code point that the table looks at, and every 97th of those it takes for granted.
STABLE = {c for first, last in f._STABLE for c in range(first, last + 1) if c % 97}
EVERY = [chr(c) for c in range(sys.maxunicode + 1) if not (0xD800 <= c < 0xE000 or c in STABLE)]
COMBOS = [
    (True, True, False),
    (True, False, False),
    (False, True, False),
    (False, False, False),
    (True, True, True),
]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
interacting = st.text(
    st.sampled_from("aeıİßﬀΣς가각각\u0301\u0327\u0345\u0f71ﷺ½m²１Ａ　 \t\u0085é\u1e9b\u0323"), max_size=20
)


def folded(rows: list[str], table: f.FoldTable) -> list[str]:
    return f.fold(pa.array(rows, pa.large_string()), table).array().to_pylist()


def oracle(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(c for c in text if not c.isspace())


@pytest.mark.parametrize(("nfkc", "lower_case", "keep_words"), COMBOS)
def test_every_code_point(nfkc: bool, lower_case: bool, keep_words: bool) -> None:
    table = f.fold_table(nfkc, lower_case, keep_words)
    assert folded(EVERY, table) == [f.fold_text(c, nfkc, lower_case, keep_words) for c in EVERY]


def test_every_code_point_after_a_letter_and_before_a_mark() -> None:
    rows = [f"e{c}\u0301" for c in EVERY] + [f"가{c}a" for c in EVERY]
    assert folded(rows, f.fold_table()) == [oracle(r) for r in rows]


def test_safe_code_points_alone_never_interact() -> None:
    table = f.fold_table()
    safe = [c for c in EVERY if table.index[ord(c)] != -2]
    rng = random.Random(3)
    changed = [c for c in safe if table.index[ord(c)] >= 0]
    rows = ["".join(rng.choices(pool, k=40)) for pool in (safe, changed) for _ in range(2000)]
    assert folded(rows, table) == [oracle(r) for r in rows]


@given(st.lists(st.one_of(texts, interacting), max_size=6))
def test_equals_unicodedata(rows: list[str]) -> None:
    assert folded(rows, f.fold_table()) == [oracle(r) for r in rows]


def test_growth_beyond_the_input() -> None:
    rows = ["ﷺ" * 500, "", "x", "ﷺ" * 3000, "e\u0301ﷺ"]
    assert folded(rows, f.fold_table()) == [oracle(r) for r in rows]


def test_long_text_folded_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ("Ae\u0301 한글 각ㄱ\u1161 水库\u3099か\u3099 " * 60) + "\u0301" * 50
    whole = folded([text], f.fold_table())
    monkeypatch.setattr(f, "_FALLBACK_BYTES", 64)
    assert folded([text], f.fold_table()) == whole == [oracle(text)]


def test_slices_and_nulls() -> None:
    column = pa.chunked_array(
        [pa.array(["No", "A b", None, "Ｃ"], pa.large_string()).slice(1), pa.array(["é"], pa.large_string())]
    )
    assert f.fold(column, f.fold_table()).array().to_pylist() == ["ab", "", "c", "é"]


@given(texts)
def test_counts(text: str) -> None:
    column = pa.array([text, "水か한x"], pa.large_string())
    data, offsets = f.string_buffers(column)
    characters, dense = f.count_characters(data, offsets)
    assert characters.tolist() == [len(text), 4]
    ranges = ((0x3040, 0x30FF), (0x3400, 0xD7BF), (0x20000, 0x3FFFF))
    assert dense.tolist() == [sum(any(a <= ord(c) <= b for a, b in ranges) for c in text), 3]
