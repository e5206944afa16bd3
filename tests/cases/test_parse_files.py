"""Rows of jsonl, html, warc, md, code: what a whole run makes of each file."""

from __future__ import annotations

import json

import pytest

from tests.cases.product import CASES, Ran, hex_id

PLAIN = [json.loads(line)["text"] for line in (CASES / "jsonl/plain.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", ["plain", "bom", "crlf", "no_final_newline"])
def test_four_ways_to_write_three_rows(ran: Ran, name: str) -> None:
    assert [d["text"] for d in ran.docs("jsonl", f"{name}.jsonl")] == PLAIN
    assert len(PLAIN) == 3
    assert not ran.letters("jsonl", f"{name}.jsonl")


def test_only_line_feeds_split_lines(ran: Ran) -> None:
    texts = [d["text"] for d in ran.docs("jsonl", "line_separators.jsonl")]
    assert len(texts) == 3
    assert "\u2028" in texts[0]
    assert "\u2029" in texts[1]
    assert not ran.letters("jsonl", "line_separators.jsonl")


@pytest.mark.parametrize(
    ("name", "error"), [("bad_byte_in_middle", "UndecodableText"), ("broken_line", "MalformedRecord")]
)
def test_one_bad_line_is_isolated(ran: Ran, name: str, error: str) -> None:
    path = f"{name}.jsonl"
    assert [d["text"] for d in ran.docs("jsonl", path)] == PLAIN
    (letter,) = ran.letters("jsonl", path)
    at = (CASES / "jsonl" / path).read_bytes().index(b"\n") + 1
    assert (letter["level"], letter["error"], letter["position"]) == ("document", error, at)
    assert letter["doc_id"].hex() == hex_id("jsonl", path, at)


def test_lone_surrogate_is_mended(ran: Ran) -> None:
    docs = ran.docs("jsonl", "lone_surrogate.jsonl")
    assert len(docs) == 4
    assert [d["repairs"] for d in docs] == ["", "surrogate", "", ""]
    assert docs[1]["text"].endswith("\ufffd end")


def test_nul_is_removed_and_no_batch_aborted(ran: Ran) -> None:
    docs = ran.docs("jsonl", "nul.jsonl")
    assert len(docs) == 4
    assert [d["repairs"] for d in docs] == ["", "nul", "", ""]
    assert not any("\0" in row["text"] for row in ran.texts)
    assert not any("\0" in str(row["text"]) for row in ran.product.exported())


def test_nan_becomes_null_and_is_marked(ran: Ran) -> None:
    docs = ran.docs("jsonl", "nan.jsonl")
    assert [d["repairs"] for d in docs] == ["", "nan", "", ""]
    assert json.loads(docs[1]["metadata"], parse_constant=pytest.fail) == {"score": None}
    assert ran.product.metrics()["parse"].metrics["repaired.nan"] == 1


def test_late_column_survives(ran: Ran) -> None:
    docs = ran.docs("jsonl", "null_then_string.jsonl")
    authors = [json.loads(d["metadata"])["author"] for d in docs]
    assert authors == [None] * 200 + ["keeper"] * 20


def test_rows_without_text_are_told_apart(ran: Ran) -> None:
    path = "missing_text.jsonl"
    assert [d["text"] for d in ran.docs("jsonl", path)] == PLAIN
    letters = ran.letters("jsonl", path)
    assert len({d["message"] for d in letters}) == len(letters) == 3
    assert [r["rule"] for r in ran.refused("jsonl", path)] == ["empty_text"]


def test_equal_user_ids_are_two_documents(ran: Ran) -> None:
    docs = ran.docs("jsonl", "duplicate_ids.jsonl")
    assert [d["source_record_id"] for d in docs] == ["same", "same"]
    assert len({d["doc_id"] for d in docs}) == 2


def test_every_member_of_a_gzip_file_is_read(ran: Ran) -> None:
    assert [d["text"] for d in ran.docs("jsonl", "multi_member.jsonl.gz")] == PLAIN


def test_cut_gzip_file_keeps_its_whole_rows(ran: Ran) -> None:
    path = "truncated.jsonl.gz"
    docs = ran.docs("jsonl", path)
    assert [d["text"] for d in docs] == (PLAIN * 50)[: len(docs)]
    assert 100 < len(docs) < 150
    (letter,) = ran.letters("jsonl", path)
    assert (letter["level"], letter["error"], letter["doc_id"]) == ("file", "TruncatedFile", None)
    assert letter["position"] >= docs[-1]["position"] + len(docs[-1]["text"].encode())
    assert ran.said.code == 4


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.jsonl.gz"])
def test_empty_file_among_others(ran: Ran, name: str) -> None:
    assert not ran.docs("jsonl", name)
    assert not ran.letters("jsonl", name)


@pytest.mark.parametrize(("name", "repairs"), [("plain", ""), ("unclosed", "html"), ("cut_in_tag", "html")])
def test_page_without_its_menu(ran: Ran, name: str, repairs: str) -> None:
    doc = ran.doc("html", f"{name}.html")
    assert "The reservoir above the old mill" in doc["text"]
    assert "home news" not in doc["text"]
    assert doc["repairs"] == repairs


def test_sixty_thousand_levels(ran: Ran) -> None:
    assert "reservoir" in ran.doc("html", "deep.html")["text"]


def test_page_of_script_alone(ran: Ran) -> None:
    assert not ran.docs("html", "script_only.html")
    assert [r["rule"] for r in ran.refused("html", "script_only.html")] == ["empty_text"]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("error_page", "error_page"),
        ("captcha", "captcha"),
        ("advert", "advertising"),
        ("good_with_marker_line", ""),
    ],
)
def test_marker_rules(ran: Ran, name: str, rule: str) -> None:
    assert ran.rule("html", f"{name}.html") == rule


