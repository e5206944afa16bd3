from __future__ import annotations

import json
import time
from typing import Any

import pytest

from dataflow_ops import media
from dataflow_ops.errors import MalformedRecord
from dataflow_ops.layers.parse.parsers import BY_NAME, PARSERS, parser_of
from dataflow_ops.layers.parse.parsers.dialogue import ROLES, canonical_turns
from dataflow_ops.layers.parse.parsers.markdown import close_fence, front_matter
from tests.layers.parse.harness import FakeSide, parse, settings

BODY = "The keeper walked along the water each morning and read the gauge. " * 5


def one(path: str, data: bytes, **row: Any) -> dict[str, Any]:
    (doc,) = parse(FakeSide({path: data}, extra={path: row})).docs
    return doc


def test_every_parsable_type_has_a_parser_and_every_name_is_unique() -> None:
    containers = {media.JSONL, media.JSON, media.PARQUET, media.WARC}
    assert set(media.MEDIA_BY_EXTENSION.values()) - containers <= set(PARSERS)
    assert len({p.label for p in BY_NAME.values()}) == len(BY_NAME)


# HTML


def html(inner: str, title: str = "T") -> bytes:
    page = f"<!doctype html><html><head><title>{title}</title></head><body>{inner}</body></html>"
    return page.encode()


@pytest.mark.parametrize("extractor", ["resiliparse", "trafilatura"])
def test_menus_scripts_and_footers_stay_out(extractor: str) -> None:
    page = html(
        f"<nav><ul><li><a href=/>Home</a><li><a href=/n>News</a></ul></nav><script>var x = 1;</script>"
        f"<article><h1>Head</h1><p>{BODY}</p><p>{BODY}</p></article><footer><a href=/>Imprint</a></footer>"
    )
    job = settings(sources=[{"path": "x", "source_id": "default", "html_extractor": extractor}])
    (doc,) = parse({"a.html": page}, job).docs
    assert "read the gauge" in doc["text"]
    assert not any(word in doc["text"] for word in ("Home", "var x", "Imprint"))
    assert (doc["title"], doc["repairs"]) == ("T", "")
    assert doc["parser"].startswith("html_trafilatura@" if extractor == "trafilatura" else "html@")


def test_main_content_off_keeps_menus() -> None:
    job = settings(sources=[{"path": "x", "source_id": "default", "main_content": False}])
    (doc,) = parse({"a.html": html(f"<nav>Home</nav><p>{BODY}</p>")}, job).docs
    assert "Home" in doc["text"]


@pytest.mark.parametrize(
    ("inner", "repairs"),
    [
        (f"<p>{BODY}<p>open paragraphs are legal<ul><li>one<li>two</ul>", ""),
        (f"<p>{BODY}</p><br><img src=x><br/><a id='x'/>", ""),
        (f"<p>{BODY}</p><!-- <div> --><script>'<div>'</script>", ""),
        (f"<div><p>{BODY}</p>", "html"),
        (f"<DIV><p>{BODY}</p></div>", ""),
        (f"<p>{BODY}</p><table><tr><td>x", "html"),
    ],
)
def test_what_counts_as_broken(inner: str, repairs: str) -> None:
    assert one("a.html", html(inner))["repairs"] == repairs


def test_charset_of_meta_and_of_the_transport() -> None:
    page = html(f'<meta charset="koi8-r"><p>{"Смотритель обходил плотину. " * 9}</p>').decode()
    assert one("a.html", page.encode("koi8-r"))["encoding"] == "koi8-r"
    assert one("a.html", page.encode("cp1251"), charset="windows-1251")["encoding"] == "cp1251"
    assert "Смотритель" in one("a.html", page.encode("utf-16"))["text"]


