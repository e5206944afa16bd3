"""Documents of the benchmark corpus and what is injected into them."""

from __future__ import annotations

import random
import unicodedata

import pytest

from bench.corpus.__main__ import shuffled, unique, with_faults
from bench.corpus.faults import FAULTS, tokens
from bench.corpus.texts import Text, cut, language, wanted
from bench.independent import key_text, similarity

ENGLISH = "\n".join(
    f"Line {i} tells of {w} and of what {w} means here." for i, w in enumerate("abcdefgh" * 8)
)
CHINESE = "。".join(f"第{i}段讲的是数据平台的第{i * 7}个部件" for i in range(80))
WORDS = {"zh": list("天地玄黄宇宙洪荒"), "en": ["alpha", "beta", "gamma", "delta"]}


def changed(label: str, text: str, lang: str) -> str:
    return FAULTS[label].change(text, lang, random.Random(4), WORDS)


@pytest.mark.parametrize(("text", "lang"), [(ENGLISH, "en"), (CHINESE, "zh")])
@pytest.mark.parametrize("label", [name for name, fault in FAULTS.items() if fault.copy and name != "edit10"])
def test_a_copy_stays_like_what_it_was_made_from(label: str, text: str, lang: str) -> None:
    copy = changed(label, text, lang)
    assert (copy == text) == (label == "exact")
    assert similarity(key_text(copy), key_text(text)) > (1 if label in ("exact", "width") else 0.8) - 1e-9


def test_more_per_cent_edit_more() -> None:
    alike = [similarity(ENGLISH, changed(f"edit{n}", ENGLISH, "en")) for n in (1, 2, 5, 10)]
    assert alike == sorted(alike, reverse=True)


def test_faults_are_what_they_are_called() -> None:
    assert sum(unicodedata.category(c) == "Cc" and c != "\n" for c in changed("control", ENGLISH, "en")) > 20
    assert len(changed("short", ENGLISH, "en")) <= 60
    assert len(set(changed("stuffed", ENGLISH, "en").split())) <= 4
    assert changed("halfloop", ENGLISH, "en").startswith(ENGLISH[: len(ENGLISH) // 2])


@pytest.mark.parametrize(("text", "lang"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_tokens_lose_nothing(text: str, lang: str) -> None:
    assert "".join(tokens(text, lang)) == text


def test_pieces_are_two_to_six_kilobytes_and_lose_no_line_but_blank_ones() -> None:
    lines = [f"line {i} " + "x" * (i % 90) for i in range(900)] + ["", "  "]
    pieces = list(cut(lines, "a file"))
    assert all(2200 <= len(p.encode()) <= 6300 for p in pieces[:-1])
    assert (
        "\n".join(pieces).split("\n")
        == [line.rstrip() for line in lines if line.strip()][: sum(p.count("\n") + 1 for p in pieces)]
    )
    assert pieces == list(cut(lines, "a file"))
    assert pieces != list(cut(lines, "another"))


def test_files_are_chosen_by_name_and_texts_by_script() -> None:
    assert wanted("a/b.html.gz")
    assert wanted("usr/share/man/man1/ls.1.gz")
    assert not wanted("a/b.png")
    assert language(ENGLISH) == "en"
    assert language(CHINESE) == "zh"


def test_a_copy_names_its_base_after_shuffling_and_no_document_is_used_twice() -> None:
    base = unique(Text("s", "en", f"{i} {ENGLISH}") for i in (*range(300), *range(300)))
    rows = shuffled(with_faults(base, 1), 1)
    assert sum(row[3] == "base" for row in rows) == 300
    copies = [row for row in rows if row[4] >= 0]
    assert {rows[row[4]][3] for row in copies} == {"base"}
    assert len({row[4] for row in copies}) == len(copies)
    assert all(rows[row[4]][0] == row[0] for row in copies if row[3] == "exact")
    assert rows == shuffled(with_faults(base, 1), 1)
