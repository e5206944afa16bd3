import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.lines import COLUMNS, line_shape

LINES = [
    *[
        "",
        "  ",
        "- item",
        "- item;",
        "-x",
        "• 项",
        "A line.",
        "A line.",
        'said "so."',
        "wait...",
        "等…",
        "。",
        "f(x):",
    ],
    *[
        "  if (a) {",
        "}",
        "x = 1;",
        "a | b | c",
        "a\tb\tc",
        "plain",
        "a line that is longer than thirty characters",
    ],
]
LINE = st.sampled_from(LINES)
TEXT = st.lists(LINE, max_size=30).map("\n".join)
STOPS = ".!?…。！？"


def oracle(text):
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    raw = [line for line in text.split("\n") if line.strip()]
    seen, repeated = set(), []
    for line in lines:
        if line in seen:
            repeated.append(line)
        seen.add(line)
    return {
        "lines": len(lines),
        "chars": sum(map(len, lines)),
        "ended": sum(line[-1] in STOPS or (line[-1] == '"' and line[-2:-1] in [*STOPS]) for line in lines),
        "ellipsis": sum(line.endswith(("...", "…")) for line in lines),
        "bullet": sum(line[:2] in ("- ", "• ") for line in lines),
        "short": sum(len(line) < 30 for line in lines),
        "code": sum(line.endswith((";", "{", "}", "):")) and line[:2] not in ("- ", "• ") for line in lines),
        "cells": sum(line.count("|") + line.count("\t") >= 2 for line in raw),
        "repeated": len(repeated),
        "repeated_chars": sum(map(len, repeated)),
        "brace": sum("{" in line for line in lines),
    }


@settings(deadline=None)  # the first call compiles
@given(st.lists(TEXT, min_size=1, max_size=4))
def test_shape_equals_a_plain_count(texts):
    most = max(text.count("\n") for text in texts)
    found = line_shape(*string_buffers(pa.array(texts, pa.large_string())), most)
    for text, row in zip(texts, found, strict=True):
        assert dict(zip(COLUMNS, row.tolist(), strict=True)) == oracle(text)
