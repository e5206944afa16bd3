"""Options that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HomeOption = Annotated[
    Path,
    typer.Option(
        "--home",
        metavar="FOLDER",
        envvar="DATAFLOW_HOME",
        help="Folder of state and storage.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", metavar="", help="Print JSON for programs instead of text for people.")
]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", metavar="NAME", help="Data set; the newest of all when left out.")
]
DEFAULT_HOME = Path(".dataflow")

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_PAUSED, EXIT_WAITING = range(5)

PANEL_RUN = "Run"
PANEL_LOOK = "Look at a run"
PANEL_VERSIONS = "Versions"
PANEL_MACHINE = "This machine"
"""Headings under which ``dataflow --help`` lists the commands."""
