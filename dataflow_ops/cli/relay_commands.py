"""``relay run | status | list | retry | drop``: telling outside systems what happens."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataflow_ops.cli.console import ERR, OUT, print_json, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_WAITING, HomeOption, JsonOption
from dataflow_ops.errors import ConfigError

if TYPE_CHECKING:
    from dataflow_ops.pipeline.relay_lane import Tally

app = typer.Typer(
    no_args_is_help=True,
    help="Tell outside systems of runs, tasks and versions: signed webhooks (docs/webhooks.md).",
)
_LINE_EVERY_S = 10.0

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ID…", help="Ids as listed: an event, or EVENT/ENDPOINT.")
]
EndpointOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only deliveries to this endpoint.")]


@app.command()
def run(
    once: Annotated[
        bool,
        typer.Option(
            "--once", metavar="", help="End when nothing is due any more, instead of waiting for more."
        ),
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Send events to the endpoints of webhooks.yaml until Ctrl-C or SIGTERM. Several may run at a time."""
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.pipeline.relay import Relay
    from dataflow_ops.pipeline.relay_desk import standings

    opened = open_home(home, create=False)
    with _line(quiet=as_json) as show:
        relay = Relay(opened, os.environ, once, lambda line: ERR.print(line, markup=False), show)
        relay.run()
    left = standings(opened.path, os.environ)
    done = {name: {"sent": t.sent, "failed": t.failed, "dead": t.dead} for name, t in relay.tallies.items()}
    if as_json:
        print_json({"done": done, "endpoints": [one.as_json() for one in left]}, told=("last_error",))
    else:
        for name, tally in sorted(relay.tallies.items()):
            waiting = sum(one.backlog.waiting for one in left if one.backlog.endpoint == name)
            OUT.print(f"{name}: {waiting:,} waiting, {tally.told}.", markup=False)
    waits = any(one.backlog.waiting for one in left) or any(t.dead for t in relay.tallies.values())
    if once and waits:
        raise typer.Exit(EXIT_WAITING)


@app.command()
def status(
    prometheus: Annotated[
        bool, typer.Option("--prometheus", metavar="", help="Print metrics in the Prometheus text format.")
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """What waits for each endpoint, for how long, and what is dead."""
    from dataflow_ops.pipeline.relay_desk import span, standings

    rows = standings(home, os.environ)
    if prometheus:
        from dataflow_ops.observe.prometheus import relay_exposition

        typer.echo(relay_exposition(one.backlog for one in rows), nl=False)
    elif as_json:
        print_json([one.as_json() for one in rows])
    elif not rows:
        OUT.print("No endpoints: webhooks.yaml in the home names them (docs/webhooks.md).")
    else:
        columns = ("endpoint", "waiting", "oldest", "dead", "sent", "last sent", "url", "last error")
        cells = []
        for one in rows:
            b, fields = one.backlog, one.as_json()
            oldest = None if b.oldest_s is None else span(b.oldest_s)
            url = one.url or "(in no file)"
            cells.append(
                (b.endpoint, b.waiting, oldest, b.dead, b.sent, fields["last_sent_at"], url, b.last_error)
            )
        print_table("", columns, cells)


@app.command("list")
def list_(
    state: Annotated[
        str, typer.Option(metavar="STATE", help="PENDING, SENT, DEAD, DROPPED, or all.")
    ] = "DEAD",
    endpoint: EndpointOption = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many to show.")] = 50,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Deliveries in a state, the oldest event first; dead ones where no state is named."""
    from dataflow_ops.pipeline.relay_desk import list_deliveries

    rows = list_deliveries(home, None if state == "all" else state, endpoint, limit)
    if as_json:
        print_json(rows)
        return
    if not rows:
        OUT.print("No deliveries." if state == "all" else f"No deliveries in state {state}.", markup=False)
        return
    columns = ("id", "topic", "subject", "state", "attempts", "created_at", "next_attempt_at", "last_error")
    print_table("", columns, [tuple(row[c] for c in columns) for row in rows])
    if state == "DEAD":
        OUT.print("Try again: dataflow relay retry ID …   Give up: dataflow relay drop ID …")


@app.command()
def retry(
    ids: IdsArgument = None,
    every: Annotated[bool, typer.Option("--all", metavar="", help="All dead deliveries.")] = False,
    endpoint: EndpointOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Send dead deliveries anew; by id also at once what would be tried again later."""
    from dataflow_ops.pipeline.relay_desk import change_deliveries

    _said(change_deliveries(home, "retry", ids or (), every, endpoint), "put back", as_json)


@app.command()
def drop(
    ids: IdsArgument = None,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Without ids: all dead and waiting deliveries to this endpoint."),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Give deliveries up, dead or waiting: they are never sent, and the next of their subject goes on."""
    from dataflow_ops.pipeline.relay_desk import change_deliveries

    if not ids and endpoint is None:
        raise ConfigError("relay drop: name ids as `dataflow relay list` shows them, or --endpoint NAME")
    _said(change_deliveries(home, "drop", ids or (), not ids, endpoint), "dropped", as_json)


def _said(number: int, what: str, as_json: bool) -> None:
    if as_json:
        print_json({"deliveries": number})
    else:
        word = "1 delivery" if number == 1 else f"{number:,} deliveries"
        OUT.print(f"{word} {what}.", markup=False)


@contextmanager
def _line(*, quiet: bool) -> Iterator[Any]:
    """A line that changes where a person watches; else one now and then, when something has changed."""
    if quiet:
        yield lambda tallies: None
        return
    if ERR.is_terminal:
        with ERR.status("looking for events") as status:
            yield lambda tallies: status.update(_summary(tallies))
        return
    last, said = time.monotonic(), ""

    def tell(tallies: Mapping[str, Tally]) -> None:
        nonlocal last, said
        text = _summary(tallies)
        if text != said and time.monotonic() - last >= _LINE_EVERY_S:
            last, said = time.monotonic(), text
            ERR.print(text, markup=False)

    yield tell


def _summary(tallies: Mapping[str, Tally]) -> str:
    return "   ".join(f"{name}: {tally.told}" for name, tally in sorted(tallies.items()))
