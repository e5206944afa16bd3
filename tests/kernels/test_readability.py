from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.kernels.readability import count_indentation, count_reading

pieces = st.sampled_from(
    ["a", "B", "7", "é", "Ж", "中", "龥", "あ", "한", "。", "！", "？", "，", "．", "　", "…", "€", "😀",
     ".", "!", "?", "...", "?!", " ", "  ", "\t", "\n", "\r\n", "\f", ",", "-", "·", "»"]
)  # fmt: skip
text = st.one_of(st.lists(pieces, max_size=60).map("".join), st.text(max_size=40))


def reading(text: str) -> list[int]:
    """Character by character, for texts that end within the limit."""
    letters = words = ends = han = 0
    in_word, ended = False, True
    for char in text:
        body = char.encode()
        if (char.isascii() and char.isalnum()) or (len(body) == 2 and body[0] >= 0xC3):
            letters += 1
            words += not in_word
            in_word, ended = True, False
        elif 0x4000 <= ord(char) <= 0x9FFF:
            han += 1
            in_word, ended = False, False
        elif char in ".!?。！？":
            ends += not ended
            in_word, ended = False, True
        else:
            in_word = False
    return [letters, words, ends, han]


def indentation(text: str) -> list[int]:
    lines = [line for line in text.split("\n") if line.strip(" \t")]
    leads = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines]
    return [len(lines), sum(lead.count(" ") + 4 * lead.count("\t") for lead in leads)]


def counted(texts: list[bytes], limit: int) -> tuple[list[list[int]], list[list[int]]]:
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in texts])]).astype(np.int64)
    data, rows = np.frombuffer(b"".join(texts), np.uint8), np.arange(len(texts))
    backwards = rows[::-1].copy()
    found = count_reading(data, offsets, rows, limit)
    assert np.array_equal(found[::-1], count_reading(data, offsets, backwards, limit))
    return found.tolist(), count_indentation(data, offsets, rows, limit).tolist()


@given(st.lists(text, max_size=5))
def test_counts(texts: list[str]) -> None:
    found = counted([t.encode() for t in texts], 4096)
    assert found == ([reading(t) for t in texts], [indentation(t) for t in texts])


@given(text, st.integers(0, 80))
def test_the_limit_cuts_between_bytes(text: str, limit: int) -> None:
    """A character that the limit cuts counts by its first byte, an end mark of three bytes not at all."""
    body = text.encode()
    [found], [lines] = counted([body + body], limit)
    whole = (body + body)[:limit].decode(errors="ignore")
    rest = (body + body)[:limit][len(whole.encode()) :]
    shown = whole + ("é" if rest[:1] and 0xC3 <= rest[0] <= 0xDF else "")
    shown += "中" if rest[:1] and 0xE4 <= rest[0] <= 0xE9 else ""
    assert found == reading(shown)
    assert lines == indentation(whole + ("x" if rest else ""))


def test_a_limit_that_could_overflow_is_refused() -> None:
    data, offsets = np.frombuffer(b"a" * 70_000, np.uint8), np.array([0, 70_000], np.int64)
    rows = np.zeros(1, np.int64)
    assert count_reading(data, offsets, rows, 65_535).tolist() == [[65_535, 1, 0, 0]]
    with pytest.raises(ValueError, match="at most"):
        count_reading(data, offsets, rows, 65_536)
