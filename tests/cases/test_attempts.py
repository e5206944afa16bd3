"""Two attempts of one task at once: one published artifact, and the loser is told that its lease is lost."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dataflow_ops.cli.console import ConsoleReporter
from dataflow_ops.engine.context import RunContext
from dataflow_ops.engine.inputs import plan_step
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.engine.worker import Worker
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.session import Session, create_run
from dataflow_ops.state.store import StateStore
from dataflow_ops.values import Numbers, TaskSpec
from tests.cases.product import CASES, Product


@dataclass
class Taken:
    """At one point of the first attempt its lease ends, and another attempt begins and takes its time."""

    point: str
    context: RunContext
    spec: TaskSpec

    def reached(self, point: str) -> None:
        if point == self.point:
            with StateStore(self.context.state_url) as state:
                state.expire_leases(state.records([self.spec.key])[self.spec.key].owner or "")
                assert state.claim(self.spec.key, "elsewhere", 60.0, 3) is not None


@dataclass
class Overtaken:
    """At one point of the first attempt its lease ends, and a whole second attempt is run."""

    point: str
    context: RunContext
    spec: TaskSpec
    numbers: Numbers
    second: list[TaskOutcome] = field(default_factory=list)

    def reached(self, point: str) -> None:
        if point != self.point or self.second:
            return
        with StateStore(self.context.state_url) as state:
            state.expire_leases(state.records([self.spec.key])[self.spec.key].owner or "")
        with Worker(self.context, build_steps) as worker:
            self.second.append(worker.run(self.spec, self.numbers))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A run whose chunk is fetched, and whose parse task waits."""
    source = {"source_id": "a", "kind": "jsonl", "path": f"{CASES}/jsonl/b*.jsonl"}
    product = Product(tmp_path, [source])
    settings = load_job(product.job)
    home = open_home(product.home)
    run_id = create_run(home, settings, "full")
    with Session(home, run_id, 0, ConsoleReporter(quiet=True), discover=True) as session:
        session.state.set_run_state(run_id, "RUNNING", "")
        session.discover()
        session.driver.run_step("fetch")
        yield session


@pytest.mark.parametrize("point", ["before publish parse", "after publish parse", "before commit parse"])
def test_the_slower_attempt_loses(session: Session, point: str) -> None:
    state, context, numbers = session.state, session.context, session.driver.numbers()
    (chunk,) = session.driver.chunk_ids()
    (spec,) = plan_step(session.steps["parse"], [chunk], session.driver.index, numbers, [])
    state.enqueue(context.run_id, [spec])
    hook = Overtaken(point, context, spec, numbers)
    with Worker(replace(context, hooks=hook), build_steps) as worker:
        first = worker.run(spec, numbers)
    assert first.ending == "busy"
    assert first.message.startswith("LeaseLost")
    (second,) = hook.second
    assert second.ending == "done"
    record = state.records([spec.key])[spec.key]
    assert (record.state, record.epoch) == ("SUCCESS", 2)
    # One artifact of each kind, each as recorded, and no letter or count twice.
    files = sorted((session.home.root / "data/parse").rglob("*.*"))
    assert [str(f.relative_to(session.home.root)) for f in files] == sorted(o.uri for o in record.outputs)
    assert {o.kind for o in record.outputs} == {"text", "rejects", "dead"}
    for output in record.outputs:
        assert hashlib.sha256((session.home.root / output.uri).read_bytes()).hexdigest() == output.sha256
    assert sum(state.count_dead_letters("error", run_id=context.run_id).values()) == 2
    assert state.metrics_of_run(context.run_id)["parse"].counts.dead == 2
    # Whoever comes third finds it done.
    with Worker(context, build_steps) as worker:
        assert worker.run(spec, numbers).ending == "skipped"


@pytest.mark.parametrize("point", ["before publish parse", "before commit parse"])
def test_a_late_attempt_commits_nothing_while_another_is_at_work(session: Session, point: str) -> None:
    state, context, numbers = session.state, session.context, session.driver.numbers()
    (chunk,) = session.driver.chunk_ids()
    (spec,) = plan_step(session.steps["parse"], [chunk], session.driver.index, numbers, [])
    state.enqueue(context.run_id, [spec])
    with Worker(replace(context, hooks=Taken(point, context, spec)), build_steps) as worker:
        first = worker.run(spec, numbers)
    assert (first.ending, first.message.partition(":")[0]) == ("busy", "LeaseLost")
    record = state.records([spec.key])[spec.key]
    assert (record.state, record.epoch, record.outputs) == ("RUNNING", 2, ())
    assert state.count_dead_letters("error", run_id=context.run_id) == {}
    # The other one dies; whoever takes over adopts what the first had published, byte for byte.
    state.expire_leases("elsewhere")
    before = {f: f.stat().st_ino for f in (session.home.root / "data/parse").rglob("*.*")}
    with Worker(context, build_steps) as worker:
        assert worker.run(spec, numbers).ending == "done"
    after = {f: f.stat().st_ino for f in (session.home.root / "data/parse").rglob("*.*")}
    assert len(after) == 3
    assert before.items() <= after.items()
