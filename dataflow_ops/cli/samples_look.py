"""``samples files | list | show | stats | history``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataflow_ops.cli.console import OUT, print_json, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, HomeOption, JsonOption
from dataflow_ops.cli.samples_home import opened, print_plain
from dataflow_ops.cli.samples_words import (
    Asked,
    ContainsOption,
    DatasetOption,
    DeletedOption,
    FileOption,
    LongestOption,
    RecordOption,
    RoleOption,
    RuleOption,
    ShortestOption,
    StatusOption,
    dataset_of,
    moment,
    short,
)
from dataflow_ops.errors import ConfigError

if TYPE_CHECKING:
    from dataflow_ops.state.samples.store import SampleStore

TurnArgument = Annotated[int, typer.Argument(metavar="TURN", help="Id of a turn, as `list` shows it.")]


def register(app: typer.Typer) -> None:
    """Add the commands to ``dataflow samples``."""
    for command in (files, show, stats, history):
        app.command()(command)
    app.command("list")(list_)


def files(
    dataset: DatasetOption = None, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False
) -> None:
    """Files that were imported, of one data set or of all."""
    from dataflow_ops.samples.browse import file_rows

    with opened(home) as (_, store):
        found = store.sample_files(dataset)
    if as_json:
        rows = [{**row, "dataset": f.dataset} for f, row in zip(found, file_rows(found), strict=True)]
        print_json({"files": rows})
        return
    if not found:
        OUT.print("No files yet. Import some: dataflow samples import FILE --dataset NAME", markup=False)
        return
    columns = ("id", "dataset", "file", "format", "status", "records", "turns", "refused", "imported")
    rows_ = [
        (f.id[:12], f.dataset, f.path, f.format, f.status, f.records, f.rows, f.refused, moment(f.created_at))
        for f in found
    ]
    print_table("", columns, rows_)


def list_(
    dataset: DatasetOption = None,
    file: FileOption = None,
    role: RoleOption = None,
    status: StatusOption = None,
    rule: RuleOption = None,
    contains: ContainsOption = "",
    shortest: ShortestOption = None,
    longest: LongestOption = None,
    record: RecordOption = None,
    deleted: DeletedOption = False,
    after: Annotated[
        int | None, typer.Option(metavar="TURN", min=0, help="Go on behind this turn, the last one shown.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many turns.")] = 20,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Turns that meet all that is asked, page by page."""
    from dataflow_ops.samples.browse import turn_rows

    asked = Asked(file, role, status, rule, contains, shortest, longest, record, deleted)
    with opened(home) as (_, store):
        only = asked.filter(store, dataset_of(store, dataset))
        found = turn_rows(store, only, after, limit, with_text=True)
    if as_json:
        print_json(found)
        return
    if not found["turns"]:
        OUT.print("No such turns.")
        return
    columns = ("turn", "file", "record", "n", "role", "status", "rule", "length", "content")
    rows = [
        (
            t["id"],
            t["file"][:12],
            t["record"],
            t["turn"],
            t["role"],
            t["status"],
            t["rule"],
            t["length"],
            short(t["content"]),
        )
        for t in found["turns"]
    ]
    print_table("", columns, rows)
    if found["next"] is not None:
        OUT.print(f"More: the same command with --after {found['next']}", markup=False)
    OUT.print(f"One dialogue whole: dataflow samples show {found['turns'][0]['id']}", markup=False)


def show(turn: TurnArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """The dialogue of a turn, whole."""
    from dataflow_ops.samples.browse import whole_dialogue

    with opened(home) as (_, store):
        known = _turn(store, turn)
        file = store.sample_file(known["dataset_file_id"])
        found = whole_dialogue(store, file, known["row_identifier"], with_text=True)
    if as_json:
        print_json(found)
        return
    print_plain(f"{found['path']}, record {found['record']:,}")
    if found["own"]:
        print_plain(f"  {json.dumps(found['own'], ensure_ascii=False)}")
    for one in found["turns"]:
        told = [f"{one['id']} {one['role']}", one["status"]]
        told += [one["rule"]] if one["rule"] else []
        told += [f"deleted {moment(one['deleted_at'])}"] if one["deleted_at"] is not None else []
        print_plain(f"[{', '.join(told)}]")
        if one["content"]:
            for line in one["content"].split("\n"):
                print_plain(f"  {line}")
        if one["meta"]:
            print_plain(f"  {json.dumps(one['meta'], ensure_ascii=False)}")


def stats(
    dataset: DatasetOption = None,
    file: FileOption = None,
    role: RoleOption = None,
    status: StatusOption = None,
    rule: RuleOption = None,
    contains: ContainsOption = "",
    shortest: ShortestOption = None,
    longest: LongestOption = None,
    deleted: DeletedOption = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """How many turns, dialogues and characters: by file, role, status and length."""
    from dataflow_ops.samples.browse import sums

    asked = Asked(file, role, status, rule, contains, shortest, longest, None, deleted)
    with opened(home) as (_, store):
        name = dataset_of(store, dataset)
        only = asked.filter(store, name)
        paths = {f.id: f.path.rsplit("/", 1)[-1] for f in store.sample_files(name)}
        found = sums(store, only)
    if as_json:
        print_json(found)
        return
    OUT.print(
        f"{found['turns']:,} turns, {found['dialogues']:,} dialogues, {found['characters']:,} characters",
        markup=False,
    )
    print_table("", ("file", "turns"), [(paths[f], n) for f, n in found["by_file"].items()])
    for title in ("role", "status"):
        print_table("", (title, "turns"), list(found[f"by_{title}"].items()))
    bands = [(_band(b["from"], b["to"]), b["turns"]) for b in found["by_length"] if b["turns"]]
    print_table("", ("characters", "turns"), bands)


def history(turn: TurnArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """What was changed in a turn: when, by which task, rule and person."""
    from dataflow_ops.samples import browse

    with opened(home) as (_, store):
        _turn(store, turn)
        rows: list[dict[str, Any]] = browse.history(store, turn, with_text=True)
    if as_json:
        print_json({"changes": rows})
        return
    if not rows:
        OUT.print(f"Turn {turn} is as it was imported.", markup=False)
        return
    columns = ("when", "kind", "task", "who", "rule", "field", "before", "after")
    print_table(
        "",
        columns,
        [
            (
                moment(row["created_at"]),
                row["kind"],
                row["task_id"],
                row["who"],
                row["rule"],
                row["field"],
                *(_value(row["field"], row[side]) for side in ("before", "after")),
            )
            for row in rows
        ],
    )


def _turn(store: SampleStore, turn: int) -> Mapping[str, Any]:
    known = store.turn(turn)
    if known is None:
        raise ConfigError(f"there is no turn {turn}; `dataflow samples list` shows those that are there")
    return known


def _band(start: int, end: int | None) -> str:
    if end is None:
        return f"{start:,} and more"
    return str(start) if end == start + 1 else f"{start:,} to {end - 1:,}"


def _value(field: str, value: str | None) -> str:
    if value is None:
        return ""
    return moment(float(value)) if field == "deleted_at" else short(value, 40)