# Markdown


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("```\ncode", "```"),
        ("~~~~ x\n```\n~~~\n", "~~~~"),
        ("- item\n  ```py\n  x\n", "```"),
        ("````\n```\n", "````"),
        ("```\na\n```\n", ""),
        ("`````\n``` not closed here\n`````", ""),
        ("inline ``` only", ""),
        ("``` a`b\n", ""),
        ("> ```\n> x\n> ```\n", ""),
        ("```\n``` info\n```\n", ""),
    ],
)
def test_fences(text: str, closed: str) -> None:
    got, marked = close_fence(text)
    assert marked == bool(closed)
    assert got == (text if not closed else text + ("" if text.endswith("\n") else "\n") + closed + "\n")


@pytest.mark.parametrize(
    ("text", "metadata", "rest"),
    [
        ("---\ntitle: A\n---\n\nBody", {"title": "A"}, "Body"),
        ("---\r\na: 1\r\n...\r\nBody", {"a": 1}, "Body"),
        ('+++\ntitle = "A"\n+++\nBody', {"title": "A"}, "Body"),
        ("---\n---\nBody", {}, "Body"),
        ("---\nnot front matter\n---\nBody", {}, None),
        ("---\n\nA rule line, then text", {}, None),
        ("--- title\nBody", {}, None),
        ("---\na: b: c\n---\nBody", {"front_matter": "a: b: c\n"}, "Body"),
        ("---\na: &x [1]\nb: [*x, *x]\n---\nBody", {"front_matter": "a: &x [1]\nb: [*x, *x]\n"}, "Body"),
    ],
)
def test_front_matter(text: str, metadata: dict[str, Any], rest: str | None) -> None:
    assert front_matter(text) == (metadata, text if rest is None else rest)


def test_dates_in_front_matter_become_text() -> None:
    doc = one("a.md", b"---\ndate: 2024-05-01\n1: {b: .nan}\n---\n# Head #\ntext\r\n")
    assert json.loads(doc["metadata"]) == {"1": {"b": None}, "date": "2024-05-01"}
    assert (doc["title"], doc["repairs"], doc["text"]) == ("Head", "nan", "# Head #\ntext\n")


# Text, reStructuredText, code


def test_text_is_kept_as_it_is() -> None:
    doc = one("notes/a.txt", b"\xef\xbb\xbf  two spaces\n\nend \n")
    assert doc["text"] == "  two spaces\n\nend \n"


def test_rst_title() -> None:
    assert one("a.rst", b".. comment\n\n=====\nTitle\n=====\n\nText\n")["title"] == "Title"


@pytest.mark.parametrize(
    ("path", "data", "language", "metadata"),
    [
        ("src/a.py", b"x = 1\n", "python", {}),
        ("vendor/lib/a.go", b"package a\n", "go", {"vendored": True}),
        ("a.pb.go", b"package a\n", "go", {"generated": True}),
        ("a.c", b"/* Code generated by tool. DO NOT EDIT. */\nint x;\n", "c", {"generated": True}),
        ("a.js", b"var a=1;" * 5000, "javascript", {"minified": True}),
        ("Makefile", b"all:\n\techo\n", "make", {}),
    ],
)
def test_code(path: str, data: bytes, language: str, metadata: dict[str, Any]) -> None:
    doc = one(path, data)
    assert (doc["code_language"], doc["kind_hint"]) == (language, "code")
    assert json.loads(doc["metadata"] or "{}") == metadata


def test_name_that_says_nothing_is_sniffed() -> None:
    assert one("page", html(f"<p>{BODY}</p>"))["media_type"] == media.HTML
    assert one("tool", b"#!/usr/bin/env python3\nprint(1)\n")["code_language"] == "python"
    ran = parse({"picture.png": b"\x89PNG\r\n\x1a\n\x00\x00"})
    assert ran.dead[0]["error"] == "ParserFailed"


# PDF


def pdf(text: str, extra: str = "") -> bytes:
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R 3 0 R] /Count 2 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        " /Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Title (Gauge book) /Author (Keeper) >>",
    ]
    out, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info 6 0 R {extra} >>\nstartxref\n{len(out)}\n%%EOF\n"
    return (out + trailer).encode()


