"""``dataflow backfill`` and ``dataflow backfills``: what they print, and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from sqlalchemy.exc import OperationalError

from dataflow_ops.cli import backfill_progress
from dataflow_ops.cli.backfill_progress import BackfillProgress
from dataflow_ops.state.backfills import BackfillRecord
from dataflow_ops.state.runs import Runs
from tests.cli.conftest import Dataflow
from tests.pipeline.by_day import DAYS, build

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("days") / "in", files=1)


def span(first: str = DAYS[0], last: str = DAYS[-1]) -> tuple[str, ...]:
    return ("--from", first, "--to", last, "--workers", "0")


def test_from_the_dry_run_to_the_list(dataflow: Dataflow, job: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = dataflow("backfill", job, *span(), "--home", home, "--dry-run")
    assert said.code == 0
    assert said.out.count("never run") == 3
    assert "3 of 3 days would be run. Nothing was written" in said.out
    assert not home.exists()
    rows = dataflow("backfill", job, *span(), "--home", home, "--dry-run", "--json").json
    assert [(r["day"], r["action"], r["files"]) for r in rows] == [(day, "run", 3) for day in DAYS]
    said = dataflow("backfill", job, *span(DAYS[0], DAYS[1]), "--home", home)
    assert said.code == 0, said.err
    assert "(1 of 2, about " in said.err
    assert f"{DAYS[1]}: done, version t-incremental-{DAYS[1]}" in said.err
    assert ": DONE" in said.out
    found = dataflow("backfill", job, *span(), "--home", home, "--json")
    assert (found.code, found.err) == (0, "")
    assert found.json["state"] == "DONE"
    assert [d["day"] for d in found.json["days"]] == [DAYS[2]], "the others are done already"
    said = dataflow("backfill", job, *span(), "--home", home)
    assert said.code == 0
    assert "Nothing to do: of 3 days none needs it" in said.out
    assert dataflow("backfill", job, *span(), "--home", home, "--json").json["backfill"] is None

    rows = dataflow("backfills", "list", "--home", home, "--json").json
    assert [(r["from"], r["to"], r["state"]) for r in rows] == [
        (DAYS[0], DAYS[2], "DONE"),
        (DAYS[0], DAYS[1], "DONE"),
    ]
    said = dataflow("backfills", "list", "--home", home)
    assert said.out.count("DONE") == 2
    one = rows[0]["backfill"]
    assert dataflow("backfills", "show", one, "--home", home, "--json").json == rows[0]
    said = dataflow("backfills", "show", one, "--home", home)
    assert f"backfill-{one}-{DAYS[2]}" in said.out
    for deed in ("pause", "resume", "cancel"):
        said = dataflow("backfills", deed, one, "--home", home)
        assert (said.code, f"there is nothing to {deed}" in said.err) == (2, True), deed
    said = dataflow("backfills", "show", "20", "--home", home)
    assert (said.code, "several backfills begin with '20'" in said.err) == (2, True)
    said = dataflow("backfills", "show", "nope", "--home", home)
    assert (said.code, f"`dataflow backfills list --home {home}` shows them" in said.err) == (2, True)


def test_failed_days_end_it_with_one_and_are_told_when_left_out(dataflow: Dataflow, tmp_path: Path) -> None:
    job, home = build(tmp_path / "in", files=1), tmp_path / "home"
    for path in (tmp_path / "in" / "notes" / DAYS[1]).iterdir():
        path.unlink()
    sets = ("mixing.target_tokens=10", "mixing.sampling={notes: 1}", "mixing.on_shortage=fail")
    command = ("backfill", job, *span(), "--home", home, *(x for s in sets for x in ("--set", s)))
    said = dataflow(*command)
    assert said.code == 1
    assert f"{DAYS[1]}: failed, RunFailed: step 'plan'" in said.err
    assert "1 of 3 days failed (2026-01-02); --reprocess failed does them again" in said.out
    said = dataflow(*command)
    assert said.code == 4, "what failed and is left out waits for a person"
    assert "1 day failed before, left out here (2026-01-02); --reprocess failed" in said.err


def test_dead_letters_end_it_with_four(dataflow: Dataflow, tmp_path: Path) -> None:
    job, home = build(tmp_path / "in", files=1), tmp_path / "home"
    job.write_text(job.read_text().replace("max_attempts: 3", "max_attempts: 3, max_dead_share: 0.9"))
    (tmp_path / "in" / "notes" / DAYS[0] / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    said = dataflow("backfill", job, *span(DAYS[0], DAYS[0]), "--home", home)
    assert said.code == 4, said.err
    assert "1 day left something for a person" in said.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--from", "2026-01-02", "--to", "2026-01-01"), "both days are inclusive"),
        (("--from", "soon", "--to", "2026-01-01"), "--from soon: not a date"),
        (("--from", "2026-01-01", "--to", "2026-01-01", "--reprocess", "x"), "none, failed, all"),
        (("--from", "2026-01-01", "--to", "2026-01-01", "--set", "mixing.seed=x"), "mixing.seed"),
        (("--from", "2026-01-01", "--to", "2026-01-01", "--parallel", "0"), "--parallel"),
        (("--from", "2026-01-01"), "Missing option '--to'"),
    ],
)
def test_wrong_calls(
    dataflow: Dataflow, job: Path, tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    said = dataflow("backfill", job, *arguments, "--home", tmp_path / "home")
    assert said.code == 2
    assert expected in said.err
    assert not (tmp_path / "home").exists(), "nothing is made before the call is known to be right"


def test_a_job_without_sources(dataflow: Dataflow, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("dataset: {id: x}")
    said = dataflow("backfill", job, *span(), "--home", tmp_path / "home")
    assert (said.code, "names no sources" in said.err) == (2, True)
    assert not (tmp_path / "home").exists()


def test_without_backfills(dataflow: Dataflow, tmp_path: Path) -> None:
    said = dataflow("backfills", "list", "--home", tmp_path)
    assert (said.code, f"`dataflow backfill --home {tmp_path} JOB" in said.out) == (0, True)
    assert dataflow("backfills", "list", "--home", tmp_path, "--json").json == []
    for deed in ("list", "show x", "pause x", "resume x", "cancel x"):
        said = dataflow("backfills", *deed.split(), "--home", tmp_path / "none")
        assert (said.code, f"`dataflow run --home {tmp_path}/none JOB` makes one" in said.err) == (2, True), (
            deed
        )


def test_the_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(force_terminal=True, width=120, record=True, file=open("/dev/null", "w"))
    monkeypatch.setattr(backfill_progress, "ERR", screen)
    record = BackfillRecord("b1", "web", "", DAYS[0], DAYS[2], "none", {}, "RUNNING", "ann", "", 0.0, 0.0)
    progress = BackfillProgress()
    progress.begins(record, 3, 1, "in this process")
    assert progress.left() == ""
    for day in DAYS[1:]:
        progress.day_begins(day, "never run")
        reporter = progress.reporter(day)
        reporter.step_planned("parse", 4, 1)
        progress.day_ended(day, "DONE", "version v1")
        if day == DAYS[1]:
            assert progress.left().startswith("about ")
    assert progress.left() == ""
    progress.close()
    shown = screen.export_text()
    assert "Backfill b1 of web: 3 days, 1 of them done before, in this process" in shown
    assert f"{DAYS[1]}: done, version v1 (2 of 3, about 0 s left)" in shown


def test_what_goes_away_under_it_is_told_with_the_command_that_goes_on(
    dataflow: Dataflow, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    real = Runs.set_run_state
    trouble = [OperationalError("SELECT 1", {}, Exception('connection to server at "10.0.0.1" failed'))]

    def away(self: Runs, run_id: str, *more: object) -> object:
        if DAYS[1] in run_id and trouble:
            with self.db.read():
                raise trouble.pop()
        return real(self, run_id, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Runs, "set_run_state", away)
    said = dataflow("backfill", job, *span(), "--home", home)
    assert said.code == 1
    assert "stopped: the state database can't be reached. Nothing is lost" in said.err
    assert "(BackfillStopped)" in said.err
    assert "10.0.0.1" not in said.err
    (row,) = dataflow("backfills", "list", "--home", home, "--json").json
    again = f"dataflow backfills resume {row['backfill']} --home {home}"
    assert said.err.strip().endswith(
        f"the same command goes on where it stood, or: {again} (BackfillStopped)"
    )
    assert row["days"][0]["state"] == "DONE"
    said = dataflow(*again.split()[1:], "--workers", "0")
    assert (said.code, ": DONE" in said.out) == (0, True), said.err


def test_without_a_database_nothing_is_begun(
    dataflow: Dataflow, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAFLOW_STATE_URL", "postgresql://nobody@127.0.0.1:9/none")
    said = dataflow("backfill", job, *span(), "--home", tmp_path / "home")
    assert said.code == 1
    assert said.err.splitlines()[-1] == (
        "error: the state database can't be reached; nothing was begun. Once it is back, the same command"
        " begins. (BackfillStopped)"
    )
