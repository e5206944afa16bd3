"""``dataflow demo``: the main job on real input, as a DAG in Airflow's own process, on embedded defaults."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Annotated

import typer

from dataflow_ops.cli.console import ERR, OUT, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_FAILED, HomeOption
from dataflow_ops.errors import ConfigError

DAG_ID = "demo__full"


def demo(
    home: HomeOption = DEFAULT_HOME,
    airflow: Annotated[
        bool, typer.Option(help="Through Airflow (default), or the local runner alone.")
    ] = True,
) -> None:
    """Run the demo corpus: the standard library, installed documentation, and a few hostile pages."""
    root = Path(__file__).resolve().parents[2]
    job = root / "jobs" / "demo.yaml"
    if not job.is_file():
        raise ConfigError("the demo needs a checkout of the repository: jobs/demo.yaml is not there")
    home = home.absolute()
    environment = demo_environment(root, home)
    began = time.monotonic()
    if airflow:
        code = _airflow(environment, home)
    else:
        command = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home)]
        code = subprocess.run(command, env=environment, check=False).returncode
    if code not in (0, 4):
        raise typer.Exit(EXIT_FAILED)
    os.environ.update({k: environment[k] for k in environment if k.startswith("DEMO_")})
    _tell(home, time.monotonic() - began)


def demo_environment(root: Path, home: Path) -> dict[str, str]:
    """The process environment in which jobs/demo.yaml and dags/ work."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.update(
        DEMO_STDLIB=sysconfig.get_paths()["stdlib"],
        DEMO_SITE=sysconfig.get_paths()["purelib"],
        DEMO_CASES=str(root / "tests" / "cases" / "data"),
        DATAFLOW_HOME=str(home),
        AIRFLOW_HOME=str(home / "airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(root / "dags"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__UNIT_TEST_MODE="False",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home / 'airflow' / 'airflow.db'}",
        AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
        PYTHONWARNINGS="ignore",
    )
    return environment


def _airflow(environment: dict[str, str], home: Path) -> int:
    (home / "airflow").mkdir(parents=True, exist_ok=True)
    log = home / "airflow" / "demo.log"
    airflow = [sys.executable, "-m", "airflow"]
    with open(log, "ab") as out:
        if not (home / "airflow" / "airflow.db").exists():
            ERR.print("Preparing Airflow's database (once) …")
            code = subprocess.run(
                [*airflow, "db", "migrate"], env=environment, stdout=out, stderr=out, check=False
            ).returncode
            if code:
                ERR.print(f"error: airflow db migrate failed; see {log}", markup=False, style="red")
                return code
        ERR.print(f"Running DAG {DAG_ID} in Airflow's own process …")
        process = subprocess.Popen(
            [*airflow, "dags", "test", DAG_ID], env=environment, stdout=out, stderr=out
        )
        code = _watch(process, home)
        if code:
            ERR.print(f"error: the DAG run failed; see {log}", markup=False, style="red")
        return code


def _watch(process: subprocess.Popen[bytes], home: Path) -> int:
    """Show each step as it ends, from DataFlow's own state, while Airflow runs."""
    from dataflow_ops.pipeline.status import status_of

    shown: set[str] = set()
    began = time.time()
    while True:
        ended = process.poll() is not None
        if (home / "state.db").exists():
            try:
                found = status_of(home, None)
            except ConfigError:
                found = {"steps": [], "run": ""}
            for row in found["steps"]:
                key = f"{found['run']}/{row['step']}"
                if key not in shown and row["tasks"] and row["done"] + row["dead"] == row["tasks"]:
                    shown.add(key)
                    if row["step"] != "discover" or time.time() - began > 2:
                        ERR.print(
                            f"  {row['step']:<9} {row['done']:>4} of {row['tasks']} tasks", markup=False
                        )
        if ended:
            return process.returncode
        time.sleep(1)


def _tell(home: Path, seconds: float) -> None:
    from dataflow_ops.pipeline.status import status_of
    from dataflow_ops.pipeline.summary import skipped_of
    from dataflow_ops.pipeline.versions import open_versions

    found = status_of(home, None)
    ran, skipped = skipped_of(home, found["run"])
    columns = ("step", "in", "kept", "rejected", "dead documents", "documents/s")
    print_table("By step", columns, [tuple(row[c] for c in columns) for row in found["steps"]])
    with open_versions(home) as versions:
        shown = versions.show(None)
        report = versions.report_path(None)
    OUT.print(f"Tasks     {ran} ran, {skipped} skipped (already done) in {seconds:.0f} s", markup=False)
    OUT.print(f"Version   {shown['facts']['version']}", markup=False)
    OUT.print(f"Shards    {shown['facts']['folder']}", markup=False)
    OUT.print(f"Report    {report}", markup=False)
    OUT.print(
        "Next      dataflow audit              what the rules removed, with text, value and bound\n"
        "          dataflow lineage DOC_ID     one document's story\n"
        "          dataflow versions verify    every shard against the manifest\n"
        "          dataflow run JOB            your own job; see README.md\n"
        "          (the command is in .venv/bin)",
        markup=False,
    )


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command()(demo)