def test_pdf_text_and_fields() -> None:
    doc = one("a.pdf", pdf("The gauge stands at three metres."))
    assert doc["text"] == "\n\n".join(["The gauge stands at three metres."] * 2)
    assert doc["title"] == "Gauge book"
    assert json.loads(doc["metadata"]) == {"author": "Keeper", "pages": 2}


def test_a_pdf_under_another_type() -> None:
    assert one("a.html", pdf("The gauge."))["parser"] == "pdf@1"


def test_broken_and_empty_pdf() -> None:
    encrypted = pdf(
        "x", "/Encrypt << /Filter /Standard /V 1 /R 2 /O (" + "o" * 32 + ") /U (" + "u" * 32 + ") /P -4 >>"
    )
    ran = parse({"a.pdf": b"%PDF-1.4\nrubbish", "b.pdf": pdf(""), "c.pdf": encrypted, "d.pdf": pdf("kept")})
    assert [(d["path"], d["error"], d["parser"]) for d in ran.dead] == [
        ("a.pdf", "ParserFailed", "pdf@1"),
        ("c.pdf", "ParserFailed", "pdf@1"),
    ]
    assert "encrypted" in ran.dead[1]["message"]
    assert [(r["path"], r["rule"]) for r in ran.rejects] == [("b.pdf", "empty_text")]
    assert len(ran.docs) == 1


# Dialogues


def test_roles_map_to_canonical_ones() -> None:
    assert set(ROLES.values()) == {"user", "assistant", "system", "developer", "tool"}


def test_turns_in_both_forms() -> None:
    tool_call = [{"id": "c", "function": {"name": "level", "arguments": "{}"}}]
    record = {
        "messages": [
            {"content": "s", "role": "system"},
            {
                "role": "User",
                "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}],
            },
            {"role": "assistant", "content": None, "tool_calls": tool_call},
            {"role": "tool", "content": "3", "tool_call_id": "c"},
        ]
    }
    turns = canonical_turns(record)
    assert [list(t)[:2] for t in turns] == [["role", "content"]] * 4
    assert [t["content"] for t in turns] == ["s", "look", "", "3"]
    assert turns[1]["parts"] == record["messages"][1]["content"]
    assert turns[2]["tool_calls"] == tool_call
    sharegpt = {
        "system": "s",
        "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": ""}],
    }
    assert canonical_turns(sharegpt) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": ""},
    ]


@pytest.mark.parametrize(
    "turn",
    [
        "text",
        {"content": "x"},
        {"role": "alien", "content": "x"},
        {"role": "user", "content": 7},
        {"role": "user"},
    ],
)
def test_malformed_turns(turn: Any) -> None:
    with pytest.raises(MalformedRecord):
        canonical_turns({"messages": [turn]})


def test_dialogue_without_any_content_is_empty() -> None:
    ran = parse({"a.jsonl": b'{"messages": [{"role": "assistant", "content": ""}]}\n{"messages": []}'})
    assert [r["rule"] for r in ran.rejects] == ["empty_text", "empty_text"]


def test_control_characters_in_turns() -> None:
    line = json.dumps({"messages": [{"role": "user", "content": "a\x00b\x07\r\nc"}], "tools": [1]}).encode()
    (doc,) = parse({"a.jsonl": line}).docs
    assert json.loads(doc["messages"])[0]["content"] == "ab\nc"
    assert doc["text"] == "user: ab\nc"
    assert (doc["control_chars"], doc["repairs"], doc["metadata"]) == (2, "nul", '{"tools":[1]}')


def test_parser_of_unknown_type() -> None:
    assert parser_of("image/png") is None


@pytest.mark.parametrize(
    "text",
    [
        "# a" + " #" * 200_000 + "b",
        "- " * 200_000 + "```x`",
        "---\n" + "a" * 60_000 + "\n---\n",
        "> " * 200_000 + "~~~",
    ],
)
def test_markdown_never_costs_its_square(text: str) -> None:
    began = time.process_time()
    one("a.md", text.encode())
    assert time.process_time() - began < 2
