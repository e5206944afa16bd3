"""What a format makes of one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One record of any format.

    Attributes:
        turns: each with ``role`` and ``content`` first, then its other keys.
        own: the record's further keys (its user's id, tools, source, …).
    """

    turns: Sequence[Mapping[str, Any]]
    own: Mapping[str, Any] = field(default_factory=dict)
