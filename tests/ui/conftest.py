"""A small real run, and Airflow's real app in front of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from dataflow_ops.pipeline.audited import audit_of
from dataflow_ops.samples import uploading
from dataflow_ops.samples.importing import ImportStep, plan_import
from dataflow_ops.samples.running import run_task
from dataflow_ops.state.samples.generations import Usage, record_failure
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.store import StateStore
from tests.console.sample_home import asked
from tests.pipeline import corpus
from tests.pipeline.harness import ROOT, once
from tests.samples.augment.augment_case import template
from tests.ui.airflow_server import PASSWORD

READY_S = 120.0
POST = {"X-DataFlow": "1"}


@dataclass(frozen=True)
class Samples:
    """Samples of data set ``tiny``: a file, its first turn, a whole upload and one to be given up.

    ``task`` is an augmentation that waits, with one ``failure``; ``other_task`` is to be cancelled.
    """

    file: str = ""
    turn: int = 0
    upload: str = ""
    spare: str = ""
    task: str = "aug"
    other_task: str = "clean"
    failure: str = asked(7).key


@dataclass
class Ui:
    """The server, and what its home holds.

    Attributes:
        url: of Airflow.
        home: DataFlow's home.
        run: a finished run of data set ``tiny``, started by the command line.
        live: a run of ``tiny`` that Airflow started and that nobody works on.
        other: a run of data set ``other``.
        spare: as ``live``, to be cancelled.
        version: that ``run`` made.
        doc_id: of a document that it removed.
        routes: ``(method, path)`` of the plugin's app.
    """

    url: str
    home: Path
    run: str
    live: str
    other: str
    version: str
    doc_id: str
    routes: list[tuple[str, str]] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    spare: str = "airflow-tiny__full-manual__2"
    samples: Samples = field(default_factory=lambda: Samples())

    def token(self, user: str) -> str:
        if user not in self.tokens:
            body = {"username": user, "password": PASSWORD}
            answer = httpx.post(f"{self.url}/auth/token", json=body, timeout=30)
            assert answer.status_code == 201, answer.text
            self.tokens[user] = answer.json()["access_token"]
        return self.tokens[user]

    def state(self) -> StateStore:
        return StateStore(f"sqlite:///{self.home / 'state.db'}")

    def get(self, user: str, path: str, **params: Any) -> httpx.Response:
        return self._ask("GET", user, path, params=params)

    def post(self, user: str, path: str, **body: Any) -> httpx.Response:
        return self._ask("POST", user, path, json=body)

    def put(self, user: str, path: str, content: bytes, **params: Any) -> httpx.Response:
        kind = {"content-type": "application/octet-stream"}
        return self._ask("PUT", user, path, params=params, content=content, headers=kind)

    def _ask(self, method: str, user: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token(user)}"} if user else dict(POST)
        headers |= more.pop("headers", {})
        return httpx.request(method, f"{self.url}/dataflow{path}", headers=headers, timeout=60, **more)


@pytest.fixture(scope="session")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    """Everything, once a session: the run takes seconds, Airflow some ten."""
    folder = tmp_path_factory.mktemp("ui")
    home = folder / "home"
    job = corpus.build(folder / "in", code=12, docs=24)
    once(job, home)
    with StateStore(f"sqlite:///{home / 'state.db'}") as state:
        (row,) = state.list_runs()
        origin = json.dumps({"kind": "airflow", "dag_id": "tiny__full", "run_id": "manual__1"})
        live, other = "airflow-tiny__full-manual__1", "other-full-1"
        changed = row.settings.replace('"max_dead_share":0.5', '"max_dead_share":0.25')
        state.create_run(live, "tiny", "tiny", "full", changed, "2026-01-02", origin=origin)
        state.set_run_state(live, "start")
        again = json.dumps({"kind": "airflow", "dag_id": "tiny__full", "run_id": "manual__2"})
        state.create_run(Ui.spare, "tiny", "tiny", "full", changed, "2026-01-02", origin=again)
        state.create_run(other, "other", "other", "full", row.settings, "2026-01-02")
        (version,) = state.versions("tiny")
    samples = _samples(folder, home)
    doc_id = audit_of(home, row.run_id, "captcha", 1, 0)[0].doc_id
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "airflow.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ui.airflow_server", str(port), str(folder / "routes.json")],
        cwd=ROOT,
        env=_environment(folder, home, port),
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    ui = Ui(f"http://127.0.0.1:{port}", home, row.run_id, live, other, version.version_id, doc_id)
    ui.samples = samples
    try:
        _wait(ui.url, process, folder / "airflow.log")
        ui.routes = [(method, path) for method, path in json.loads((folder / "routes.json").read_text())]
        yield ui
    finally:
        process.terminate()
        process.wait(timeout=30)
        log.close()


def _samples(folder: Path, home: Path) -> Samples:
    """Two dialogues, one of which has words that nobody else says."""
    path = folder / "chat.jsonl"
    turns = [{"role": "user", "content": "the secret word"}, {"role": "assistant", "content": "yes"}]
    path.write_text("".join(json.dumps({"messages": turns[n:]}) + "\n" for n in range(2)) + "{bad\n")
    with SampleStore(f"sqlite:///{home / 'state.db'}") as store:
        wanted = plan_import(store, "tiny", [str(path)], "test")
        run_task(store, str(wanted.task_id), ImportStep(store))
        (file,) = store.sample_files("tiny")
        whole, spare = (uploading.begin(store, "tiny", "b.jsonl", 30, None, "test") for _ in range(2))
        data = b'{"instruction":"a","output":""}'[:30].ljust(30)
        uploading.add_part(store, home / uploading.FOLDER, whole.upload_id, 0, data)
        turn = store.dialogue(file.id, 0)[0]["id"]
        for task_id, kind in ((Samples.task, "augment"), (Samples.other_task, "clean")):
            wanted_of = {"template": template().deciding, "prompt_version": template().prompt_version}
            store.create_task(
                task_id, "tiny", kind, wanted_of if kind == "augment" else {}, [file.id], "test"
            )
        with store.write() as connection:
            failed = replace(asked(7), sample_id=turn, file_id=file.id)
            record_failure(
                connection, store.db, Samples.task, failed, "EmptyAnswer", "secret", "raw", Usage(), 3
            )
        return Samples(file.id, store.dialogue(file.id, 0)[0]["id"], whole.upload_id, spare.upload_id)


def _environment(folder: Path, home: Path, port: int) -> dict[str, str]:
    airflow = folder / "airflow"
    (airflow / "dags").mkdir(parents=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "DATAFLOW_"))}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env | {
        "AIRFLOW_HOME": str(airflow),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{airflow / 'airflow.db'}",
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(airflow / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__SECRET_KEY": "for-this-test-only-for-this-test-only",
        "AIRFLOW__API_AUTH__JWT_SECRET": "for-this-test-only-for-this-test-only-for-this-test-only-for-this",
        "DATAFLOW_HOME": str(home),
        "PYTHONPATH": str(ROOT),
    }


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/api/v2/version", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.3)
    raise AssertionError(log.read_text(errors="replace")[-4000:])