def test_chinese_page_in_gbk(ran: Ran) -> None:
    doc = ran.doc("html", "zh_gbk.html")
    assert "水库的管理员每天清晨" in doc["text"]
    assert doc["title"] == "水库"


def test_warc_records(ran: Ran) -> None:
    assert [d["url"] for d in ran.docs("warc", "three_records.warc")] == [
        f"http://example.test/{i}" for i in range(3)
    ]
    assert not ran.letters("warc", "three_records.warc")


def test_warc_goes_on_after_a_wrong_length(ran: Ran) -> None:
    path = "bad_length_in_middle.warc"
    assert [d["url"] for d in ran.docs("warc", path)] == ["http://example.test/0", "http://example.test/2"]
    (letter,) = ran.letters("warc", path)
    assert (letter["level"], letter["error"]) == ("document", "MalformedRecord")
    assert (CASES / "warc" / path).read_bytes()[letter["position"] :].startswith(b"WARC/1.0\r\n")


def test_open_fence_is_closed(ran: Ran) -> None:
    doc = ran.doc("md", "open_fence.md")
    assert doc["repairs"] == "fence"
    assert "```python\ndef level(x):\n    return x\n```" in doc["text"]


def test_front_matter_is_metadata(ran: Ran) -> None:
    doc = ran.doc("md", "front_matter.md")
    assert doc["text"].startswith("# Keeper")
    assert json.loads(doc["metadata"]) == {"tags": ["water"], "title": "Keeper"}


def test_short_code_is_kept(ran: Ran) -> None:
    assert ran.rule("code", "short_ok.py") == ""
    (row,) = [r for r in ran.product.exported() if r["path"] == "short_ok.py"]
    assert row["text"] == (CASES / "code/short_ok.py").read_text("utf-8")


def test_stored_text_is_not_folded(ran: Ran) -> None:
    text = ran.doc("norm", "superscript.jsonl")["text"]
    (row,) = (CASES / "norm/superscript.jsonl").read_text("utf-8").splitlines()
    assert text == json.loads(row)["text"]
    assert all(c in text for c in "²½︰")
