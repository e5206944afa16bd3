"""``samples augment`` and ``samples template check``."""

from __future__ import annotations

import getpass
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataflow_ops.cli import samples_failures
from dataflow_ops.cli.augment_progress import AugmentProgress
from dataflow_ops.cli.console import OUT, counted, print_json
from dataflow_ops.cli.options import (
    DEFAULT_HOME,
    EXIT_FAILED,
    EXIT_PAUSED,
    EXIT_WAITING,
    HomeOption,
    JsonOption,
)
from dataflow_ops.cli.samples_home import opened, print_request
from dataflow_ops.cli.samples_running import watch_of

if TYPE_CHECKING:
    from dataflow_ops.samples.augment.templates import Template

template = typer.Typer(no_args_is_help=True, help="Templates of what a model is asked.")

TemplateOption = Annotated[Path, typer.Option("--template", metavar="FILE", help="Template (YAML).")]
DatasetOption = Annotated[str, typer.Option("--dataset", metavar="NAME", help="Whose samples.")]


def register(app: typer.Typer) -> None:
    """Add the commands to ``dataflow samples``."""
    app.command()(augment)
    app.add_typer(template, name="template")
    app.add_typer(samples_failures.app, name="failures")


def augment(
    template_file: TemplateOption,
    dataset: DatasetOption,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", envvar="DATAFLOW_MODEL_URL", help="Endpoint, without /chat/completions."),
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds the API key.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(metavar="N", help="Questions at once.")] = None,
    requests_per_minute: Annotated[float | None, typer.Option(metavar="N", help="Rate limit.")] = None,
    tokens_per_minute: Annotated[float | None, typer.Option(metavar="N", help="Rate limit.")] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Pause before this many tokens are passed.")
    ] = None,
    budget_cost: Annotated[
        float | None, typer.Option(metavar="X", help="Pause before this much is passed, by the prices.")
    ] = None,
    task_id: Annotated[
        str | None, typer.Option("--task", metavar="ID", help="Name of the task; made up when left out.")
    ] = None,
    lease_s: Annotated[
        float,
        typer.Option(
            "--lease", metavar="SECONDS", min=1.0, help="Silence after which another process may go on."
        ),
    ] = 60.0,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Ask a model about the samples of a data set. The same command goes on where it stopped."""
    from dataflow_ops.samples.augment.opening import opened_api
    from dataflow_ops.samples.augment.run import ask_for_task, run_augment
    from dataflow_ops.state.database import PATIENCE_S

    wanted = _load(
        template_file,
        endpoint={"base_url": base_url, "api_key_env": api_key_env},
        limits={
            "concurrency": concurrency,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
            "budget_tokens": budget_tokens,
            "budget_cost": budget_cost,
        },
    )
    hears = AugmentProgress(wanted.prices.currency, quiet=as_json)
    with opened(home) as (place, store), opened_api(wanted) as api, _ended_by_signal():
        task = ask_for_task(store, wanted, dataset, getpass.getuser(), task_id)
        store.be_patient(PATIENCE_S)
        watch = watch_of(place, store, task)
        try:
            ended = run_augment(store, task, wanted, api, watch, hears, lease_s=lease_s)
        finally:
            hears.close()
    if as_json:
        print_json(ended.as_json(), told=("message",))
    else:
        OUT.print(f"{ended.task_id}: {ended.state.lower()}, {ended.message}", markup=False)
    if ended.state in ("FAILED", "CANCELLED"):
        raise typer.Exit(EXIT_FAILED)
    if ended.state == "PAUSED":
        raise typer.Exit(EXIT_PAUSED)
    if ended.waiting:
        raise typer.Exit(EXIT_WAITING)


@template.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Template (YAML).")],
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Show it with a turn of this data set.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Check a template, and show the first request as it would be sent. Asks no model."""
    from dataflow_ops.samples.augment.preview import preview

    wanted = _load(file)
    if dataset is None:
        shown = preview(wanted)
    else:
        with opened(home) as (_, store):
            shown = preview(wanted, store, dataset)
    if as_json:
        about = {"name": wanted.name, "kind": wanted.kind, "prompt_version": wanted.prompt_version}
        print_json({**about, "result": wanted.result_as, "draws": wanted.draws, "preview": shown})
        return
    target = wanted.target
    OUT.print(
        f"{wanted.name}: kind {wanted.kind}, result {wanted.result_as}, prompt version"
        f" {wanted.prompt_version[:12]}\n"
        f"asks {wanted.model} about {target.turns} turn of {', '.join(target.roles)}"
        f" (status {', '.join(target.status)}), {counted(wanted.draws, 'draw')}",
        markup=False,
    )
    of = "the example" if shown["sample_id"] is None else f"sample {shown['sample_id']}"
    OUT.print(f"The request for {of}, turn {shown['turn']} ({shown['role']}):", markup=False)
    print_request(shown["body"])


def _load(path: Path, **sections: dict[str, Any]) -> Template:
    from dataflow_ops.samples.augment.template_file import load_template

    given = {name: {k: v for k, v in values.items() if v is not None} for name, values in sections.items()}
    return load_template(path, {name: values for name, values in given.items() if values})


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """SIGTERM ends the task as Ctrl-C does: answers under way are waited for, then it is paused."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
