"""``dataflow stack …``: the platform on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dataflow_ops.cli.console import ERR, OUT, print_json, print_table
from dataflow_ops.cli.demo import demo_variables
from dataflow_ops.cli.options import EXIT_FAILED, JsonOption, home_of_local_runs
from dataflow_ops.errors import ConfigError
from dataflow_ops.stack import compose as compose_
from dataflow_ops.stack import control, report
from dataflow_ops.stack import join as join_
from dataflow_ops.stack.control import Login
from dataflow_ops.stack.environment import inherited
from dataflow_ops.stack.layout import Layout
from dataflow_ops.stack.settings import REPOSITORY, StackSettings, default_file, load_settings

app = typer.Typer(
    no_args_is_help=True,
    help="The platform on this machine: PostgreSQL, Redis, Airflow and its workers, without containers.",
)

SettingsOption = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="Settings file; stack.yaml when left out."),
]
StackHomeOption = Annotated[
    Path | None,
    typer.Option("--home", metavar="FOLDER", help="Home of the stack instead of the settings file's."),
]
PortOption = Annotated[
    int | None, typer.Option("--port", metavar="P", help="Port of the web page instead of the file's.")
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Number of workers instead of the file's.")
]
_COLORS = {"healthy": "green", "done": "green", "starting": "yellow", "waiting": "dim", "down": "red"}


def _ready(login: Login, seconds: float, home: Path) -> str:
    """What a person needs once all is up; the README shows the same."""
    if home_of_local_runs(home.parent):
        where = (
            f"Commands about runs and versions need --home {home} (in {home.parent} are local runs, too),\n"
            f"or once for a terminal: export DATAFLOW_HOME={home}\n"
        )
    else:
        where = (
            f"Commands about runs and versions work in {home.parent} as they are, elsewhere with\n"
            f"  --home {home}\n"
        )
    return (
        f"All healthy after {seconds:.0f} s.\n\n"
        f"  address   {login.url}\n  user      {login.user}\n  password  {login.password}\n\n"
        "Open the address, pick a data set's DAG, trigger it. In a terminal:\n"
        "  dataflow stack status    what runs, and whether it is well\n"
        "  dataflow stack logs      what it says\n"
        "  dataflow stack down      end it; data stay\n"
        f"{where}"
        f"For `airflow …` itself: set -a; . {Layout(home).environment}; set +a"
    )


@app.command()
def up(
    settings: SettingsOption = None,
    home: StackHomeOption = None,
    workers: WorkersOption = None,
    port: PortOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start what is not running, wait until all is healthy, print address, user and password."""
    wanted = _with_demo(_settings(settings, home, workers, port))
    began = time.monotonic()
    try:
        with _Progress() as progress:
            login = control.up(wanted, os.environ, progress.note, progress.show)
    except KeyboardInterrupt:
        ERR.print(
            "Not waited for any longer. It goes on in the background: `dataflow stack status`, or `down`."
        )
        raise typer.Exit(128 + signal.SIGINT) from None
    if as_json:
        print_json(asdict(login))
        return
    OUT.print(_ready(login, time.monotonic() - began, wanted.home), markup=False)


