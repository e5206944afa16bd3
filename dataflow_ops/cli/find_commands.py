"""``find``: where is this in our data?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from dataflow_ops.cli.console import OUT, print_json
from dataflow_ops.cli.options import DEFAULT_HOME, PANEL_LOOK, HomeOption, JsonOption
from dataflow_ops.errors import ConfigError


def find(
    query: Annotated[
        str | None, typer.Argument(metavar="TEXT|URL|ID", help="Document id, the start of one, URL, or text.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Look for the text in this file ('-': standard input)."),
    ] = None,
    by: Annotated[str, typer.Option(metavar="HOW", help="auto, id, url or text.")] = "auto",
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="VERSION", help="This version instead of the current ones."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Only this data set; all when left out.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Where something is in the current version of each data set: kept, or what removed it."""
    from dataflow_ops.console.search import search_home

    if (query is None) == (file is None):
        raise ConfigError("say what to look for: a document id, a URL or a text, or --file FILE")
    if file is not None:
        query, by = _read(file), "text"
    assert query is not None
    found = search_home(home, query, by=by, dataset=dataset, version=version)
    if as_json:
        print_json(found)
        return
    for row in found["results"]:
        OUT.print(Text(_line(row)))
    versions, chunks = found["searched"]["versions"], found["searched"]["chunks"]
    whole = "" if found["complete"] else "; there may be more"
    looked = f"{versions} version(s), {chunks:,} chunk(s)"
    OUT.print(f"{len(found['results'])} found by {found['by']} in {looked}{whole}", markup=False)


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as e:
        raise ConfigError(f"--file {file}: can't be read ({e.strerror})") from e
    return data.decode("utf-8", "replace")


def _line(row: dict[str, Any]) -> str:
    why = {
        "kept": f"kept in {row['shard']}",
        "removed": f"removed in {row['layer']} by {row['rule']}",
        "dead": f"dead letter of {row['layer']}: {row['rule']}",
        "not_sampled": "kept by every step, but not drawn by the mix",
    }[row["status"]]
    if row["survivor"]:
        why += f", in favour of {row['survivor']}"
    like = "the same text, " if row["exact"] else ""
    if not row["exact"] and row["similarity"] is not None:
        like = f"similarity {row['similarity']:.3f}, "
    where = f"{row['source']}: {row['url'] or row['path']}"
    line = f"{row['doc_id'] or '(a whole file)'}  {row['dataset']} {row['version']}  {like}{why}  ({where})"
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command(rich_help_panel=PANEL_LOOK)(find)
