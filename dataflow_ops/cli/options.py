"""Options that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dataflow_ops.errors import ConfigError

DEFAULT_HOME = Path(".dataflow")
STACK_HOME = Path(".dataflow-stack")
"""Where ``dataflow stack up`` keeps state and storage unless it is told otherwise."""


def home_of_local_runs(folder: Path) -> bool:
    """Whether ``dataflow run`` has been used in a folder with its default home."""
    return (folder / DEFAULT_HOME / "state.db").is_file()


def _found(context: typer.Context, parameter: typer.CallbackParam, value: Path) -> Path:
    """The home in this folder, where nobody named one: that of local runs or that of the platform.

    Raises:
        ConfigError: both are here; whatever a command did to the wrong one would go unnoticed.
    """
    source = context.get_parameter_source(str(parameter.name))
    if source is None or source.name != "DEFAULT":
        return value
    if not (STACK_HOME / "stack" / "connect.json").is_file():
        return value
    if home_of_local_runs(Path()):
        raise ConfigError(
            f"there are two homes here: {DEFAULT_HOME} (local runs) and {STACK_HOME} (the platform of"
            f" `dataflow stack up`); say which one: --home {DEFAULT_HOME}, or --home {STACK_HOME}, or once"
            f" for this terminal: export DATAFLOW_HOME={STACK_HOME.absolute()}"
        )
    return STACK_HOME


HomeOption = Annotated[
    Path,
    typer.Option(
        "--home",
        metavar="FOLDER",
        envvar="DATAFLOW_HOME",
        callback=_found,
        help="Folder of state and storage; left out, the one in this folder.",
    ),
]
LocalHomeOption = Annotated[
    Path,
    typer.Option("--home", metavar="FOLDER", envvar="DATAFLOW_HOME", help="Folder of state and storage."),
]
"""Of what never runs on the platform."""
JsonOption = Annotated[
    bool, typer.Option("--json", metavar="", help="Print JSON for programs instead of text for people.")
]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", metavar="NAME", help="Data set; the newest of all when left out.")
]

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_PAUSED, EXIT_WAITING = range(5)
EXIT_INTERRUPTED = 130
"""By Ctrl-C; what a shell gives a program that a SIGINT ended."""

PANEL_RUN = "Run"
PANEL_LOOK = "Look at a run"
PANEL_VERSIONS = "Versions"
PANEL_MACHINE = "This machine"
"""Headings under which ``dataflow --help`` lists the commands."""
