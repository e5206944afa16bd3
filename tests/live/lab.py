"""A live stack with one job whose version is known: faults are put into runs of it, and the bytes compared.

Used by the tests beside it and by ``bench/live_faults.py``.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from tests.pipeline import prose
from tests.stack.live import ROOT, LiveStack

DATASET = "faults"
DAG = f"{DATASET}__full"
ENDED = ("success", "failed")


def build_job(folder: Path, jobs: Path, *, files: int = 36, rows: int = 160) -> Path:
    """Write rows of prose and a job of a few bundles a step; return the job's path.

    Args:
        folder: for the sources.
        jobs: the stack's folder of job files.
        files: JSON-lines files, a chunk each.
        rows: in each; a row has about 2 kB.
    """
    pool = prose.sentences()
    (folder / "rows").mkdir(parents=True)
    jobs.mkdir(parents=True, exist_ok=True)
    for n in range(files):
        lines = []
        for i in range(rows):
            number = n * rows + i
            text = prose.note(number - 1 if number % 10 == 9 else number, pool)
            if number % 20 == 9:
                text = text.replace(" the ", " the very ", 1)
            lines.append(json.dumps({"id": f"row-{number}", "text": text}) + "\n")
        random.Random(n).shuffle(lines)
        (folder / "rows" / f"part-{n:03}.jsonl").write_text("".join(lines), encoding="utf-8")
    job = jobs / f"{DATASET}.yaml"
    job.write_text(
        f"""dataset: {{id: {DATASET}}}
schedule: {{full: null, incremental: null}}
sources:
  - {{source_id: rows, kind: jsonl, path: {folder}/rows, domain: docs}}
