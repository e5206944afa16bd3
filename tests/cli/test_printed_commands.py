"""What a report tells people to type can be typed: commands and options are there."""

from __future__ import annotations

import html
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import typer

from dataflow_ops.cli.app import app
from tests.cases.product import CASES, Product


def understood(line: str) -> str:
    """The command of a line, once every word of it has been taken; click refuses what it does not know."""
    program, *words = shlex.split(line)
    assert program == "dataflow"
    command: Any = typer.main.get_command(app)
    context = command.make_context(program, [], resilient_parsing=True)
    names: list[str] = []
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, words)
        names.append(name)
        context = command.make_context(name, list(words), parent=context)
    return " ".join(names)


def test_the_commands_of_a_report(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for name in ("en_prose_ok.txt", "loop.txt"):
        shutil.copyfile(CASES / "text" / name, source / name)
    product = Product(tmp_path / "p", [{"source_id": "s", "path": str(source), "domain": "web"}])
    product.run()
    page = Path(product.ask("report", product.version().name)["report"]).read_text("utf-8")
    blocks = re.findall(r"<pre>(dataflow .*?)</pre>", page, re.DOTALL)
    lines = [line for block in blocks for line in html.unescape(block).splitlines()]
    names = {understood(line) for line in lines}
    assert {"audit", "lineage", "whatif", "run", "versions verify", "doctor"} <= names
    asked = next(line for line in lines if line.startswith("dataflow whatif"))
    told = product.ask(*shlex.split(asked.replace("JOB", str(product.job)))[1:])
    assert told["run"] in asked
    assert [row["key"] for row in told["settings"]] == ["clean.quality_rules.rules.zlib_ratio.low"]
