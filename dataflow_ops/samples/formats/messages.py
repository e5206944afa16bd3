"""``{"messages": [{"role": …, "content": …}, …], …}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dataflow_ops.errors import MalformedRecord
from dataflow_ops.layers.parse.parsers.dialogue import canonical_turns
from dataflow_ops.samples.formats.dialogue import Dialogue


def suits(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format."""
    return isinstance(record.get("messages"), list)


def read(record: Mapping[str, Any]) -> Dialogue:
    """The dialogue in a record.

    Raises:
        MalformedRecord: no ``messages``, or a turn is malformed.
    """
    if "messages" not in record:
        raise MalformedRecord("no key 'messages'")
    turns = canonical_turns({"messages": record["messages"]})
    return Dialogue(turns, {k: v for k, v in record.items() if k != "messages"})
