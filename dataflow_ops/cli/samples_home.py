"""What the commands of samples share: opening the home, and printing what came from outside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataflow_ops.cli.console import OUT

if TYPE_CHECKING:
    from dataflow_ops.pipeline.home import Home
    from dataflow_ops.state.samples.store import SampleStore


@contextmanager
def opened(home: Path) -> Iterator[tuple[Home, SampleStore]]:
    """The home, and the samples in its state database.

    Raises:
        ConfigError: there is no such home.
    """
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.state.samples.store import SampleStore

    found = open_home(home, create=False)
    with SampleStore(found.state_url) as store:
        yield found, store


def print_request(body: Mapping[str, Any]) -> None:
    """A request to a model: parameters on one line, then each message under its role."""
    rest = {name: value for name, value in body.items() if name != "messages"}
    if rest:
        print_plain("  " + json.dumps(rest, ensure_ascii=False))
    for message in body["messages"]:
        print_plain(f"  [{message.get('role')}]")
        for line in str(message.get("content")).splitlines():
            print_plain(f"    {line}")


def print_plain(text: str) -> None:
    """Text from samples and models, which must not move the cursor of a terminal."""
    from rich.text import Text

    OUT.print(Text("".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)))
