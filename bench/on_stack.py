"""What the scripts that measure a live stack share: runs over the API, times from Airflow's own tables."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from dataflow_ops.stack.environment import LOCAL_SETTINGS
from tests.stack.live import ROOT, LiveStack, live_stack

ENDED = ("success", "failed")


def say(text: str) -> None:
    """One line with the time and how busy the machine is."""
    print(f"{time.strftime('%H:%M:%S')} load {os.getloadavg()[0]:4.1f}  {text}", flush=True)


@contextmanager
def workplace(keep: bool) -> Iterator[Path]:
    """A folder that PostgreSQL's account may enter, removed at the end unless it is to be kept."""
    base = Path(tempfile.mkdtemp(prefix="dataflow-bench-"))
    base.chmod(0o755)
    try:
        yield base
    finally:
        if keep:
            say(f"kept: {base}")
        else:
            shutil.rmtree(base, ignore_errors=True)


@contextmanager
def stack_of(base: Path, **settings: Any) -> Iterator[Runs]:
    """A stack on ``base/home`` with the jobs of ``base/jobs``, running this checkout's code."""
    own = {"PYTHONPATH": os.pathsep.join((LOCAL_SETTINGS, str(ROOT)))}
    began = time.monotonic()
    with live_stack(base / "home", jobs=base / "jobs", environment=own, **settings) as stack:
        runs = Runs(stack)
        say(f"stack up after {time.monotonic() - began:.0f} s")
        try:
            yield runs
        finally:
            runs.close()


@dataclass(frozen=True)
class Span:
    """All instances of one task of a run.

    Attributes:
        task: its id.
        tasks: how many ran.
        skipped: how many were skipped by the scheduler.
        began: start of the first, epoch seconds.
        ended: end of the last.
    """

    task: str
    tasks: int
    skipped: int
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def rate(self) -> float:
        """Tasks per second from the first start to the last end."""
        return self.tasks / max(self.seconds, 1e-9)


class Runs:
    """Runs of one stack."""

    def __init__(self, stack: LiveStack) -> None:
        self.stack = stack
        self._client = stack.client()
        own = stack.environment()
        self._state = own["DATAFLOW_STATE_URL"].replace("+psycopg", "")
        self._airflow = own["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].replace("+psycopg", "")

    def close(self) -> None:
        self._client.close()

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """JSON of one page; asked again while the server is too busy to answer."""
        for left in range(4, -1, -1):
            try:
                answer = self._client.request(method, path, json=body)
                break
            except httpx.TransportError:
                if not left:
                    raise
                time.sleep(1)
        if answer.is_error:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:400]}")
        return answer.json()

    def state(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a query to our state."""
        with psycopg.connect(self._state, autocommit=True) as connection:
            return connection.execute(query, values).fetchall()

    def airflow(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a query to Airflow's tables."""
        with psycopg.connect(self._airflow, autocommit=True) as connection:
            return connection.execute(query, values).fetchall()

    def trigger(self, dag: str, **conf: Any) -> str:
        """Start a run as the page does; its id."""

        def known() -> bool:
            return any(d["dag_id"] == dag for d in self.ask("GET", "/api/v2/dags?limit=100")["dags"])

        self.stack.wait(f"DAG {dag}", known)
        self.ask("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
        body = {"logical_date": None, "conf": conf}
        return str(self.ask("POST", f"/api/v2/dags/{dag}/dagRuns", body)["dag_run_id"])

    def wait(self, dag: str, run: str, timeout_s: float = 7200) -> str:
        """The state in which a run ends."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            [(state,)] = self.airflow("SELECT state FROM dag_run WHERE dag_id=%s AND run_id=%s", dag, run)
            if state in ENDED:
                return str(state)
            time.sleep(1)
        raise TimeoutError(f"{dag} {run}: not within {timeout_s:.0f} s")

    def cpu_seconds(self) -> float:
        """CPU time of all processes of the stack since it is up."""
        total = 0.0
        above = psutil.Process(self.stack.pid("supervisor"))
        for process in (above, *above.children(recursive=True)):
            with suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
        return total

    def seconds(self, dag: str, run: str) -> float:
        """From the trigger to the end of the run."""
        query = "SELECT extract(epoch FROM end_date - queued_at) FROM dag_run WHERE dag_id=%s AND run_id=%s"
        return float(self.airflow(query, dag, run)[0][0])

    def spans(self, dag: str, run: str) -> list[Span]:
        """Tasks of a run in the order in which they began; those that never ran last."""
        query = """
            SELECT task_id, count(*) FILTER (WHERE state = 'success'),
                   count(*) FILTER (WHERE state = 'skipped'),
                   coalesce(extract(epoch FROM min(start_date)), 'infinity'),
                   coalesce(extract(epoch FROM max(end_date)), 'infinity')
            FROM task_instance WHERE dag_id=%s AND run_id=%s GROUP BY task_id ORDER BY 4
        """
        return [Span(t, n, s, float(a), float(b)) for t, n, s, a, b in self.airflow(query, dag, run)]


class Bars:
    """What was measured against what it must be."""

    def __init__(self) -> None:
        self.missed = 0

    def check(self, what: str, value: float, bar: float, *, at_least: bool, unit: str) -> None:
        ok = value >= bar if at_least else value <= bar
        self.missed += not ok
        sign = ">=" if at_least else "<="
        say(f"{what}: {value:.2f} {unit} ({sign} {bar:g}) {'ok' if ok else 'MISSED'}")


def published_files(runs: Runs, dataset: str) -> dict[str, str]:
    """File -> SHA-256 of a data set's only version on the stack."""
    [(version,)] = runs.state("SELECT version_id FROM dataset_version WHERE dataset=%s", dataset)
    return _files(runs.stack.home / "versions" / str(version))


def reference(job: Path, home: Path) -> dict[str, str]:
    """What ``dataflow run`` publishes of a job, in a home of its own."""
    command = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    [version] = (path for path in (home / "versions").iterdir() if path.is_dir())
    return _files(version)


def _files(version: Path) -> dict[str, str]:
    """All but the report, which tells times."""
    return {
        str(path.relative_to(version)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(version.rglob("*"))
        if path.is_file() and not path.name.startswith("report.")
    }