@app.command()
def down(
    settings: SettingsOption = None,
    home: StackHomeOption = None,
    purge: Annotated[
        bool,
        typer.Option("--purge", help="Also remove databases, logs and secrets; data sets' files stay."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """End all components, in order; data stay, and the next `up` goes on with them."""
    layout = _layout(settings, home)
    there = layout.folder.is_dir()
    if there and purge and not yes:
        typer.confirm(
            f"Remove {layout.folder} with its databases (users, runs, versions' records) and secrets?",
            abort=True,
        )
    ended = control.down(layout, lambda line: ERR.print(line, markup=False)) if there else 0
    if there and purge:
        control.purge(layout)
    if as_json:
        print_json({"home": str(layout.home), "ended": ended, "purged": there and purge})
        return
    if not there:
        OUT.print(f"No stack in {layout.home}.", markup=False)
        return
    OUT.print(f"{ended} component(s) ended; data stay in {layout.home}." if ended else "Nothing was running.")
    if purge:
        OUT.print(f"Removed {layout.folder}.", markup=False)


@app.command()
def status(
    settings: SettingsOption = None, home: StackHomeOption = None, as_json: JsonOption = False
) -> None:
    """Each component's state, process, memory and address. Exit code 1 if something is not well."""
    rows = report.look(_layout(settings, home), memory=True)
    if as_json:
        print_json({"healthy": report.is_up(rows), "components": [asdict(row) for row in rows]})
    elif rows:
        columns = ["component", "state", "pid", "up", "memory", "starts", "address", "detail"]
        print_table("", columns, [_cells(row) for row in rows])
    else:
        OUT.print("No stack here yet; `dataflow stack up` starts one.")
    if not report.is_up(rows):
        raise typer.Exit(EXIT_FAILED)


@app.command()
def logs(
    component: Annotated[
        str | None, typer.Argument(help="Its name as in `dataflow stack status`; all when left out.")
    ] = None,
    settings: SettingsOption = None,
    home: StackHomeOption = None,
    lines: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many of the last lines.")] = 40,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as lines come in.")] = False,
    as_json: JsonOption = False,
) -> None:
    """The last lines of a component's log."""
    layout = _layout(settings, home)
    known = sorted(path.stem for path in layout.logs.glob("*.log"))
    if component is not None and component not in known:
        raise ConfigError(
            f"no log of '{component}' in {layout.logs}; there are: {', '.join(known) or 'none'}"
        )
    shown = [component] if component else known
    if follow and as_json:
        raise ConfigError("--json gives what is there now: leave --follow out")
    if follow:
        files = [str(layout.log(name)) for name in shown]
        raise typer.Exit(subprocess.run(["tail", "-n", str(lines), "-F", *files], check=False).returncode)
    if as_json:
        print_json({name: control.tail(layout, name, lines).splitlines() for name in shown})
        return
    for name in shown:
        title = "" if component else f"==> {name} <==\n"
        OUT.print(title + control.tail(layout, name, lines), markup=False)


@app.command()
def worker(
    join: Annotated[Path, typer.Option("--join", metavar="FILE", help="Copy of the stack's airflow.env.")],
    settings: SettingsOption = None,
    name: Annotated[str, typer.Option("--name", help="Its name; the host's name is added.")] = "worker",
    queues: Annotated[
        str | None, typer.Option("--queues", metavar="A,B", help="Queues it serves; the settings file's.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", metavar="N", min=1, help="Tasks at a time.")
    ] = None,
) -> None:
    """Work for a stack on another host, in the foreground until SIGTERM (docs/stack.md, Several hosts)."""
    own = _settings(settings, None)
    command, environment = join_.worker(
        join,
        own,
        inherited(os.environ),
        name=name,
        queues=queues.split(",") if queues else own.workers.queues,
        concurrency=concurrency or own.workers.concurrency,
    )
    os.execve(command[0], command, environment)


@app.command()
def compose(settings: SettingsOption = None, as_json: JsonOption = False) -> None:
    """Print docker-compose.yml as it follows from the settings file."""
    text = compose_.compose(_settings(settings, None))
    if as_json:
        print_json(yaml.safe_load(text))
    else:
        OUT.print(text, markup=False, end="")


@app.command()
def env(as_json: JsonOption = False) -> None:
    """Print fresh secrets for docker-compose.yml: `dataflow stack env > .env && chmod 600 .env`, once."""
    text = compose_.env_file()
    if as_json:
        print_json(dict(line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#"))
    else:
        OUT.print(text, markup=False, end="")


class _Progress:
    """All components while they start: a table that changes where a person watches, lines where not."""

    def __init__(self) -> None:
        self._live = Live(console=ERR, transient=True, auto_refresh=False) if ERR.is_terminal else None
        self._said: dict[str, str] = {}

    def __enter__(self) -> _Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def note(self, line: str) -> None:
        """Something that was done."""
        ERR.print(line, markup=False)

    def show(self, rows: list[report.Row]) -> None:
        """The components as they are now."""
        if self._live is not None:
            table = Table.grid(padding=(0, 2))
            for row in rows:
                color = _COLORS[row.state]
                table.add_row(row.name, Text(row.state, style=color), Text(row.detail, style="dim"))
            self._live.update(table, refresh=True)
            return
        for row in rows:
            if self._said.get(row.name) != row.state and row.state not in ("down", "waiting"):
                ERR.print(f"{row.name}: {row.state}", markup=False)
            self._said[row.name] = row.state


def _settings(
    path: Path | None, home: Path | None, workers: int | None = None, port: int | None = None
) -> StackSettings:
    return load_settings(path or default_file(), workers=workers, port=port, home=home)


def _layout(path: Path | None, home: Path | None) -> Layout:
    return Layout(_settings(path, home).home)


def _with_demo(settings: StackSettings) -> StackSettings:
    """What the demo job reads from the environment, unless the file says otherwise."""
    demo = demo_variables(REPOSITORY, settings.home)
    known = {name: value for name, value in demo.items() if name.startswith("DEMO_")}
    return settings.model_copy(update={"environment": {**known, **settings.environment}})


def _cells(row: report.Row) -> tuple[object, ...]:
    memory = None if row.memory_bytes is None else f"{row.memory_bytes / 2**20:,.0f} MiB"
    pid = None if row.pid is None else str(row.pid)
    return row.name, row.state, pid, _span(row.uptime_s), memory, row.starts or None, row.address, row.detail


def _span(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
