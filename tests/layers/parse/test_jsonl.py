from __future__ import annotations

import bz2
import gzip
import io
import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataflow_ops import media
from dataflow_ops.layers.parse.readers.jsonl import lines
from dataflow_ops.ranges import cuts
from tests.layers.parse.harness import FakeSide, parse, settings

RECORDS = st.lists(
    st.one_of(
        st.text(max_size=30).map(lambda t: json.dumps({"text": t}, ensure_ascii=False).encode()),
        st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")),
        st.just(b""),
    ),
    max_size=12,
)  # fmt: skip


@given(st.lists(st.binary(max_size=9)), st.integers(1, 12), st.integers(0, 20))
def test_lines_do_not_depend_on_blocks(parts: list[bytes], block: int, limit: int) -> None:
    data = b"\n".join(parts)
    got = list(lines((data[i : i + block] for i in range(0, len(data), block)), limit))
    whole = data.split(b"\n")
    if whole[-1] == b"":
        whole.pop()
    at, expected = 0, []
    for line in whole:
        expected.append((at, line if len(line) <= limit else None, len(line)))
        at += len(line) + 1
    assert got == expected


@example([b"\xfe\xff", b'{"text": "0"}'], 1, False)
@given(RECORDS, st.integers(1, 200), st.booleans())
def test_any_cut_into_parts_gives_every_record_once(parts: list[bytes], limit: int, final: bool) -> None:
    data = b"\n".join(parts) + (b"\n" if final else b"")
    whole = parse({"a.jsonl": data})
    bounds = [*cuts(io.BytesIO(data), "a.jsonl", media.JSONL, len(data), limit), -1]
    docs, dead = [], []
    for start, end in pairwise(bounds):
        ran = parse(FakeSide({"a.jsonl": data}, extra={"a.jsonl": {"start": start, "end": end}}))
        docs += ran.docs
        dead += ran.dead
    assert docs == whole.docs
    assert dead == whole.dead


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "a", "text": "b"}', "'text' occurs twice"),
        (b'{"text": "a", "m": {"k": 1, "k": 2}}', "'k' occurs twice"),
        (b"[1, 2]", "an array"),
        (b'"text"', "a string"),
        (b"null", "null"),
        (b'{"text": "a"} x', "not valid JSON"),
        (b'{"text": "a', "not valid JSON: Unterminated string starting at character 9"),
        (b'{"text": ["a"]}', "must be a string, not an array"),
        (b'{"text": true}', "true or false"),
        (b'{"body": "a"}', "no key 'text'; the record has: body"),
        (b'{"text": null}', "is null"),
        (b'{"text": "a", "n": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
        (b'{"text": "a", "n": ' + b"9" * 5000 + b"}", "more than 4,300 digits: write it as a string"),
        (b'{"text": "\xff"}', "not UTF-8: byte 0xff at offset 10"),
    ],
)
def test_each_fault_is_isolated_with_its_reason(line: bytes, message: str) -> None:
    ran = parse({"a.jsonl": b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n'})
    assert ran.texts == ["before", "after"]
    (dead,) = ran.dead
    assert message in dead["message"]
    assert dead["position"] == 19


def test_metadata_is_sorted_json_and_always_valid() -> None:
    line = b'{"z": 1e999, "text": "t", "a": "\\ud800x\\u0000", "n": [NaN, -Infinity, 1], "id": 7, "url": "http://H.test/"}'
    (doc,) = parse({"a.jsonl": line}).docs
    assert doc["metadata"] == '{"a":"\ufffdx","n":[null,null,1],"z":null}'
    assert doc["repairs"] == "surrogate,nul,nan"
    assert (doc["source_record_id"], doc["url"]) == ("7", "http://H.test/")


def test_dead_letters_carry_the_host_of_the_record() -> None:
    (dead,) = parse({"a.jsonl": b'{"text": 1, "url": "https://Example.test:8080/x"}'}).dead
    assert (dead["host"], dead["parser"]) == ("example.test", "record@1")


def test_other_field_names() -> None:
    job = settings(
        sources=[
            {"path": "x", "source_id": "s", "text_field": "body", "id_field": "key", "url_field": "link"}
        ]
    )
    side = FakeSide({"a.jsonl": b'{"body": "b", "key": "k", "link": "http://l/", "text": 1}'}, source_id="s")
    (doc,) = parse(side, job).docs
    assert (doc["text"], doc["source_record_id"], doc["url"], doc["metadata"]) == (
        "b",
        "k",
        "http://l/",
        '{"text":1}',
    )


def test_a_line_above_the_limit_is_isolated() -> None:
    job = settings(parse={"max_document_mb": 0.001})
    ran = parse({"a.jsonl": b'{"text": "a"}\n{"text": "' + b"x" * 5000 + b'"}\n{"text": "b"}'}, job)
    assert ran.texts == ["a", "b"]
    assert ran.dead[0]["error"] == "DocumentTooCostly"
    assert ran.dead[0]["position"] == 14


def test_utf16_is_said() -> None:
    ran = parse({"a.jsonl": '{"text": "a"}\n'.encode("utf-16"), "b.jsonl": b'{"text": "b"}'})
    assert ran.dead[0]["error"] == "UnreadableFile"
    assert ran.texts == ["b"]


def test_json_files() -> None:
    ran = parse(
        {
            "array.json": b'[{"text": "a"}, 7, {"text": "b"}]',
            "lines.json": b'{"text": "c"}\n{"text": "d"}\n',
            "object.json": b'{"text": "e"}',
            "broken.json": b"[1,",
            "empty.json": b" \n",
        }
    )
    assert ran.texts == ["a", "b", "c", "d", "e"]
    assert [d["path"] for d in ran.dead] == ["array.json", "broken.json"]
    assert [d["position"] for d in ran.docs] == [0, 2, 0, 14, 0]


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("harm", ["checksum", "end mark cut"])
def test_rows_before_damage_are_kept(
    suffix: str, pack: Callable[[bytes], bytes], members: int, harm: str
) -> None:
    texts = [f"A sentence about the gauge, number {i}." for i in range(60)]
    rows = [json.dumps({"text": text}).encode() + b"\n" for text in texts]
    share = len(rows) // members
    stored = b"".join(pack(b"".join(rows[i : i + share])) for i in range(0, len(rows), share))
    damaged = stored[:-4] + bytes([stored[-4] ^ 0x55]) + stored[-3:] if harm == "checksum" else stored[:-3]
    ran = parse({f"a.jsonl.{suffix}": damaged})
    assert ran.texts == texts
    (dead,) = ran.dead
    assert (dead["level"], dead["position"]) == ("file", len(b"".join(rows)))
    assert dead["error"] == ("UnreadableFile" if harm == "checksum" else "TruncatedFile")
