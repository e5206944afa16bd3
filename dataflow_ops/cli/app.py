"""The commands of ``dataflow``, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dataflow_ops import __version__
from dataflow_ops.cli import (
    backfill_commands,
    demo,
    diff_commands,
    find_commands,
    letter_commands,
    look_commands,
    maintenance_commands,
    pause_commands,
    relay_commands,
    run_commands,
    samples_commands,
    stack_commands,
    tune_commands,
    version_commands,
    whatif_commands,
)
from dataflow_ops.cli.console import ERR, print_json
from dataflow_ops.cli.options import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    PANEL_LOOK,
    PANEL_MACHINE,
    PANEL_RUN,
    PANEL_VERSIONS,
    JsonOption,
)
from dataflow_ops.errors import ConfigError, DataFlowError, StorageFull


class Commands(TyperGroup):
    """Ends a command that somebody interrupts with a word, unless it has one of its own."""

    def invoke(self, ctx: Any) -> Any:
        """Call the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ERR.print("Interrupted.", markup=False, style="yellow")
            raise typer.Exit(EXIT_INTERRUPTED) from None


app = typer.Typer(
    name="dataflow",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Turns raw documents into versioned training sets. Begin with `dataflow demo`, or with"
    " `dataflow run JOB`. Every command takes --json. Exit codes: 0 done, 1 failed, 2 usage, 3 paused,"
    " 4 done with something waiting for a person.",
)
run_commands.register(app)
backfill_commands.register(app)
pause_commands.register(app)
look_commands.register(app)
whatif_commands.register(app)
tune_commands.register(app)
app.add_typer(version_commands.app, name="versions", rich_help_panel=PANEL_VERSIONS)
diff_commands.register(app)
find_commands.register(app)
app.add_typer(letter_commands.app, name="dead-letters", rich_help_panel=PANEL_LOOK)
app.add_typer(samples_commands.app, name="samples", rich_help_panel=PANEL_RUN)
maintenance_commands.register(app)
demo.register(app)
app.add_typer(stack_commands.app, name="stack", rich_help_panel=PANEL_MACHINE)
app.add_typer(relay_commands.app, name="relay", rich_help_panel=PANEL_MACHINE)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options before any command."""


@app.command(rich_help_panel=PANEL_MACHINE)
def version(as_json: JsonOption = False) -> None:
    """Print the version of DataFlow."""
    if as_json:
        print_json({"version": __version__})
    else:
        typer.echo(__version__)


def run() -> None:
    """Do what the words say: typed errors become one line that says what to do, and an exit code."""
    try:
        app(prog_name="dataflow")
    except ConfigError as e:
        ERR.print(f"error: {e}", markup=False, style="red")
        sys.exit(EXIT_USAGE)
    except StorageFull as e:
        ERR.print(
            f"error: {e}\nFree some space and run the same command again: finished tasks are skipped.",
            markup=False,
            style="red",
        )
        sys.exit(EXIT_FAILED)
    except DataFlowError as e:
        ERR.print(f"error: {e} ({type(e).__name__})", markup=False, style="red")
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except OSError as e:
        where = f": {e.filename}" if e.filename is not None else ""
        ERR.print(f"error: {e.strerror or e}{where}", markup=False, style="red")
        sys.exit(EXIT_FAILED)
