"""What `dataflow stack up` says at its end is what the README shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.cli.stack_commands import _ready
from dataflow_ops.stack.control import Login
from dataflow_ops.stack.settings import REPOSITORY


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_shows_what_is_printed(name: str) -> None:
    login = Login("http://127.0.0.1:8790", "admin", "…")
    said = _ready(login, 39.0, Path("…/dataflow/.dataflow-stack"))
    assert f"```\n{said}\n```\n" in (REPOSITORY / name).read_text(encoding="utf-8")
