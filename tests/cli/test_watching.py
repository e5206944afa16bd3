"""Several data sets in one home, runs that nobody works on any more, and Ctrl-C."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from dataflow_ops.engine.context import owner_name
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline import run as run_module
from dataflow_ops.pipeline.status import at_work
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import run, run_task, task
from tests.cli.conftest import Dataflow

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def two(home: Path, job: Path, tmp_path: Path, dataflow: Dataflow) -> Path:
    """A home with two data sets, the second the newer one."""
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    other = tmp_path / "other.yaml"
    other.write_text(
        f"dataset: {{id: other}}\nsources: [{{path: {job.parent}/rows, kind: jsonl}}]\n"
        "output: {version: t}\n"
    )
    dataflow("run", other, "--workers", 0, "--home", copy)
    return copy


def test_each_data_set_can_be_asked_for(dataflow: Dataflow, two: Path, job: Path) -> None:
    name = load_job(job).dataset.id
    runs = dataflow("runs", "--home", two, "--json").json
    # Other tests may have run the job again in the home that this one is a copy of.
    assert [row["dataset"] for row in runs] == ["other", *[name] * (len(runs) - 1)]
    assert len(runs) >= 2
    shown = dataflow("runs", "--limit", 1, "--home", two).out
    assert f"1 of {len(runs)} runs; --limit {len(runs)} shows all" in shown
    assert dataflow("status", "--home", two, "--json").json["dataset"] == "other"
    for command in (("status",), ("versions", "show")):
        found = dataflow(*command, "--dataset", name, "--home", two, "--json").json
        assert found["dataset"] == name
        wrong = dataflow(*command, "--dataset", "nope", "--home", two)
        assert (wrong.code, "data set 'nope'" in wrong.err) == (2, True)
    audited = dataflow("audit", "--dataset", name, "-n", 3, "--home", two, "--json")
    assert len(audited.json) == 3
    report = dataflow("report", "--dataset", name, "--home", two).out
    version = dataflow("versions", "show", "--dataset", name, "--home", two, "--json").json["version"]
    assert version in report
    start = version[:3]
    for command in (("report",), ("versions", "show"), ("versions", "verify"), ("versions", "rollback")):
        both = dataflow(*command, start, "--home", two)
        assert (both.code, "fits several versions" in both.err) == (1, True)
    both = dataflow("diff", start, version, "--home", two)
    assert (both.code, f"'{start}' fits several versions; there are" in both.err) == (1, True)


def test_letters_say_whose_they_are_and_how_many_are_not_shown(
    dataflow: Dataflow, two: Path, job: Path
) -> None:
    found = dataflow("dead-letters", "list", "--home", two, "--json").json
    assert found["total"] == sum(found["groups"].values()) == len(found["letters"]) >= 1
    assert {row["dataset"] for row in found["letters"]} <= {"other", load_job(job).dataset.id}
    wrong = dataflow("dead-letters", "list", "--error", "NoSuch", "--home", two)
    assert (wrong.code, f"there are {', '.join(found['groups'])}" in wrong.err) == (2, True)
    if found["total"] > 1:
        first = dataflow("dead-letters", "list", "--limit", 1, "--home", two).out
        assert f"1 of {found['total']} letters" in first
    back = dataflow("dead-letters", "retry", "--all", "--home", two).out
    assert "the next run of job '" in back


def test_a_csv_that_can_not_be_written_is_told(dataflow: Dataflow, home: Path, tmp_path: Path) -> None:
    said = dataflow("audit", "--csv", tmp_path / "none/a.csv", "--home", home)
    assert (said.code, "can't be written" in said.err) == (2, True)


def test_rows_of_every_step_add_up(dataflow: Dataflow, home: Path) -> None:
    for row in dataflow("status", "--home", home, "--json").json["steps"]:
        assert row["in"] == row["kept"] + row["rejected"] + row["dead_documents"] + row["left_out"], row
    shown = dataflow("status", "--home", home).out.splitlines()[1:]
    assert shown[0].split()[:2] == ["step", "tasks"]
    fates = dataflow("versions", "show", "--home", home, "--json").json["fates"]
    line = dataflow("versions", "show", "--home", home).out.split("fates")[1]
    assert int(line.split()[0].replace(",", "")) == sum(fates.values())


def test_a_run_that_nobody_works_on_says_so(dataflow: Dataflow, two: Path) -> None:
    run_id = dataflow("status", "--home", two, "--json").json["run"]
    engine = sa.create_engine(f"sqlite:///{two / 'state.db'}")
    of_parse = sa.select(run_task.c.task_key).where(run_task.c.run_id == run_id, run_task.c.step == "parse")
    held = sa.update(task).where(task.c.key.in_(of_parse))
    now = time.time()
    with engine.begin() as connection:
        connection.execute(sa.update(run).where(run.c.run_id == run_id).values(state="RUNNING"))
        connection.execute(held.values(state="RUNNING", owner="elsewhere:1:1", heartbeat_at=now - 80))
    sentence = dataflow("status", "--home", two, "--json").json["sentence"]
    assert "Nobody works on it (no heartbeat for 8" in sentence
    with engine.begin() as connection:
        connection.execute(held.values(owner=owner_name(), heartbeat_at=now))
    assert "Nobody works on it" not in dataflow("status", "--home", two, "--json").json["sentence"]
    with StateStore(f"sqlite:///{two / 'state.db'}") as state:
        assert at_work(state, run_id)


def test_an_interrupt_is_told_and_the_same_command_goes_on(
    dataflow: Dataflow, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "finish", interrupted)
        said = dataflow("run", job, "--workers", 0, "--home", tmp_path)
    assert (said.code, said.out) == (130, "")
    assert said.err.splitlines()[-1] == (
        "Interrupted. Finished tasks are kept: the same command goes on from here."
    )
    assert "is FAILED (interrupted; the same command goes on" in dataflow("status", "--home", tmp_path).out
    again = dataflow("run", job, "--workers", 0, "--home", tmp_path)
    assert again.code == 4
    assert "ran" not in again.err.replace("discover", "").split("fetch")[1]
