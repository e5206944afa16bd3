"""``samples failures list | show | edit | requeue | drop``."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataflow_ops.cli.console import OUT, counted, print_json, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, HomeOption, JsonOption
from dataflow_ops.cli.samples_home import opened, print_plain, print_request
from dataflow_ops.errors import ConfigError

if TYPE_CHECKING:
    from dataflow_ops.state.samples.failures import Which

app = typer.Typer(no_args_is_help=True, help="Requests to a model that brought no good answer.")

KeysArgument = Annotated[
    list[str] | None, typer.Argument(metavar="KEY…", help="Keys as listed; or use --task, --error or --all.")
]
TaskOption = Annotated[str | None, typer.Option("--task", metavar="ID", help="Only of this task.")]
ErrorOption = Annotated[str | None, typer.Option("--error", metavar="NAME", help="Only with this error.")]
AllOption = Annotated[bool, typer.Option("--all", metavar="", help="All open failures.")]


@app.command("list")
def list_(
    task_id: TaskOption = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help="OPEN, REQUEUED, DROPPED, SOLVED or REPLACED."),
    ] = "OPEN",
    error: ErrorOption = None,
    every: Annotated[bool, typer.Option("--all", metavar="", help="In any state.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many to show.")] = 50,
    after: Annotated[str, typer.Option(metavar="KEY", help="Go on behind this key.")] = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Failures, and how many there are by state and error."""
    from dataflow_ops.samples.augment.queue import list_queue
    from dataflow_ops.state.samples.failures import Which

    with opened(home) as (_, store):
        found = list_queue(store, Which(task_id, None if every else state, error), limit, after)
    if as_json:
        print_json(found)
        return
    if not found["groups"]:
        OUT.print("No failures." if every or not state else f"No failures that are {state}.", markup=False)
        return
    groups = [tuple(group.values()) for group in found["groups"]]
    print_table("", ("state", "error", "failures"), groups)
    columns = ("key", "sample_id", "draw", "state", "error", "message")
    rows = [(row["key"][:12], *(row[c] for c in columns[1:])) for row in found["failures"]]
    print_table("", columns, rows)
    if found["next"]:
        OUT.print(
            f"{len(rows):,} of {found['total']:,}; the next: dataflow samples failures list"
            f" --after {found['next']}",
            markup=False,
        )
    OUT.print(
        "One whole: dataflow samples failures show KEY   Ask again: dataflow samples failures requeue KEY …",
        markup=False,
    )


@app.command()
def show(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key, or its beginning.")],
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """One failure: what was sent, what came back, and the error."""
    from dataflow_ops.samples.augment import queue

    with opened(home) as (_, store):
        found = queue.show(store, key)
    if as_json:
        print_json(found)
        return
    for name in ("key", "task", "sample_id", "draw", "state", "error", "message", "attempts", "retry_of"):
        print_plain(f"{name:<10} {found[name] if found[name] is not None else ''}".rstrip())
    print_request({"model": found["model"], **found["parameters"], "messages": found["prompt"]})
    if found["edited_prompt"] is not None:
        OUT.print("To be sent instead:")
        print_request({"messages": found["edited_prompt"]})
    OUT.print("Answer:")
    print_plain(found["raw_answer"] if found["raw_answer"] is not None else "(none came)")


@app.command()
def edit(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key, or its beginning.")],
    messages: Annotated[
        Path | None,
        typer.Option("--messages", metavar="FILE", help="JSON or YAML; without it your editor opens."),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Change the messages that are sent when a failure is asked again."""
    from dataflow_ops.samples.augment import queue

    with opened(home) as (_, store):
        text = _edited(queue.messages_of(queue.show(store, key))) if messages is None else _read(messages)
        whole = queue.edit(store, key, text)
    if as_json:
        print_json({"key": whole, "edited": True})
        return
    OUT.print(
        f"{whole[:12]} has new messages. Ask again: dataflow samples failures requeue {whole[:12]}",
        markup=False,
    )


@app.command()
def requeue(
    keys: KeysArgument = None,
    task_id: TaskOption = None,
    error: ErrorOption = None,
    every: AllOption = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Let failures be asked again by the next run of their task, under new keys."""
    _change(_which(keys, task_id, error, every), "REQUEUED", home, as_json)


@app.command()
def drop(
    keys: KeysArgument = None,
    task_id: TaskOption = None,
    error: ErrorOption = None,
    every: AllOption = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Give failures up: they stay as they are, and are asked no more."""
    _change(_which(keys, task_id, error, every), "DROPPED", home, as_json)


def _which(keys: list[str] | None, task_id: str | None, error: str | None, every: bool) -> Which:
    from dataflow_ops.state.samples.failures import Which

    if not (keys or task_id or error or every):
        raise ConfigError("say which failures: KEY …, --task ID, --error NAME, or --all")
    # What a person gave up comes back only by its key.
    return Which(task_id, None if keys else "OPEN", error, tuple(keys or ()))


def _change(which: Which, state: str, home: Path, as_json: bool) -> None:
    from dataflow_ops.samples.augment import queue

    with opened(home) as (_, store):
        changed = queue.change(store, which, state, getpass.getuser())
    if as_json:
        print_json({"failures": sum(changed.values()), "tasks": changed})
        return
    word = "put back" if state == "REQUEUED" else "dropped"
    then = (
        "; the same `dataflow samples augment` command asks again" if changed and word == "put back" else ""
    )
    OUT.print(f"{counted(sum(changed.values()), 'failure')} {word}{then}.", markup=False)


def _edited(messages: Any) -> str:
    import click

    text = click.edit(json.dumps(messages, ensure_ascii=False, indent=2), extension=".json")
    if text is None:
        raise ConfigError("nothing was changed; save the file in the editor, or give --messages FILE")
    return text


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise ConfigError(f"{path}: not UTF-8 (at byte {e.start:,})") from e
