"""ShareGPT: ``{"conversations": [{"from": "human", "value": …}, …], "system": …, …}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dataflow_ops.errors import MalformedRecord
from dataflow_ops.layers.parse.parsers.dialogue import canonical_turns
from dataflow_ops.samples.formats.dialogue import Dialogue


def suits(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format."""
    return isinstance(record.get("conversations"), list)


def read(record: Mapping[str, Any]) -> Dialogue:
    """The dialogue in a record; a ``system`` text becomes its first turn.

    Raises:
        MalformedRecord: no ``conversations``, or a turn is malformed.
    """
    if "conversations" not in record:
        raise MalformedRecord("no key 'conversations'")
    system = record.get("system")
    used = {"conversations"} | ({"system"} if isinstance(system, str) else set())
    turns = canonical_turns({"conversations": record["conversations"], "system": system})
    return Dialogue(turns, {k: v for k, v in record.items() if k not in used})
