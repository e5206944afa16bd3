"""The command line called in this process: importing it once costs what a subprocess costs each time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.cli import console
from dataflow_ops.cli.main import main
from tests.pipeline import corpus


@dataclass(frozen=True)
class Said:
    """How a command ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Dataflow = Callable[..., Said]


@pytest.fixture
def dataflow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Dataflow:
    """Run ``dataflow ARGUMENTS…`` as a shell would, errors and exit codes included."""
    monkeypatch.delenv("DATAFLOW_HOME", raising=False)

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["dataflow", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small job over real files, with one broken line in it."""
    return corpus.build(tmp_path_factory.mktemp("cli") / "in", code=10, docs=16)


@pytest.fixture(scope="session")
def home(job: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the job has run once. Shared: tests that change it take a copy."""
    from dataflow_ops.job_file import load_job
    from dataflow_ops.pipeline.run import run_job

    folder = tmp_path_factory.mktemp("home")
    run_job(load_job(job), folder, workers=0, reporter=console.ConsoleReporter(quiet=True))
    return folder
