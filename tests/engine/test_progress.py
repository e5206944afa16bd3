"""Totals survive a pause: through JSON and back they go on as if nothing had happened."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops import schema
from dataflow_ops.engine.progress import Totals
from dataflow_ops.values import Counts, StepResult

names = st.text(min_size=1, max_size=6)
numbers = st.integers(0, 10**12)
counts = st.builds(
    Counts, numbers, numbers, numbers, numbers, st.dictionaries(names, numbers, max_size=3), numbers, numbers
)
letters = st.fixed_dictionaries(
    {
        "level": st.sampled_from(["document", "file"]),
        "source_id": names,
        "path": names,
        "position": st.integers(-1, 2**40),
        "doc_id": st.none() | st.binary(min_size=16, max_size=16),
        "error": names,
        "message": st.text(max_size=20),
        "parser": st.none() | names,
        "media_type": st.none() | names,
        "host": st.none() | names,
    }
)


@st.composite
def results(draw: st.DrawFn) -> StepResult:
    rows = draw(st.lists(letters, max_size=3))
    known = [{k: v for k, v in row.items() if k in schema.DEAD.names} for row in rows]
    dead = pa.Table.from_pylist(known, schema=schema.DEAD)
    return StepResult(
        {"dead": dead},
        draw(counts),
        draw(st.dictionaries(names, numbers, max_size=3)),
        draw(st.dictionaries(names, st.floats(0, 1e9), max_size=3)),
    )


@given(st.lists(results(), max_size=4), st.lists(results(), max_size=4))
def test_cut_anywhere(first: list[StepResult], second: list[StepResult]) -> None:
    straight, paused = Totals(), Totals()
    for result in first:
        straight.add(result)
        paused.add(result)
    paused = Totals.from_json(json.loads(json.dumps(paused.as_json())))
    for result in second:
        straight.add(result)
        paused.add(result)
    assert paused == straight
    assert paused.dead("parse") == straight.dead("parse")
    assert all(letter.step == "parse" for letter in paused.dead("parse"))
