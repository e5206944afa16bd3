"""``dataflow demo``: the main job on real input, as a DAG in Airflow's own process, on embedded defaults."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from dataflow_ops.cli import airflow_process as airflow_
from dataflow_ops.cli.console import ERR, OUT, STEP_COLUMNS, print_json, print_steps
from dataflow_ops.cli.options import (
    DEFAULT_HOME,
    EXIT_FAILED,
    EXIT_WAITING,
    PANEL_RUN,
    JsonOption,
    LocalHomeOption,
)
from dataflow_ops.errors import ConfigError

DAG_ID = "demo__full"


def demo(
    home: LocalHomeOption = DEFAULT_HOME,
    airflow: Annotated[
        bool, typer.Option(metavar="", help="Through Airflow (default), or the local runner alone.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Make a training set of some 8,000 real documents: installed code, documentation, hostile pages."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "jobs" / "demo.yaml").is_file():
        raise ConfigError("the demo needs a checkout of the repository: jobs/demo.yaml is not there")
    home = home.absolute()
    began, folder = time.monotonic(), home / "airflow"
    extra = demo_variables(root, home)
    try:
        if airflow:
            with airflow_.only_one(folder) as lock:
                _through_airflow(airflow_.environment(folder, root / "dags", extra), home, lock)
        else:
            _through_runner(root / "jobs" / "demo.yaml", home, extra)
    except airflow_.Interrupted as e:
        _say("Interrupted. Finished tasks are kept: the same command goes on from here.", "yellow")
        raise typer.Exit(e.exit_code) from None
    found = _findings(home, time.monotonic() - began)
    if as_json:
        print_json(found)
    else:
        _tell(found, sys.executable)
    if found["state"] in ("SUCCEEDED_WITH_DEAD", "AWAITING_APPROVAL"):
        raise typer.Exit(EXIT_WAITING)


def demo_variables(root: Path, home: Path) -> dict[str, str]:
    """What jobs/demo.yaml and dags/corpora.py read from the environment."""
    paths = sysconfig.get_paths()
    return {
        "DATAFLOW_JOBS": str(root / "jobs"),
        "DATAFLOW_CORES_PER_TASK": str(os.cpu_count() or 1),
        # In Airflow's own process a retry would only keep a person waiting for the message.
        "DATAFLOW_TASK_RETRIES": "0",
        "DEMO_STDLIB": paths["stdlib"],
        "DEMO_SITE": paths["purelib"],
        "DEMO_CASES": str(root / "tests" / "cases" / "data"),
        "DATAFLOW_HOME": str(home),
    }


def _through_airflow(env: dict[str, str], home: Path, lock: int) -> None:
    log = home / "airflow" / "demo.log"
    log.write_bytes(b"")
    if airflow_.migrate(env, log, lock, _say):
        _failed("Airflow's database could not be prepared", log)
    _say(f"Running DAG {DAG_ID} in Airflow's own process; its log is {log}")
    watch = Watch(home)
    try:
        code = airflow_.run_airflow(["dags", "test", DAG_ID], env, log, lock, watch)
    except airflow_.Interrupted:
        watch.give_up("interrupted")
        raise
    watch.last()
    if code:
        watch.give_up(f"Airflow ended with exit code {code}")
        _failed("the DAG run failed", log)


def _through_runner(job: Path, home: Path, extra: dict[str, str]) -> None:
    command = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home), "--json"]
    code = subprocess.run(
        command, env={**os.environ, **extra}, stdout=subprocess.DEVNULL, check=False
    ).returncode
    if code not in (0, EXIT_WAITING):
        raise typer.Exit(code)


class Watch:
    """Says each step as it ends, from DataFlow's own state. Silent until this call's run is there.

    A step's bundles enter state one after the other, so it is complete only when the next step has begun.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._over = False
        self._before = self._run()
        self._shown: set[str] = set()

    def __call__(self) -> None:
        """Look once."""
        found = self._look()
        if found is None or found["run"] == self._before:
            return
        begun = found["steps"] if self._over else found["steps"][:-1]
        for row in begun:
            if row["step"] not in self._shown:
                self._shown.add(row["step"])
                _say(f"  {row['step']:<9} {row['done']:>4} of {row['tasks']} tasks done")

    def last(self) -> None:
        """Look once more, now that nothing goes on any more."""
        self._over = True
        self()

    def give_up(self, why: str) -> None:
        """Nobody drives this call's run any more: let its state say so."""
        from dataflow_ops.pipeline.given_up import give_up_run

        run = self._run()
        if run not in ("", self._before):
            give_up_run(self._home, run, why)

    def _run(self) -> str:
        found = self._look()
        return "" if found is None else str(found["run"])

    def _look(self) -> dict[str, Any] | None:
        from dataflow_ops.pipeline.status import status_of

        if not (self._home / "state.db").exists():
            return None
        try:
            return status_of(self._home, None)
        except ConfigError:  # no run yet
            return None


