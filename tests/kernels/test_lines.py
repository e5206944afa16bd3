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
SIGNS = st.text(' \t\n|{}.;:)"-•。中é…\u3000a\u00a0\x0b', max_size=120)
TEXT = st.one_of(st.lists(LINE, max_size=30).map("\n".join), SIGNS)
STOPS = ".!?…。！？"


def oracle(text):
    raw = [line for line in text.split("\n") if line.strip()]
    lines = [line.strip() for line in raw]
    tails = ["".join(line.split())[-3:] for line in lines]  # white space between them does not count
    bullets = [line[0] in "-•" and len(line) > 1 and line[1].isspace() for line in lines]
    seen, repeated = set(), []
    for line in lines:
        if line in seen:
            repeated.append(line)
        seen.add(line)
    return {
        "lines": len(lines),
        "chars": sum(map(len, lines)),
        "ended": sum(t[-1] in STOPS or (t[-1] in '")' and t[-2:-1] in [*STOPS]) for t in tails),
        "ellipsis": sum(t[-1] == "…" or t == "..." for t in tails),
        "bullet": sum(bullets),
        "short": sum(len(line) < 30 for line in lines),
        "code": sum(
            (t[-1] in ";{}" or t[-2:] == "):") and not b for t, b in zip(tails, bullets, strict=True)
        ),
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
