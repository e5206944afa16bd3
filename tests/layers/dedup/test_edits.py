"""Edited copies: how much of a text changes, and that the same copy is made each time."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.kernels.similarity import similarity
from dataflow_ops.layers.dedup.edits import EDITS, copy_of

TEXT = " ".join(hashlib.sha256(str(i).encode()).hexdigest()[: 2 + i % 9] for i in range(900))
HAN = "".join(
    chr(0x4E00 + int(hashlib.sha256(str(i).encode()).hexdigest()[:4], 16) % 5000) for i in range(2000)
)
SHARES = {
    "edit 1 %": 0.01,
    "edit 2 %": 0.02,
    "edit 5 %": 0.05,
    "edit 10 %": 0.10,
    "block 5 %": 0.05,
    "block 10 %": 0.10,
}


def key(text: str) -> str:
    return fold_text(text)


@pytest.mark.parametrize("text", [TEXT, HAN], ids=["latin", "han"])
@pytest.mark.parametrize("kind", SHARES)
def test_so_many_characters_change(text: str, kind: str) -> None:
    share = SHARES[kind]
    for seed in range(8):
        copy = copy_of(text, bytes([seed]) * 16, kind)
        distance = 1.0 - similarity(key(text), key(copy), 0.0)
        # Characters drawn by chance may be those that stood there, so a little less than the share changes.
        assert 0.6 * share <= distance <= share * 1.02


@pytest.mark.parametrize("kind", ["width", "case"])
def test_width_and_case_change_no_key_text(kind: str) -> None:
    copy = copy_of(TEXT + "\nWords, marks & more!", b"1" * 16, kind)
    assert copy != TEXT
    assert key(copy) == key(TEXT + "\nWords, marks & more!")


def test_a_short_first_line_is_replaced_and_a_text_without_one_gets_one() -> None:
    copy = copy_of(f"A title\n{TEXT}", b"2" * 16, "title")
    assert copy.endswith(f", revised\n{TEXT}")
    assert "A title" not in copy
    assert copy_of(TEXT, b"2" * 16, "title").endswith(f", revised\n{TEXT}")


@pytest.mark.parametrize("kind", EDITS)
def test_a_copy_follows_from_text_id_and_kind(kind: str) -> None:
    assert copy_of(TEXT, b"3" * 16, kind) == copy_of(TEXT, b"3" * 16, kind)
    if kind not in ("width", "case"):
        assert copy_of(TEXT, b"3" * 16, kind) != copy_of(TEXT, b"4" * 16, kind)


@given(st.text(max_size=60), st.binary(min_size=16, max_size=16), st.sampled_from(sorted(EDITS)))
def test_any_text_can_be_edited(text: str, doc_id: bytes, kind: str) -> None:
    copy = copy_of(text, doc_id, kind)
    copy.encode("utf-8")
    if kind in SHARES:
        inked = len("".join(text.split()))
        assert abs(len(copy) - len(text)) <= max(1, round(SHARES[kind] * inked))