def _findings(home: Path, seconds: float) -> dict[str, Any]:
    from dataflow_ops.pipeline.look import media_of
    from dataflow_ops.pipeline.status import status_of
    from dataflow_ops.pipeline.summary import skipped_of
    from dataflow_ops.pipeline.versions import open_versions

    found = status_of(home, None)
    ran, skipped = skipped_of(home, found["run"])
    with open_versions(home) as versions:
        # What waits for a person is the newest version; else this run's own is the current one.
        waits = found["state"] == "AWAITING_APPROVAL"
        version = str(versions.list("demo")[-1]["version"]) if waits else None
        shown, report = versions.show(version), versions.report_path(version)
    return {
        "run": found["run"],
        "state": found["state"],
        "sentence": found["sentence"],
        "steps": [{c: row[c] for c in (*STEP_COLUMNS, "tasks", "done")} for row in found["steps"]],
        "media": dict(media_of(home, found["run"])),
        "tasks": {"ran": ran, "skipped": skipped},
        "seconds": round(seconds, 1),
        "version": shown["version"],
        "current": shown["current"],
        "waits": shown["waits"],
        "documents": shown["documents"],
        "tokens": shown["tokens"],
        "tokens_estimated": shown["tokens_estimated"],
        "fates": shown["fates"],
        "fates_line": shown["fates_line"],
        "shards": shown["folder"],
        "report": str(report),
        "notes": shown["notes"],
    }


def _tell(found: dict[str, Any], python: str) -> None:
    ran, skipped = found["tasks"]["ran"], found["tasks"]["skipped"]
    OUT.print()
    print_steps(found["steps"])
    media = ", ".join(f"{name} {count:,}" for name, count in found["media"].items())
    if not ran:
        work = f"{skipped} of {skipped} tasks were finished already and were skipped"
    elif skipped:
        work = f"{ran} ran, {skipped} of {ran + skipped} were finished already and were skipped"
    else:
        work = f"{ran} ran; a second `make demo` skips them all"
    lines = [
        ("", ""),
        ("Documents", f"{sum(found['media'].values()):,} parsed: {media}"),
        ("Tasks", f"{work} ({found['seconds']:.0f} s in all)"),
        ("Fates", found["fates_line"]),
        (
            "Version",
            f"{found['version']}{' (current)' if found['current'] else ''}: {found['documents']:,} documents,"
            f" {found['tokens']:,} tokens{' (estimated)' if found['tokens_estimated'] else ''}",
        ),
        *(("Note", note) for note in found["notes"]),
        ("Shards", found["shards"]),
        ("Report", f"{found['report']} (open it in a browser)"),
    ]
    if found["state"] != "SUCCEEDED":
        lines.append(("State", found["sentence"]))
    command = _command(python)
    next_ = (
        ("audit -n 20", "what the rules removed, with text, value and bound"),
        ("lineage DOC_ID", "one document's story, from source file to shard"),
        ("versions verify", "every shard against the manifest"),
        ("run JOB", "your own job; README.md shows how to write one"),
    )
    width = max(len(what) for what, _ in next_)
    lines += [
        ("Next" if i == 0 else "", f"{command} {what:<{width}}  {why}") for i, (what, why) in enumerate(next_)
    ]
    for name, text in lines:
        OUT.print(f"{name:<10} {text}".rstrip(), markup=False)


def _command(python: str) -> str:
    """How this environment's ``dataflow`` is called from here."""
    script = Path(python).parent / "dataflow"
    if not script.exists():
        return "dataflow"
    inside = script.is_relative_to(Path.cwd())
    return str(script.relative_to(Path.cwd()) if inside else script)


def _failed(what: str, log: Path) -> None:
    _say(f"error: {what}. The end of its log:", "red")
    for line in airflow_.last_lines(log):
        _say(f"  {line}")
    _say(f"The whole log: {log}\nFinished tasks are kept: the same command goes on from here.", "red")
    raise typer.Exit(EXIT_FAILED)


def _say(text: str, style: str | None = None) -> None:
    ERR.print(text, markup=False, style=style)


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command(rich_help_panel=PANEL_RUN)(demo)
