from __future__ import annotations

import unicodedata

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels.stored import LOOSE, ODD, flag_table, scan

odd = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\ufffd"]
pieces = (
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from([*odd, "e\u0301", "\u1100\u1161\u11a8", "\u09c7\u09be", "\u0344", "\u2126", "\uf900"])
    | st.sampled_from(["plain", "中文", "é", "가", "a" * 130])
)


def scanned(texts: list[str]) -> tuple[list[int], list[int]]:
    encoded = [t.encode() for t in texts]
    offsets = np.concatenate([[0], np.cumsum([len(e) for e in encoded])]).astype(np.int64)
    flags, chars = scan(np.frombuffer(b"".join(encoded), np.uint8), offsets)
    return flags.tolist(), chars.tolist()


def is_odd(char: str) -> bool:
    return char == "\ufffd" or (unicodedata.category(char) == "Cc" and char not in "\t\n")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(pieces, max_size=5).map("".join), max_size=5))
def test_flags_and_lengths(texts: list[str]) -> None:
    flags, chars = scanned(texts)
    assert chars == [len(t) for t in texts]
    for text, flag in zip(texts, flags, strict=True):
        assert bool(flag & ODD) == any(map(is_odd, text))
        if not flag & LOOSE:
            assert unicodedata.is_normalized("NFC", text)


def test_no_character_is_missed() -> None:
    table = flag_table()
    seconds = set()
    for cp in range(0x110000):
        parts = unicodedata.decomposition(chr(cp))
        if parts and parts[0] != "<":
            seconds |= {int(part, 16) for part in parts.split()[1:]}
        if unicodedata.combining(chr(cp)) or (parts and not unicodedata.is_normalized("NFC", chr(cp))):
            assert table[cp] & LOOSE, hex(cp)
    # Syllables are composed by rule: what may be second or third in one joins.
    seconds |= {ord(c) for s in map(chr, range(0xAC00, 0xD7A4)) for c in unicodedata.normalize("NFD", s)[1:]}
    assert all(table[cp] & LOOSE for cp in seconds)
    # Nothing common is called loose, or nobody gains anything.
    assert not any(table[ord(c)] & LOOSE for c in "aéñß中水、。“”…—가한ぱガ！，")
