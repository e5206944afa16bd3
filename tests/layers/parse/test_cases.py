"""Every row of the shared cases that speaks of parse."""

from __future__ import annotations

import json

import pytest

from dataflow_ops import schema
from tests.layers.parse.harness import CASES, case, parse

PLAIN = [json.loads(line)["text"] for line in (CASES / "jsonl/plain.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", ["plain", "bom", "crlf", "no_final_newline"])
def test_jsonl_forms_give_the_same_texts(name: str) -> None:
    ran = case(f"jsonl/{name}.jsonl")
    assert ran.texts == PLAIN
    assert len(PLAIN) == 3
    assert not ran.dead


def test_line_separators_split_nothing() -> None:
    ran = case("jsonl/line_separators.jsonl")
    assert len(ran.docs) == 3
    joined = "".join(ran.texts)
    assert "\u2028" in joined
    assert "\u2029" in joined
    assert not ran.dead


@pytest.mark.parametrize(
    ("name", "error"), [("bad_byte_in_middle", "UndecodableText"), ("broken_line", "MalformedRecord")]
)
def test_a_bad_line_is_isolated(name: str, error: str) -> None:
    ran = case(f"jsonl/{name}.jsonl")
    assert ran.texts == PLAIN
    (dead,) = ran.dead
    assert dead["error"] == error
    assert dead["level"] == "document"
    data = (CASES / f"jsonl/{name}.jsonl").read_bytes()
    assert dead["position"] == len(data.split(b"\n")[0]) + 1
    assert dead["doc_id"] == schema.doc_id("default", f"jsonl/{name}.jsonl", dead["position"])


def test_lone_surrogate() -> None:
    ran = case("jsonl/lone_surrogate.jsonl")
    assert len(ran.docs) == 4
    (mended,) = [d for d in ran.docs if d["repairs"]]
    assert mended["repairs"] == "surrogate"
    assert "\ufffd end" in mended["text"]
    assert mended["replacement_chars"] == 1


def test_nul() -> None:
    ran = case("jsonl/nul.jsonl")
    assert len(ran.docs) == 4
    assert not any("\x00" in t for t in ran.texts)
    (mended,) = [d for d in ran.docs if d["repairs"]]
    assert (mended["repairs"], mended["control_chars"]) == ("nul", 1)
    assert mended["raw_chars"] == len(mended["text"]) + 1


def test_nan() -> None:
    ran = case("jsonl/nan.jsonl")
    assert len(ran.docs) == 4
    (mended,) = [d for d in ran.docs if d["repairs"]]
    assert mended["repairs"] == "nan"
    assert json.loads(mended["metadata"], parse_constant=pytest.fail) == {"score": None}


def test_null_then_string_is_one_schema() -> None:
    ran = case("jsonl/null_then_string.jsonl")
    assert all(json.loads(d["metadata"])["author"] for d in ran.docs[-20:])


def test_missing_text() -> None:
    ran = case("jsonl/missing_text.jsonl")
    assert len(ran.docs) == 3
    assert len(ran.dead) == 3
    assert len({d["message"] for d in ran.dead}) == 3
    (empty,) = ran.rejects
    assert empty["rule"] == "empty_text"
    assert (ran.counts.documents_in, ran.counts.kept, ran.counts.rejected, ran.counts.dead) == (7, 3, 1, 3)


def test_duplicate_ids() -> None:
    ran = case("jsonl/duplicate_ids.jsonl")
    assert [d["source_record_id"] for d in ran.docs] == ["same", "same"]
    assert len({d["doc_id"] for d in ran.docs}) == 2


def test_multi_member_gzip() -> None:
    assert case("jsonl/multi_member.jsonl.gz").texts == PLAIN


def test_truncated_gzip_keeps_whole_rows_and_other_files() -> None:
    name = "jsonl/truncated.jsonl.gz"
    ran = parse({name: (CASES / name).read_bytes(), "z.txt": b"after the broken file"})
    (dead,) = ran.dead
    assert (dead["level"], dead["error"], dead["doc_id"]) == ("file", "TruncatedFile", None)
    assert dead["position"] > 0
    assert len(ran.docs) > 1
    assert ran.texts[-1] == "after the broken file"


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.jsonl.gz"])
def test_empty_files_are_no_error(name: str) -> None:
    ran = case(f"jsonl/{name}")
    assert (ran.counts.documents_in, ran.docs, ran.dead) == (0, [], [])


@pytest.mark.parametrize(("name", "repairs"), [("plain", ""), ("unclosed", "html"), ("cut_in_tag", "html")])
def test_html_body_without_menu(name: str, repairs: str) -> None:
    (doc,) = case(f"html/{name}.html").docs
    assert "The reservoir above the old mill" in doc["text"]
    assert "home news" not in doc["text"]
    assert "http" not in doc["text"]
    assert (doc["repairs"], doc["title"]) == (repairs, "The keeper")


def test_html_deep_gives_text() -> None:
    (doc,) = case("html/deep.html").docs
    assert "reservoir" in doc["text"]


def test_html_script_only_is_empty() -> None:
    ran = case("html/script_only.html")
    assert ran.docs == []
    assert ran.rejects[0]["rule"] == "empty_text"


def test_html_gbk() -> None:
    (doc,) = case("html/zh_gbk.html").docs
    assert "水库的管理员每天清晨" in doc["text"]
    assert doc["encoding"] == "gb18030"


def test_warc_three_records() -> None:
    ran = case("warc/three_records.warc")
    assert [d["url"] for d in ran.docs] == [f"http://example.test/{i}" for i in range(3)]
    assert not ran.dead


def test_warc_bad_length_in_the_middle() -> None:
    ran = case("warc/bad_length_in_middle.warc")
    assert [d["url"] for d in ran.docs] == ["http://example.test/0", "http://example.test/2"]
    (dead,) = ran.dead
    assert (dead["error"], dead["host"], dead["level"]) == ("MalformedRecord", "example.test", "document")
    data = (CASES / "warc/bad_length_in_middle.warc").read_bytes()
    assert data[dead["position"] :].startswith(
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.test/1"
    )


def test_markdown_open_fence() -> None:
    (doc,) = case("md/open_fence.md").docs
    assert doc["repairs"] == "fence"
    assert doc["text"].rstrip().endswith("return x\n```")
    assert doc["text"].count("```") == 2


def test_markdown_front_matter() -> None:
    (doc,) = case("md/front_matter.md").docs
    assert doc["text"].startswith("# Keeper")
    assert json.loads(doc["metadata"]) == {"tags": ["water"], "title": "Keeper"}
    assert doc["title"] == "Keeper"


def test_code() -> None:
    (doc,) = case("code/short_ok.py").docs
    assert (doc["kind_hint"], doc["code_language"], doc["parser"]) == ("code", "python", "code@1")
    assert doc["text"] == (CASES / "code/short_ok.py").read_text()


def test_dialogue_messages() -> None:
    ran = case("dialogue/messages.jsonl")
    turns = json.loads(ran.docs[1]["messages"])
    assert [t["role"] for t in turns] == ["user", "assistant", "tool", "assistant", "assistant"]
    assert turns[1]["content"] == ""
    assert all(d["kind_hint"] == "dialogue" for d in ran.docs)
    assert ran.docs[0]["text"].startswith("system: You answer about water.\n\nuser: How deep is it?")


def test_sharegpt_becomes_the_same_rows() -> None:
    (doc,) = case("dialogue/sharegpt.jsonl").docs
    turns = json.loads(doc["messages"])
    same = json.dumps({"id": "g1", "messages": turns}).encode()
    (twin,) = parse({"dialogue/sharegpt.jsonl": same}).docs
    assert twin == doc


def test_special_tokens_are_ordinary_text() -> None:
    (doc,) = case("dialogue/special_tokens.jsonl").docs
    assert "<|endoftext|> <|im_end|>" in doc["text"]
    assert "<|endoftext|>" in json.loads(doc["messages"])[0]["content"]


def test_superscripts_stay() -> None:
    (doc,) = case("norm/superscript.jsonl").docs
    assert all(c in doc["text"] for c in "²½︰")


def test_control_characters_are_counted_before_they_go() -> None:
    (doc,) = case("text/control.txt").docs
    assert doc["control_chars"] / doc["raw_chars"] == pytest.approx(0.025, abs=0.002)
    assert len(doc["text"]) == doc["raw_chars"] - doc["control_chars"]
