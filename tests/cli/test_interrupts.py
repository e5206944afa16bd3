"""Ctrl-C while the program still loads: a word and 130, never a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dataflow_ops.pipeline import compact as compact_module
from tests.cli.conftest import Dataflow
from tests.pipeline.compacting import chain

_STOPS = """
import sys

class Stops:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stops())
sys.argv = ["dataflow", "versions", "list", "--home", {home!r}]
from dataflow_ops.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "name",
    ["dataflow_ops.cli.app", "typer", "dataflow_ops.cli.backfill_commands", "dataflow_ops.pipeline.versions"],
)
def test_interrupted_while_it_imports(tmp_path: Path, name: str) -> None:
    script = _STOPS.format(name=name, home=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


def test_a_program_that_waits_for_json_gets_it(
    dataflow: Dataflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = chain(tmp_path)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compact_module, "_finish", interrupted)
    said = dataflow("versions", "compact", "--home", made.home, "--workers", 0, "--json")
    assert (said.code, said.json["state"]) == (130, "INTERRUPTED")
    assert "goes on from here" in said.json["message"]
    assert said.err.splitlines()[-1] == said.json["message"]
