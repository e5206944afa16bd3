"""Words and options that the commands of samples share."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataflow_ops.errors import ConfigError

if TYPE_CHECKING:
    from dataflow_ops.state.samples.query import Filter
    from dataflow_ops.state.samples.store import SampleStore

DatasetOption = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="Data set; not needed where there is only one."),
]
FileOption = Annotated[
    list[str] | None,
    typer.Option("--file", metavar="FILE", help="Only this file: id, its beginning, or name. Repeatable."),
]
RoleOption = Annotated[
    list[str] | None, typer.Option("--role", metavar="ROLE", help="user, assistant, system, … Repeatable.")
]
StatusOption = Annotated[
    list[str] | None,
    typer.Option("--status", metavar="STATUS", help="NEW, KEPT, REJECTED, DUPLICATE. Repeatable."),
]
RuleOption = Annotated[
    str | None, typer.Option("--rule", metavar="RULE", help="Status decided by this rule.")
]
ContainsOption = Annotated[
    str, typer.Option("--contains", metavar="TEXT", help="Content has this text, letter by letter.")
]
ShortestOption = Annotated[
    int | None, typer.Option("--shortest", metavar="N", min=0, help="At least so many characters.")
]
LongestOption = Annotated[
    int | None, typer.Option("--longest", metavar="N", min=0, help="At most so many characters.")
]
RecordOption = Annotated[
    list[int] | None, typer.Option("--record", metavar="N", min=0, help="Record of its file. Repeatable.")
]
DeletedOption = Annotated[
    bool, typer.Option("--deleted", metavar="", help="Only what is deleted, instead of what is not.")
]


@dataclass(frozen=True, slots=True)
class Asked:
    """A filter as it stands on a command line."""

    file: Sequence[str] | None = None
    role: Sequence[str] | None = None
    status: Sequence[str] | None = None
    rule: str | None = None
    contains: str = ""
    shortest: int | None = None
    longest: int | None = None
    record: Sequence[int] | None = None
    deleted: bool = False

    def filter(self, store: SampleStore, dataset: str, *, ready: bool = False) -> Filter:
        """The filter, with the files that are meant.

        Raises:
            ConfigError: a file or a status that is not there.
        """
        from dataflow_ops.samples.browse import meant_files
        from dataflow_ops.state.samples.query import Filter

        return Filter(
            files=tuple(f.id for f in meant_files(store, dataset, self.file or (), ready=ready)),
            roles=tuple(self.role or ()),
            statuses=tuple(word.upper() for word in self.status or ()),
            rule=self.rule,
            contains=self.contains,
            shortest=self.shortest,
            longest=self.longest,
            records=tuple(self.record or ()),
            deleted=self.deleted,
        )


def dataset_of(store: SampleStore, given: str | None) -> str:
    """The data set that is meant.

    Raises:
        ConfigError: none is named, and there is none or more than one.
    """
    if given is not None:
        return given
    names = sorted({file.dataset for file in store.sample_files()})
    if not names:
        raise ConfigError("there are no samples yet: `dataflow samples import FILE --dataset NAME`")
    if len(names) > 1:
        raise ConfigError(f"name a data set with --dataset: {', '.join(names)}")
    return names[0]


def moment(seconds: float | None) -> str:
    """A time for people."""
    if seconds is None:
        return ""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def counts_told(counts: Mapping[str, float]) -> str:
    """Counts for people: ``records: 40, rows: 120``."""
    told = {name: f"{n:,.0f}" if n == int(n) else f"{n:,.4f}" for name, n in counts.items() if n}
    return ", ".join(f"{name.replace('_', ' ')}: {n}" for name, n in told.items())


def short(text: Any, most: int = 60) -> str:
    """A text on one line, cut where it is long."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
