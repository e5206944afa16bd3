"""What the tests of augmentation share: samples in a database, a template, a run against a model server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import sqlalchemy as sa

from dataflow_ops.clients.openai_api import OpenAiApi
from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.samples.augment.run import Ended, ask_for_task, run_augment
from dataflow_ops.samples.augment.tally import Tally
from dataflow_ops.samples.augment.template_file import parse_template
from dataflow_ops.samples.augment.templates import Template
from dataflow_ops.samples.running import LEASE_S
from dataflow_ops.state.sample_tables import dataset_file, generation, generation_failure, sample
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.store import SampleStore
from tests.samples.augment.model_server import ModelServer

RAW: Mapping[str, Any] = {
    "name": "better",
    "kind": "rewrite",
    "messages": [
        {"role": "system", "content": "You improve answers."},
        {"role": "user", "content": "{{before}}\n\nImprove this answer:\n{{turn}}"},
    ],
    "model": "test-model",
    "parameters": {"temperature": 0.7, "max_tokens": 50},
    "endpoint": {"back_off_s": 0.01, "read_s": 2, "total_s": 4, "tries": 6},
    "limits": {"concurrency": 4},
}


def template(**changes: Any) -> Template:
    """:data:`RAW` with other values; a mapping is merged into the one that is there."""
    raw = dict(RAW)
    for name, value in changes.items():
        there = raw.get(name)
        raw[name] = {**there, **value} if isinstance(there, dict) and isinstance(value, dict) else value
    return parse_template(raw, "test.yaml")


def put_samples(store: SampleStore, dialogues: int, file: str = "f1", first_id: int = 1) -> None:
    """Dialogues of a question and an answer, in one file of data set ``chat``."""
    with store.write() as connection:
        connection.execute(
            sa.insert(dataset_file).values(
                id=file,
                dataset="chat",
                path=f"{file}.jsonl",
                format="messages",
                sha256="ab",
                size=1,
                records=dialogues,
                rows=2 * dialogues,
                refused=0,
                status="READY",
                created_at=first_id,
                updated_at=0.0,
            )
        )
        connection.execute(
            sa.insert(sample),
            [
                {
                    "id": first_id + 2 * number + turn,
                    "dataset_file_id": file,
                    "row_identifier": number,
                    "turn_taking": turn,
                    "data_role": ("user", "assistant")[turn],
                    "data_content": f"{('question', 'answer')[turn]} {number} 问 of {file}",
                    "data_length": 10,
                    "data_meta": None,
                    "status": "NEW",
                    "created_at": 0.0,
                    "updated_at": 0.0,
                }
                for number in range(dialogues)
                for turn in range(2)
            ],
        )


class Heard:
    """Hears of a run, and may do something whenever it moves."""

    def __init__(self, on_move: Callable[[Tally], None] = lambda tally: None) -> None:
        self.notes: list[str] = []
        self.total = 0
        self._on_move = on_move

    def begins(self, task: SampleTask, tally: Tally, total: int) -> None:
        self.total = total

    def moved(self, tally: Tally) -> None:
        self._on_move(tally)

    def note(self, message: str) -> None:
        self.notes.append(message)


def run(
    store: SampleStore,
    server: ModelServer,
    wanted: Template | None = None,
    hears: Heard | None = None,
    task_id: str | None = None,
    lease_s: float = LEASE_S,
) -> Ended:
    """Run the task of a template on data set ``chat`` against a server, once."""
    wanted = wanted or template()
    task = ask_for_task(store, wanted, "chat", "ann", task_id)
    watch = PauseWatch(store, task.task_id, "chat", interval_s=0.001)
    with httpx.Client() as http:
        api = OpenAiApi(http, server.url, "", wanted.endpoint.patience)
        return run_augment(store, task, wanted, api, watch, hears or Heard(), lease_s=lease_s)


def rows(store: SampleStore, table: sa.Table, *where: sa.ColumnElement[bool]) -> list[dict[str, Any]]:
    """Rows of a table, by its primary key."""
    with store.read() as connection:
        query = sa.select(table).where(*where).order_by(*table.primary_key.columns)
        return [dict(row) for row in connection.execute(query).mappings()]


def answers(store: SampleStore) -> list[dict[str, Any]]:
    return rows(store, generation)


def queue(store: SampleStore, *states: str) -> list[dict[str, Any]]:
    where = [generation_failure.c.state.in_(states)] if states else []
    return rows(store, generation_failure, *where)


def check_each_has_one(store: SampleStore, ids: set[int], draws: int = 1) -> None:
    """Each sample and draw has exactly one result or one entry in the queue; no result is empty."""
    ended = [(row["sample_id"], row["draw"]) for row in answers(store)]
    ended += [(row["sample_id"], row["draw"]) for row in queue(store, "OPEN", "REQUEUED", "DROPPED")]
    assert sorted(ended) == sorted((sample_id, draw) for sample_id in ids for draw in range(draws))
    assert all(row["answer"].strip() for row in answers(store))


def check_counts(store: SampleStore, ended: Ended) -> None:
    """The counts of a task are the sums over its rows."""
    task = store.sample_task(ended.task_id)
    mine, failed = answers(store), queue(store)
    last = [row for row in failed if row["state"] not in ("SOLVED", "REPLACED")]
    assert task.counts["answered"] == len(mine)
    assert task.counts["failed"] == len(last)
    for name in ("prompt_tokens", "completion_tokens", "lost_tokens"):
        assert task.counts[name] == sum(row[name] for row in [*mine, *failed]), name


def prompts(server: ModelServer) -> list[str]:
    """What the server was asked, as JSON, each request once."""
    return sorted({json.dumps(call.body, sort_keys=True) for call in server.calls})
