import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.codemarks import COLUMNS, CONNECTIVES, STATEMENTS, code_marks

PIECES = [
    *[
        "\n",
        "\n\n",
        " ",
        "  ",
        "\t",
        "# ",
        "#include <x>",
        "#!/bin/sh",
        "// c",
        "/* c",
        "*/",
        "* item",
        "-- c",
        "--x",
    ],
    *[
        '"""',
        "'''",
        ">>>",
        ">> x",
        "@app",
        "@ x",
        "def",
        "returns",
        "SELECT",
        "for",
        "in",
        "x_1 = y2",
        "a.b",
        "(",
        ")",
    ],
    *[
        ");",
        "{",
        "}",
        "):",
        "x):",
        ",",
        "=",
        "\\",
        "&",
        ":",
        ".",
        "...",
        "don't",
        '"q"',
        "a中 b",
        "é ü",
        "中文",
        "\r\n",
    ],
]
TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)
BLANK = " \t\r\f\v"


def oracle(text):
    raw = text.encode()
    lines = [line for line in raw.split(b"\n") if line.strip(BLANK.encode())]
    bare = [line.strip(BLANK.encode()) for line in lines]
    firsts = [re.match(rb"#[#!/A-Za-z]{,19}|[A-Za-z]{,20}", line)[0].decode() for line in bare]
    comment = re.compile(rb"#[ !]|//|/\*|\*/|-- |\"\"\"|'''|>>>|@[A-Za-z]")
    count = lambda pattern: len(re.findall(pattern, raw))  # noqa: E731
    return {
        "gaps": count(rb"(?<=[A-Za-z\x80-\xff])[ \t\r\f\v]"),
        "mixed": count(rb"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]"),
        "attributes": count(rb"(?<=\.)[A-Za-z_]"),
        "underscores": count(rb"(?<=[a-z])_") + count(rb"(?<=_)[a-z]"),
        "assignments": count(rb"(?<=[\w \t\r\f\v])=") + count(rb"(?<==)[\w \t\r\f\v]"),
        "brackets": count(rb"[()\[\]{};]"),
        "quotes": count(rb"(?<![A-Za-z])[\"'`]"),
        "shouted": count(rb"(?<=[A-Z])[A-Z]"),
        "lines": len(lines),
        "indented": sum(bool(re.match(rb"[ \t\r\f\v]{2}|\t", line)) for line in lines),
        "statements": sum(word in STATEMENTS for word in firsts),
        "connectives": sum(word in CONNECTIVES for word in firsts),
        "comments": sum(bool(comment.match(line)) for line in bare),
        "closed": sum(line.endswith((b";", b"{", b"}", b"):")) for line in bare),
        "open": sum(
            line.endswith((b",", b"(", b"[", b"=", b"\\", b"&", b":")) and not line.endswith(b"):")
            for line in bare
        ),
        "stopped": sum(line.endswith(b".") for line in bare),
    }


@settings(deadline=None)  # the first call compiles
@given(st.lists(TEXT, min_size=1, max_size=4))
def test_marks_equal_a_plain_count(texts):
    most = max(text.count("\n") for text in texts)
    found = code_marks(*string_buffers(pa.array(texts, pa.large_string())), most)
    for text, row in zip(texts, found, strict=True):
        assert dict(zip(COLUMNS, row.tolist(), strict=True)) == oracle(text)


@pytest.mark.parametrize("text", ["x = [a_1.b];\n" * 500, "__" * 300, "=" * 1000, "_a" * 400])
def test_no_lane_overflows(text):
    found = code_marks(*string_buffers(pa.array([text], pa.large_string())), 500)[0]
    assert dict(zip(COLUMNS, found.tolist(), strict=True)) == oracle(text)


def test_words_are_in_one_list_only():
    assert not set(STATEMENTS) & set(CONNECTIVES)
    assert len(set(STATEMENTS)) == len(STATEMENTS)
    assert len(set(CONNECTIVES)) == len(CONNECTIVES)


def test_a_sliced_column_is_measured_from_its_own_start():
    column = pa.array(["if (x) {\n", "a_b\nc", "y;\n"], pa.large_string())
    whole = code_marks(*string_buffers(column), 2)
    np.testing.assert_array_equal(code_marks(*string_buffers(column.slice(1)), 2), whole[1:])
