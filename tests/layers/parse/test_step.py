from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from dataflow_ops import schema
from dataflow_ops.engine.parse_guard import ParseGuard
from dataflow_ops.errors import DocumentError, DocumentTooCostly, SourceChanged
from dataflow_ops.layers.parse import step as step_module
from dataflow_ops.layers.parse import wire
from dataflow_ops.layers.parse.guard import InlineGuard
from dataflow_ops.layers.parse.parsers import html, pdf
from dataflow_ops.layers.parse.step import FILE_SHIFT, ParseStep
from dataflow_ops.protocols import RunStep
from tests.layers.parse.harness import CASES, FakeSide, Ran, collect, parse, settings

JSONL = b"".join(json.dumps({"text": f"row {i}", "id": i}).encode() + b"\n" for i in range(7))
FILES = {
    "a.jsonl": JSONL + b"broken\n" + JSONL,
    "b.html": b"<html><body><p>Some text of a page.</p></body></html>",
    "c.jsonl.gz": gzip.compress(JSONL * 3, 0)[:-40],
    "d.txt": b"",
    "e.html": b"<script>only()</script>",
    "f.warc": (CASES / "warc/bad_length_in_middle.warc").read_bytes(),
    "g.txt": b"the end",
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_module, "_GROUP_RECORDS", 3)
    monkeypatch.setattr(step_module, "_YIELD_ROWS", 4)


def rows(ran: Ran) -> tuple[Any, ...]:
    return ran.docs, ran.rejects, ran.dead, ran.counts


def test_is_a_run_step_with_contract_outputs() -> None:
    step = ParseStep(settings(), InlineGuard(wire.handle))
    assert isinstance(step, RunStep)
    assert {o.kind: o.schema for o in step.outputs} == {
        "text": schema.DOCUMENTS,
        "rejects": schema.PARSE_REJECTS,
        "dead": schema.DEAD,
    }


def test_rows_do_not_depend_on_where_results_are_cut(small: None) -> None:
    cut = parse(FILES)
    assert len(cut.results) > 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_module, "_GROUP_RECORDS", 1000)
        patch.setattr(step_module, "_YIELD_ROWS", 10**6)
        whole = parse(FILES)
    assert len(whole.results) == 1
    assert rows(cut) == rows(whole)


def test_resume_from_every_cursor_gives_the_rest(small: None) -> None:
    whole = parse(FILES)
    for n, cursor in enumerate(whole.cursors, 1):
        before = collect(iter(whole.results[:n]))
        side = FakeSide(FILES)
        after = parse(side, start=cursor)
        assert before.docs + after.docs == whole.docs
        assert before.dead + after.dead == whole.dead
        assert before.rejects + after.rejects == whole.rejects
        assert before.counts + after.counts == whole.counts
        assert side.opened == list(FILES)[cursor >> FILE_SHIFT :]


@examples(max_examples=30, deadline=None)
@given(st.integers(0, 6), st.integers(0, 20))
def test_resume_from_any_record(number: int, records: int) -> None:
    whole = parse(FILES)
    after = parse(FakeSide(FILES), start=(number << FILE_SHIFT) | records)
    assert after.docs == whole.docs[len(whole.docs) - len(after.docs) :]
    if (number, records) < (6, 1):
        assert after.docs[-1]["text"] == "the end"
    else:
        assert not after.docs


def test_conservation_and_order() -> None:
    ran = parse(FILES)
    counts = ran.counts
    # 15 lines, a page, a broken gzip's rows and its rest, two empty files, three WARC records, a text
    assert (counts.dead, counts.rejected, counts.skipped) == (3, 2, {})
    assert counts.kept == 14 + 1 + 19 + 2 + 1
    assert counts.documents_in == counts.kept + 5
    assert [d["path"] for d in ran.docs] == sorted(d["path"] for d in ran.docs)
    assert counts.bytes_in > 2 * len(JSONL)


@pytest.mark.parametrize("path", ["a.jsonl", "b.html", "c.jsonl.gz", "f.warc"])
def test_a_changed_file_is_never_taken(path: str) -> None:
    side = FakeSide(FILES, extra={path: {"sha256": "0" * 64}})
    with pytest.raises(SourceChanged, match=path):
        parse(side)


def test_an_empty_chunk_gives_nothing() -> None:
    assert parse({}).results == []


def test_an_empty_file_is_rejected_not_forgotten() -> None:
    ran = parse({"a.txt": b"", "b.jsonl": b""})
    assert [r["rule"] for r in ran.rejects] == ["empty_text"]
    assert ran.counts.documents_in == ran.counts.rejected == 1


