"""The diagrams for operators show exactly the machine's moves."""

from __future__ import annotations

import re
from pathlib import Path

from dataflow_ops.state.machine import RUN_MOVES, RUN_STATES, TASK_MOVES, TASK_STATES
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


def test_every_topic_is_listed_for_receivers() -> None:
    root = Path(__file__).parents[2]
    listed = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", (root / "docs" / "webhooks.md").read_text("utf-8")))
    written = {f"run.{state.lower()}" for state in RUN_STATES} | {
        f"task.{state.lower()}" for state in TASK_STATES
    }
    kinds = "run|task|version|pause|day|review|backfill|sample_task|generation_failure"
    for module in (root / "dataflow_ops" / "state").rglob("*.py"):
        text = module.read_text("utf-8")
        if re.search(r"\b(?:emit|emit_all|tell|tell_all)\(", text):
            written |= set(re.findall(rf'"((?:{kinds})\.[a-z_]+)"', text))
    assert len(written) > 30
    assert written - listed == set()
