"""Rows of turns put together to dialogues, and what of a dialogue is read by rules and compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dataflow_ops.layers.parse.parsers.dialogue import render

INSTRUCTIONS: Final = frozenset({"system", "developer"})
"""Roles whose turns frame a dialogue; many dialogues share theirs to the letter."""


class Turn(NamedTuple):
    """A row of ``sample`` as far as a clean-up reads it."""

    id: int
    row_identifier: int
    turn_taking: int
    role: str
    content: str
    meta: str | None
    status: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """All turns of one record.

    Attributes:
        file: id of its file.
        row_identifier: the record's ordinal there.
        turns: in order, at least one.
    """

    file: str
    row_identifier: int
    turns: Sequence[Turn]
    said: Sequence[dict[str, Any]] = field(init=False)
    """The turns as ``role``, ``content`` and further keys."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "said", [_said(turn) for turn in self.turns])

    def text(self) -> str:
        """Readable text of all turns: what the rules judge."""
        return render(self.said)

    def compared(self) -> str:
        """Readable text without instructions, which would make strangers alike; all of it where there is
        nothing else.
        """
        return render([turn for turn in self.said if turn["role"] not in INSTRUCTIONS] or self.said)


def dialogues_of(file: str, turns: Iterable[Turn]) -> list[Dialogue]:
    """Neighbouring rows of one record, put together.

    Args:
        file: id of the file.
        turns: ascending by record, then turn.
    """
    found: list[Dialogue] = []
    mine: list[Turn] = []
    for turn in turns:
        if mine and turn.row_identifier != mine[0].row_identifier:
            found.append(Dialogue(file, mine[0].row_identifier, mine))
            mine = []
        mine.append(turn)
    if mine:
        found.append(Dialogue(file, mine[0].row_identifier, mine))
    return found


def _said(turn: Turn) -> dict[str, Any]:
    if turn.meta is None:
        return {"role": turn.role, "content": turn.content}
    more = json.loads(turn.meta)
    more.pop("record", None)  # of the record, not of what is said
    return {"role": turn.role, "content": turn.content, **more}
