"""A real Airflow api-server and scheduler on SQLite, in a folder of their own, for tests of the client."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataflow_ops.clients.airflow_api import AirflowApi, Login

_START_S = 150


@contextmanager
def airflow_server(folder: Path, dag_files: dict[str, str]) -> Iterator[Login]:
    """Start both, wait until the health page says so, stop them afterwards.

    Args:
        folder: empty; becomes Airflow's home.
        dag_files: name -> text of DAG files.
    """
    dags = folder / "dags"
    dags.mkdir(parents=True)
    for name, text in dag_files.items():
        (dags / name).write_text(text, encoding="utf-8")
    passwords = folder / "passwords.json"
    passwords.write_text(json.dumps({"ann": "open sesame"}), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    env = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    env |= {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "1",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ann:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder / 'airflow.db'}",
        "AIRFLOW__API_AUTH__JWT_SECRET": "for-this-test-only-" * 3,
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    }
    airflow = str(Path(sys.executable).with_name("airflow"))
    for command in (["db", "migrate"], ["dags", "reserialize"]):
        done = subprocess.run([airflow, *command], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (
            f"airflow {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    login = Login(f"http://127.0.0.1:{port}", "ann", "open sesame", "this test")
    with open(folder / "log", "wb") as log:
        processes = [
            subprocess.Popen(
                [airflow, *command], env=env, stdout=log, stderr=log, cwd=folder, start_new_session=True
            )
            for command in (
                ["api-server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"],
                ["scheduler"],
            )
        ]
        try:
            deadline = time.monotonic() + _START_S
            with AirflowApi(login) as api:
                while not api.is_healthy():
                    assert time.monotonic() < deadline, (folder / "log").read_text()[-4000:]
                    assert all(p.poll() is None for p in processes), (folder / "log").read_text()[-4000:]
                    time.sleep(0.5)
            yield login
        finally:
            for process in processes:
                os.killpg(process.pid, signal.SIGTERM)
            for process in processes:
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
