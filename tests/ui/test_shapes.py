"""What the routes of the run tab answer has the keys that its pages read."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from dataflow_ops.state.tables import dead_letter
from tests.ui.conftest import Ui

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(280)]

Shape = dict[str, Any]

STEP: Shape = dict.fromkeys(
    (
        "step",
        "tasks",
        "done",
        "running",
        "paused",
        "failed",
        "dead",
        "in",
        "kept",
        "rejected",
        "dead_documents",
        "left_out",
        "seconds",
    )
)
LAYER: Shape = {
    "layer": None,
    "steps": [STEP],
    **dict.fromkeys(
        (
            "state",
            "tasks",
            "done",
            "in",
            "kept",
            "removed",
            "removed_share",
            "parts",
            "documents_per_s",
            "tokens_per_s",
            "previous",
            "change",
        )
    ),
}
RUN: Shape = {
    **dict.fromkeys(
        (
            "run",
            "dataset",
            "mode",
            "state",
            "detail",
            "urgent",
            "dag_gone",
            "until",
            "data_date",
            "started_at",
            "ended_at",
            "updated_at",
            "layer_tasks",
            "layer_done",
            "layer",
            "progress",
            "run_progress",
            "complete",
            "eta",
            "documents_per_s",
            "tokens_per_s",
            "tokens_estimated",
            "pause",
            "tasks",
            "workers",
            "version",
            "current",
            "report",
            "previous_run",
        )
    ),
    "decisions": [dict.fromkeys(("kind", "count", "version", "reasons"))],
    "cli": dict.fromkeys(("pause", "resume", "cancel", "urgent", "status", "letters", "approve", "report")),
}
FAILURE: Shape = dict.fromkeys(("name", "failed", "documents", "share"))
SHAPES: dict[str, Shape] = {
    "me": dict.fromkeys(("user", "read", "text", "act")),
    "run": RUN,
    "run/layers": {"layers": [LAYER], "complete": None, "previous_run": None, "at": None},
    "run/where": {
        "running": [],
        "slowest": [dict.fromkeys(("step", "partition", "source", "seconds", "documents"))],
        "failures": {
            "parser": [FAILURE],
            "host": [],
            "media_type": [FAILURE],
            "chunks": None,
            "of_chunks": None,
        },
        "error_tasks": [],
        "complete": None,
    },
    "run/removed": {
        "rules": [dict.fromkeys(("rule", "layer", "hits"))],
        "documents": [
            {
                **dict.fromkeys(
                    (
                        "doc_id",
                        "source",
                        "path",
                        "url",
                        "step",
                        "rule",
                        "value",
                        "low",
                        "high",
                        "detail",
                        "snippet",
                        "match",
                        "length",
                        "survivor",
                        "similarity",
                        "survivor_path",
                        "enough",
                        "review",
                    )
                ),
                "rule_text": {"en": None, "zh": None},
            }
        ],
        "complete": None,
        "cli": None,
    },
    "run/reviews": {"keep": None, "drop": None, "by_rule": []},
    "run/letters": {
        "groups": [
            {
                **dict.fromkeys(("error", "step", "layer", "level", "count", "parser", "messages")),
                "example": dict.fromkeys(("source", "path", "message")),
                "states": dict.fromkeys(("open", "retried", "dropped")),
            }
        ],
        "complete": None,
        "cli": None,
    },
    "run/letters/group": {
        "letters": [
            {
                **dict.fromkeys(("id", "source", "path", "position", "message", "state")),
                "cli": dict.fromkeys(("retry", "drop")),
            }
        ],
        "next": None,
    },
    "run/parameters": {"previous": None, "rows": [dict.fromkeys(("key", "value", "previous", "changed"))]},
}
"""Route → its keys; an empty list: whatever may be in it is told by tests of the read model."""


def differences(found: Any, shape: Any, where: str) -> list[str]:
    """Where an answer and a shape have other keys."""
    if isinstance(shape, dict):
        if not isinstance(found, dict) or set(found) != set(shape):
            return [f"{where}: {sorted(found) if isinstance(found, dict) else found} != {sorted(shape)}"]
        return [line for key in shape for line in differences(found[key], shape[key], f"{where}.{key}")]
    if isinstance(shape, list) and shape:
        return [line for one in found for line in differences(one, shape[0], f"{where}[]")] or (
            [] if found else [f"{where}: empty, so that nothing was looked at"]
        )
    return []


@pytest.mark.parametrize("path", SHAPES)
def test_every_answer_has_the_keys_that_the_page_reads(ui: Ui, path: str) -> None:
    with ui.state() as state, state.db.write() as connection:
        # Other tests may have answered the run's dead letter, which here is to wait for somebody.
        connection.execute(sa.update(dead_letter).values(state="open"))
    asked = {"run": ui.run, "error": "MalformedRecord", "step": "parse"}
    answer = ui.get("admin", f"/api/{path}", **asked)
    while not answer.json().get("complete", True):
        answer = ui.get("admin", f"/api/{path}", **asked)
    assert answer.status_code == 200, answer.text
    assert differences(answer.json(), SHAPES[path], path) == []


def test_every_reading_route_of_the_tab_has_a_shape(ui: Ui) -> None:
    mine = {path for method, path in ui.routes if method == "GET" and path.startswith("/api/run")}
    assert {f"/api/{path}" for path in SHAPES} | {"/api/run/report"} >= mine


@pytest.mark.parametrize("path", ["run/pause", "run/resume"])
def test_an_action_answers_with_the_run_as_it_is_then(ui: Ui, path: str) -> None:
    found = ui.post("admin", f"/api/{path}", run=ui.live).json()
    assert set(found) == set(RUN)
    if path == "run/pause":
        shape = ("scope", "target", "who", "why", "since", "tasks_paused", "tasks_open")
        assert set(found["pause"]) == set(shape)
