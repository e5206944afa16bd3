"""The diagrams for operators show exactly the machine's moves."""

from __future__ import annotations

import re
from pathlib import Path

from dataflow_ops.state.machine import RUN_MOVES, TASK_MOVES
from dataflow_ops.state.tables import metadata

TEXT = (Path(__file__).parents[2] / "docs" / "state.md").read_text(encoding="utf-8")


def _moves(diagram: str) -> set[tuple[str, str, str]]:
    found = set()
    for state, after, label in re.findall(r"^\s+(\w+) --> (\w+): (.+)$", diagram, re.MULTILINE):
        for event in re.sub(r"\(.*\)", "", label).split(","):
            found.add((state, event.strip(), after))
    return found


def test_the_diagrams_are_the_machine() -> None:
    task, run = re.findall(r"```mermaid\n(.*?)```", TEXT, re.DOTALL)
    assert _moves(task) == {(s, e, a) for (s, e), a in TASK_MOVES.items()}
    # Taking up a run that is running already is said in words.
    assert _moves(run) == {(s, e, a) for (s, e), a in RUN_MOVES.items() if s != a}


def test_every_table_is_described() -> None:
    assert [name for name in metadata.tables if f"`{name}`" not in TEXT] == []
