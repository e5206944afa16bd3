"""A whole live stack for a test or a script: started by the command line, on free ports, ended at the end.

::

    with live_stack(tmp_path / "home") as stack:
        stack.get("/api/v2/dags")
        stack.kill("scheduler")
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.account import data_folder, unprivileged
from dataflow_ops.stack.binaries import find_programs
from dataflow_ops.stack.layout import Layout
from dataflow_ops.stack.object_store import PORTS
from tests.storage.s3_server import free_row

ROOT = Path(__file__).resolve().parents[2]


def missing() -> str:
    """Why no stack can be started here, or the empty string."""
    try:
        find_programs()
    except ConfigError as e:
        return str(e)
    return ""


@dataclass(frozen=True)
class LiveStack:
    """A running stack. Paths are absolute; ``layout`` says where logs and records are."""

    home: Path
    settings: Path
    url: str
    user: str
    password: str

    @property
    def layout(self) -> Layout:
        return Layout(self.home)

    def token(self, user: str | None = None, password: str | None = None) -> str:
        """A bearer token for the API, of the first user where none is named."""
        login = {"username": user or self.user, "password": password or self.password}
        answer = httpx.post(f"{self.url}/auth/token", json=login, timeout=30, trust_env=False)
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def client(self, user: str | None = None, password: str | None = None) -> httpx.Client:
        """An HTTP client that is logged in; close it."""
        head = {"Authorization": f"Bearer {self.token(user, password)}"}
        return httpx.Client(base_url=self.url, headers=head, timeout=60, trust_env=False)

    def get(self, path: str) -> Any:
        """JSON of one page of the API, as the first user."""
        with self.client() as client:
            return client.get(path).raise_for_status().json()

    def add_user(self, name: str, role: str, password: str) -> None:
        """A further user with one of Airflow's roles (Viewer, User, Op, Admin)."""
        body = {
            "username": name,
            "password": password,
            "first_name": name,
            "last_name": name,
            "email": f"{name}@localhost",
            "roles": [{"name": role}],
        }
        with self.client() as client:
            client.post("/auth/fab/v1/users", json=body).raise_for_status()

    def environment(self) -> dict[str, str]:
        """This process' environment with the stack's variables, as if ``airflow.env`` was sourced."""
        plan = json.loads(self.layout.plan.read_text(encoding="utf-8"))
        own = dict(plan["components"][-1]["environment"])
        return {**os.environ, **own}

    def airflow(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One ``airflow`` command on this stack."""
        command = [sys.executable, "-m", "airflow", *arguments]
        return subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False)

    def dataflow(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One ``dataflow`` command; home and state come from the environment."""
        command = [sys.executable, "-m", "dataflow_ops.cli.main", *arguments]
        return subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False)

    def status(self) -> dict[str, dict[str, Any]]:
        """What ``dataflow stack status --json`` says, by component."""
        done = _command("status", "--json", settings=self.settings)
        return {row["name"]: row for row in json.loads(done.stdout)["components"]}

    def pid(self, component: str) -> int:
        """Process of a component."""
        path = self.layout.pids / f"{component}.json"
        return int(json.loads(path.read_text(encoding="utf-8"))["pid"])

    def kill(self, component: str, *, group: bool = True, number: int = signal.SIGKILL) -> int:
        """Send a signal to a component (its whole process group, tasks included); returns its pid."""
        pid = self.pid(component)
        below = psutil.Process(pid).children(recursive=True) if group else []
        os.kill(pid, number)
        for process in below:
            try:
                process.send_signal(number)
            except psutil.NoSuchProcess:
                continue
        return pid

    def wait(self, what: str, until: Callable[[], Any], timeout_s: float = 120) -> Any:
        """The first true value of ``until``.

        Raises:
            TimeoutError: none came.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            value = until()
            if value:
                return value
            time.sleep(0.5)
        raise TimeoutError(f"{what}: not within {timeout_s:.0f} s")

    def wait_healthy(self, timeout_s: float = 120) -> None:
        """Wait until every component is well."""
        self.wait(
            "a healthy stack",
            lambda: all(row["state"] in ("healthy", "done") for row in self.status().values()),
            timeout_s,
        )

    def up(self) -> subprocess.CompletedProcess[str]:
        """``dataflow stack up`` again."""
        return _command("up", settings=self.settings)

    def down(self) -> subprocess.CompletedProcess[str]:
        """``dataflow stack down``."""
        return _command("down", settings=self.settings)


@contextmanager
def live_stack(
    home: Path,
    *,
    jobs: Path = ROOT / "jobs",
    dags: Path = ROOT / "dags",
    plugins: Path = ROOT / "plugins",
    workers: int = 2,
    concurrency: int = 2,
    environment: Mapping[str, str] | None = None,
    **sections: Any,
) -> Iterator[LiveStack]:
    """Start a stack with its home in ``home`` and end it when the block ends, however it ends.

    Args:
        home: home folder; must not hold another stack's.
        jobs: folder of job files.
        dags: folder of DAG files.
        plugins: folder of Airflow plugins.
        workers: Celery workers beside the urgent one.
        concurrency: tasks at a time in each.
        environment: further variables for all processes.
        sections: anything else of ``stack.yaml``, such as ``airflow={"queued_timeout_s": 30}``.

    Raises:
        RuntimeError: it did not come up; carries what the command said.
    """
    home.mkdir(parents=True, exist_ok=True)
    web, postgres, redis = _free_ports(3)
    settings = home / "stack.yaml"
    body = {
        "home": str(home),
        "jobs": str(jobs),
        "dags": str(dags),
        "plugins": str(plugins),
        "ports": {"web": web, "postgres": postgres, "redis": redis, "object_store": free_row(PORTS)},
        "workers": {"count": workers, "concurrency": concurrency},
        "environment": dict(environment or {}),
        **sections,
    }
    settings.write_text(yaml.safe_dump(body, allow_unicode=True), encoding="utf-8")
    try:
        done = _command("up", settings=settings)
        if done.returncode:
            raise RuntimeError(f"`stack up` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        login = json.loads(Layout(home).api.read_text(encoding="utf-8"))
        yield LiveStack(home, settings, login["url"], login["user"], login["password"])
    finally:
        _command("down", settings=settings)
        data = data_folder(Layout(home).folder, unprivileged())
        if data.parent != Layout(home).folder:  # outside of the caller's folder, so nobody else tidies up
            shutil.rmtree(data.parent, ignore_errors=True)


def _command(*arguments: str, settings: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "dataflow_ops.cli.main",
        "stack",
        *arguments,
        "--settings",
        str(settings),
    ]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=ROOT)


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for probe in held:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in held]
    finally:
        for probe in held:
            probe.close()
