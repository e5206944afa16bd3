"""A home with samples, and tasks on them in every state that a page may show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataflow_ops.console.sample_desk import SampleDesk
from dataflow_ops.console.sample_pace import Pace
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.samples.generations import Asked, Usage, record_answer, record_failure
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore
from tests.samples.augment.augment_case import template
from tests.samples.cleaning.table import fill

TALK = [("user", "how much?"), ("assistant", "much")]


@contextmanager
def opened(folder: Path, pace: Pace | None = None) -> Iterator[SampleDesk]:
    """A desk over a home of its own with ten dialogues in two files of data set ``d``."""
    home = open_home(folder / "home")
    with SampleStore(home.state_url) as store:
        fill(store, {"f1": [TALK] * 6, "f2": [TALK] * 4})
        yield SampleDesk(home, store, pace or Pace())


def augmenting(store: SampleStore, task_id: str = "aug", owner: str = "other:1") -> Claim:
    """An augmentation that somebody works on; two questions are answered, three failed."""
    wanted = template()
    settings = {"template": wanted.deciding, "prompt_version": wanted.prompt_version}
    store.create_task(task_id, "d", "augment", settings, ["f1", "f2"], "ann")
    claim = store.claim_task(task_id, owner)
    with store.write() as connection:
        for number in range(2):
            record_answer(
                connection,
                store.db,
                task_id,
                asked(number),
                "better",
                "replacement",
                None,
                Usage(10, 5, 0.5),
                1.0,
            )
        for number, error in ((2, "EmptyAnswer"), (3, "EmptyAnswer"), (4, "EndpointAway")):
            record_failure(
                connection, store.db, task_id, asked(number), error, f"why {number}", "raw", Usage(), 3
            )
    with store.write() as connection:
        counts = {"answered": 2, "failed": 3, "prompt_tokens": 20, "completion_tokens": 10, "cost": 1.0}
        store.progress(connection, claim, CursorRecord("f1", 5, 5, {}), counts)
    return claim


def asked(number: int) -> Asked:
    """A question about the answer of a dialogue of the first file."""
    prompt = [{"role": "user", "content": f"improve {number}\u2028"}]
    key = f"{number:064x}"
    return Asked(
        key, None, 2 * number + 2, "f1", number, 1, 0, "better", "v", "test-model", prompt, {"max_tokens": 5}
    )
