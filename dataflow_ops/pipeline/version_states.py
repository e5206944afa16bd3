"""The states of a published version, as they are recorded and as they are shown."""

from __future__ import annotations

from typing import Final

from dataflow_ops.state.versions import INCREMENT, PUBLISHED, REJECTED, REMOVED

__all__ = [
    "BECAME_CURRENT",
    "INCREMENT",
    "INCREMENT_OF",
    "PAST_RETENTION",
    "PUBLISHED",
    "REJECTED",
    "REMOVED",
    "SHOWN_WAITING",
    "WAITING",
    "WITH_SET",
    "became",
    "shown",
    "unreadable",
]

WAITING: Final = "AWAITING_APPROVAL"
"""Nobody has let it become current yet."""
SHOWN_WAITING: Final = "WAITING"
"""How :data:`WAITING` is shown."""
PAST_RETENTION: Final = "files were removed after its time of retention"
"""Why a version in the state :data:`REMOVED` can't be used; what has no files is told before it."""
BECAME_CURRENT: Final = "became current"
INCREMENT_OF: Final = "an increment of "
"""Notes of the event that a version was published: as the current one, or as an increment; any other note
says why it waits for a person."""
WITH_SET: Final = "it was run with --set"
"""Why a version waits that nothing else holds back."""


def shown(state: str, current: bool) -> str:
    """A version's state for people.

    Homes of older releases may have a current version that is marked as waiting.
    """
    if state == WAITING:
        return PUBLISHED if current else SHOWN_WAITING
    return state


def unreadable(version: str, removed: str) -> str:
    """What a person is told who reads a version that retention took the files from, or from one below it."""
    which = "its" if version == removed else f"it builds on {removed}, whose"
    return (
        f"{version} can't be read, {which} {PAST_RETENTION}; `dataflow versions list` shows what is still"
        " there"
    )


def became(note: str) -> str:
    """What the event that a version was published made of it: ``current``, ``increment`` or ``waiting``."""
    if note == BECAME_CURRENT:
        return "current"
    return "increment" if note.startswith(INCREMENT_OF) else "waiting"