def test_whole_file_above_the_limit_is_isolated() -> None:
    job = settings(parse={"max_document_mb": 1})
    bomb = gzip.compress(b"a" * (50 << 20))
    ran = parse({"a.txt.gz": bomb, "b.txt": b"kept", "c.json.gz": bomb}, job)
    assert ran.texts == ["kept"]
    assert [d["error"] for d in ran.dead] == ["DocumentTooCostly"] * 2


def test_settings_of_stored_text() -> None:
    clean = {
        "stored_text": {"lower_case": True, "unicode": "none"},
        "normalization": {"remove_control_chars": False},
    }
    (doc,) = parse({"a.txt": "É e\u0301 \x07\x00".encode()}, settings(clean=clean)).docs
    assert doc["text"] == "é e\u0301 \x07"


def test_fingerprint_names_what_shapes_output() -> None:
    def of(**sections: Any) -> dict[str, Any]:
        made = dict(ParseStep(settings(**sections), InlineGuard(wire.handle)).fingerprint())
        return dict(json.loads(json.dumps(made)))

    plain = of()
    assert plain["libraries"].keys() == {"Resiliparse", "pypdfium2", "pyyaml"}
    assert plain["unicode"]
    assert of(sources=[{"path": "x", "source_id": "s"}]) == plain
    assert of(ingest={"chunk_mb": 1}, run={"max_attempts": 1}) == plain
    changed = [
        of(sources=[{"path": "x", "source_id": "s", "html_extractor": "trafilatura"}]),
        of(clean={"on_too_long": "reject"}),
        of(clean={"stored_text": {"unicode": "none"}}),
        of(clean={"boilerplate_filter": {"max_text_len": 1000}}),
        of(parse={"cpu_seconds": 1}),
    ]
    assert all(c != plain for c in changed)
    assert "trafilatura" in changed[0]["libraries"]


class FailingGuard:
    """Fails the requests that name a word, as a child does that breaks its limits."""

    def run(
        self, requests: Sequence[Sequence[bytes]], ask: Callable[[], None]
    ) -> list[bytes | DocumentError]:
        return [
            DocumentTooCostly("too much")
            if b"costly" in b"".join(r)
            else wire.handle(memoryview(b"".join(r)))
            for r in requests
        ]


def test_a_costly_document_costs_no_neighbour() -> None:
    files = {f"{i}.html": f"<p>page {'costly' if i == 1 else 'fine'} {i}</p>".encode() for i in range(3)}
    ran = parse(files, guard=FailingGuard())
    assert [d["path"] for d in ran.docs] == ["0.html", "2.html"]
    assert (ran.dead[0]["error"], ran.dead[0]["parser"]) == ("DocumentTooCostly", html.PARSER.label)


def test_whatever_a_library_raises_is_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise KeyError("deep inside")

    monkeypatch.setattr("resiliparse.extract.html2text.extract_plain_text", fails)
    ran = parse({"a.html": b"<p>x</p>", "b.txt": b"kept"})
    assert ran.dead[0]["message"] == "KeyError: 'deep inside'"
    assert ran.texts == ["kept"]


@pytest.mark.crash
def test_the_real_child_gives_the_same_rows() -> None:
    files = {
        **FILES,
        "deep.html": (CASES / "html/deep.html").read_bytes(),
        "x.pdf": b"%PDF-1.4\nrubbish",
        "zh.html": (CASES / "html/zh_gbk.html").read_bytes(),
    }
    with ParseGuard(wire.TARGET, 10, 512, wire.preload(())) as guard:
        child = parse(files, guard=guard)
    assert rows(child) == rows(parse(files))
    assert any(d["parser"] == pdf.PARSER.label for d in child.dead)


@pytest.mark.parametrize("path", ["a.jsonl", "a.parquet"])
def test_a_changed_part_is_never_taken(path: str) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": [f"row {i}" for i in range(8)]}), sink, row_group_size=2)
    data = JSONL if path == "a.jsonl" else sink.getvalue()
    start, end = (len(JSONL.split(b"\n")[0]) + 1, -1) if path == "a.jsonl" else (1, 3)
    extra = {path: {"start": start, "end": end}}
    good = parse(FakeSide({path: data}, extra=extra))
    assert good.texts == [f"row {i}" for i in (range(1, 7) if path == "a.jsonl" else range(2, 6))]
    extra[path]["sha256"] = "0" * 64
    with pytest.raises(SourceChanged):
        parse(FakeSide({path: data}, extra=extra))


def test_the_first_bytes_of_a_part_tell_no_codec() -> None:
    data = b'{"text": "a"}\nBZh is no bzip2 here\n{"text": "b"}\n'
    ran = parse(FakeSide({"a.jsonl": data}, extra={"a.jsonl": {"start": 14, "end": -1}}))
    assert ran.texts == ["b"]
    assert (ran.dead[0]["level"], ran.dead[0]["position"]) == ("document", 14)
