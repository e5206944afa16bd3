"""What every parser in the table promises, whatever it is given."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.errors import DocumentError
from dataflow_ops.layers.parse import wire
from dataflow_ops.layers.parse.parsers import BY_NAME
from dataflow_ops.layers.parse.parsers.base import Hints, ParsedDocument, Parser

PIECES = [
    b"<p>",
    b"</div>",
    b"<a href='",
    b"```\n",
    b"---\n",
    b"a: 1\n",
    b"%PDF-1.4\n",
    b"\xd6\xd0",
    b"\xff\xfe",
    b"\x00",
]
DATA = st.binary(max_size=200) | st.lists(
    st.sampled_from(PIECES) | st.text(max_size=9).map(str.encode), max_size=12
).map(b"".join)
HINTS = st.builds(
    Hints,
    path=st.sampled_from(["a.html", "b.rst", "vendor/c.min.js", "http://x/", ""]),
    charset=st.sampled_from(["", "gbk", "utf-8", "no-such"]),
    main_content=st.booleans(),
)


def outcome(parser: Parser, data: bytes, hints: Hints) -> ParsedDocument | tuple[str, str]:
    try:
        return parser.parse(data, hints)
    except DocumentError as e:
        return type(e).__name__, str(e)


@pytest.mark.parametrize("name", sorted(BY_NAME))
class TestEveryParser:
    @settings(max_examples=60, deadline=None)
    @given(data=DATA, hints=HINTS)
    def test_gives_a_document_or_a_document_error_and_always_the_same(
        self, name: str, data: bytes, hints: Hints
    ) -> None:
        parser = BY_NAME[name]
        first = outcome(parser, data, hints)
        parser.parse(b"something else in between", hints) if name != "pdf" else None
        assert outcome(parser, data, hints) == first

    @settings(max_examples=60, deadline=None)
    @given(data=DATA, hints=HINTS)
    def test_survives_the_wire(self, name: str, data: bytes, hints: Hints) -> None:
        direct = outcome(BY_NAME[name], data, hints)
        message = memoryview(b"".join(wire.request(name, hints, data)))
        answer = wire.answered(wire.handle(message))
        if isinstance(answer, DocumentError):
            assert (type(answer).__name__, str(answer)) == direct
        elif name != "markdown":  # dates and numbers as keys become text on the way
            assert answer == direct

    def test_is_named_and_versioned(self, name: str) -> None:
        parser = BY_NAME[name]
        assert re.fullmatch(r"[a-z][a-z_]*@[1-9]\d*", parser.label)
        assert parser.name == name
        assert all(map(version, parser.libraries))