ingest: {{chunk_mb: 0.3}}
output: {{partition_by: [domain], version: t, shards: 4}}
""",
        encoding="utf-8",
    )
    return job


def contents(home: Path) -> dict[str, str]:
    """File of the only version -> SHA-256; the report, which holds times, is left out.

    Raises:
        AssertionError: there is not exactly one version.
    """
    folders = [path for path in (home / "versions").iterdir() if path.is_dir()]
    assert len(folders) == 1, f"one version was expected, there are {[path.name for path in folders]}"
    return {
        str(path.relative_to(folders[0])): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folders[0].rglob("*"))
        if path.is_file() and not path.name.startswith("report.") and ".tmp_" not in path.name
    }


def reference(job: Path, home: Path) -> dict[str, str]:
    """What ``dataflow run`` makes of the job, in a home of its own."""
    command = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return contents(home)


@dataclass
class Work:
    """A task of ours that is under way."""

    key: str
    step: str
    partition: str
    owner: str
    attempt: int

    @property
    def pid(self) -> int:
        return int(self.owner.rsplit(":", 2)[1])


@dataclass
class Ending:
    """How a run ended.

    Attributes:
        state: of the DAG run.
        same: whether the version has the reference's bytes.
        chunks: attempts of our tasks beyond the first one of each.
        tries: Airflow's tasks that were tried more than once, and how often.
        wrong: what is not as it must be, for people.
    """

    state: str
    same: bool
    chunks: int
    tries: dict[str, int]
    wrong: list[str] = field(default_factory=list)


class Lab:
    """One stack, one job, and what its version must hold."""

    def __init__(self, stack: LiveStack, wanted: Mapping[str, str]) -> None:
        self.stack = stack
        self.wanted = wanted
        self._client: httpx.Client | None = None
        own = stack.environment()
        self._state = own["DATAFLOW_STATE_URL"].replace("+psycopg", "")
        self._airflow = own["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].replace("+psycopg", "")

    def fresh(self) -> None:
        """Forget all runs and all data: the next run does everything again."""
        with psycopg.connect(self._state, autocommit=True) as state:
            names = state.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname='public' AND tablename NOT LIKE '%alembic%'"
            ).fetchall()
            state.execute(f"TRUNCATE {', '.join(name for (name,) in names)} CASCADE")
        for path in self.stack.home.iterdir():
            if path.is_dir() and path.name != "stack":
                shutil.rmtree(path)

    def state(self, query: str, *values: Any, airflow: bool = False) -> list[tuple[Any, ...]]:
        """Rows of a query to our state (or to Airflow's)."""
        with psycopg.connect(self._airflow if airflow else self._state, autocommit=True) as connection:
            return connection.execute(query, values).fetchall()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask Airflow's API, again and again while it is away, for up to two minutes.

        While its database is away it refuses every login, so that is no answer either.
        """
        end = time.monotonic() + 120
        while True:
            try:
                self._client = self._client or self.stack.client()
                answer = self._client.request(method, f"/api/v2/dags/{path}", json=body)
                return answer.raise_for_status().json()
            except (httpx.TransportError, httpx.HTTPStatusError) as e:
                refused = isinstance(e, httpx.HTTPStatusError) and not e.response.is_server_error
                if refused and e.response.status_code != httpx.codes.UNAUTHORIZED:
                    raise
                if time.monotonic() > end:
                    raise TimeoutError(f"{path}: no answer for two minutes") from e
            self.close()
            time.sleep(1)

    def close(self) -> None:
        """Close the connection to the API; the next question opens another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def trigger(self, dag: str = DAG, **conf: Any) -> str:
        """Start a run; its name in Airflow."""
        self.stack.wait("the DAG", lambda: self.knows(dag))
        return str(self.ask("POST", f"{dag}/dagRuns", {"logical_date": None, "conf": conf})["dag_run_id"])

    def knows(self, dag: str) -> bool:
        """Whether Airflow has the DAG already."""
        try:
            self.ask("GET", dag)
        except httpx.HTTPStatusError as e:
            if e.response.status_code == httpx.codes.NOT_FOUND:
                return False
            raise
        return True

    def ours(self, run: str, dag: str = DAG) -> str:
        """Our name for a run."""
        return f"airflow-{dag}-{run}"

    def at_work(self, step: str, timeout_s: float = 240) -> Work:
        """Wait until a task of a step is being worked on."""
        query = "SELECT key, step, partition, owner, attempt FROM task WHERE state='RUNNING' AND step=%s"

        def found() -> Work | None:
            rows = self.state(query, step)
            return Work(*rows[0]) if rows else None

        work = self._soon(f"a task of {step} under way", found, timeout_s)
        assert isinstance(work, Work)
        return work

    def _soon(self, what: str, until: Callable[[], Any], timeout_s: float) -> Any:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if found := until():
                return found
            time.sleep(0.05)
        raise TimeoutError(f"{what}: not within {timeout_s:.0f} s")

    def worker_of(self, work: Work) -> str:
        """The Celery worker whose process tree works on a task."""
        above = {process.pid for process in psutil.Process(work.pid).parents()} | {work.pid}
        names = [name for name in self.stack.status() if name.startswith("worker-")]
        return next(name for name in names if self.stack.pid(name) in above)

    def run_state(self, run: str) -> str:
        """State of our run; empty where it isn't there yet."""
        rows = self.state("SELECT state FROM run WHERE run_id=%s", self.ours(run))
        return str(rows[0][0]) if rows else ""

    def instances(self, run: str, states: tuple[str, ...]) -> list[str]:
        """Airflow's task instances of a run in these states."""
        query = "SELECT task_id || '.' || map_index FROM task_instance WHERE run_id=%s AND state = ANY(%s)"
        return [name for (name,) in self.state(query, run, list(states), airflow=True)]

    def pause(self, run: str) -> None:
        """Pause a run and wait until no slot is taken by it."""
        self.command("pause", self.ours(run))
        self.stack.wait("the run's pause", lambda: self.run_state(run) == "PAUSED", 60)
        self.stack.wait(
            "free slots",
            lambda: not self.instances(run, ("running",)) and self.instances(run, ("deferred",)),
            60,
        )

    def command(self, *arguments: str) -> str:
        """A ``dataflow`` command that must end well; what it said."""
        done = self.stack.dataflow(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def end(self, run: str, timeout_s: float = 600, dag: str = DAG) -> str:
        """Wait until a DAG run has ended; its state."""
        return str(
            self.stack.wait(
                f"the end of {run}",
                lambda: state if (state := self.ask("GET", f"{dag}/dagRuns/{run}")["state"]) in ENDED else "",
                timeout_s,
            )
        )

    def give_up(self, dag: str = DAG) -> None:
        """End whatever runs of a DAG are still open, so that the next one finds free slots."""
        for found in self.ask("GET", f"{dag}/dagRuns?limit=100")["dag_runs"]:
            if found["state"] not in ENDED:
                self.ask("PATCH", f"{dag}/dagRuns/{found['dag_run_id']}", {"state": "failed"})
        running = "SELECT 1 FROM task_instance WHERE dag_id=%s AND state='running'"
        self.stack.wait("the end of its tasks", lambda: not self.state(running, dag, airflow=True))

    def judge(self, run: str, state: str, versions: int = 1) -> Ending:
        """Compare what a run left with what must be there."""
        tries = {
            f"{task}[{index}]" if index >= 0 else task: number
            for task, index, number in self.state(
                "SELECT task_id, map_index, try_number FROM task_instance WHERE run_id=%s AND try_number>1",
                run,
                airflow=True,
            )
        }
        used = self.state("SELECT coalesce(sum(attempt-1), 0) FROM task WHERE attempt>1")[0][0]
        ending = Ending(state, False, int(used), tries)
        said = ending.wrong.append
        if state != "success":
            said(f"the DAG run is {state}")
        if self.run_state(run) != "SUCCEEDED":
            said(f"our run is {self.run_state(run)}")
        open_tasks = self.state("SELECT step, state, count(*) FROM task WHERE state<>'SUCCESS' GROUP BY 1, 2")
        if open_tasks:
            said(f"tasks are not done: {open_tasks}")
        rows = self.state("SELECT version_id FROM dataset_version WHERE dataset=%s", DATASET)
        told = self.state("SELECT version_id FROM version_event WHERE action='published'")
        if len(rows) != versions or len(told) != versions:
            said(f"published {len(told)} times, rows: {len(rows)}")
        try:
            ending.same = contents(self.stack.home) == self.wanted
            if not ending.same:
                said("other bytes than `dataflow run`")
        except (AssertionError, OSError) as e:
            said(str(e))
        return ending
