"""What came before what, by the decisions of a data set's history."""

from __future__ import annotations

import pytest

from dataflow_ops.pipeline.version_trail import Trail, trail
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.version_events import VersionEvent


def follow(story: str, states: dict[str, str] | None = None) -> Trail:
    """Each word is a decision: ``+A`` made and current, ``?A`` made and waits, ``yA`` approved, ``<A`` back
    to it, ``!A`` made current by a later run, ``dA`` an increment.
    """
    words = story.split()
    names = dict.fromkeys(word[1:] for word in words)
    made = {word[1:]: i for i, word in reversed(list(enumerate(words)))}
    versions = [
        VersionRecord(
            "set", name, "", "", "run", (states or {}).get(name, "PUBLISHED"), float(made[name]), False,
            "incremental" if f"d{name}" in words else "full",
        )
        for name in names
    ]  # fmt: skip
    kinds = {
        "+": ("published", "became current"),
        "?": ("published", "share of domain 'a' moved"),
        "d": ("published", "an increment of 2026-01-01"),
        "y": ("approved", "fine"),
        "<": ("rolled_back", "worse"),
        "!": ("promoted", ""),
    }
    history = [
        VersionEvent("set", word[1:], kinds[word[0]][0], "Li", kinds[word[0]][1], float(i))
        for i, word in enumerate(words)
    ]
    return trail(versions[::-1], history[::-1])


@pytest.mark.parametrize(
    ("story", "before"),
    [
        ("+A", {}),
        ("+A +B +C", {"B": "A", "C": "B"}),
        # Somebody went back from B: it is not what came before A, nor before C.
        ("+A +B <A", {"B": "A"}),
        ("+A +B <A +C", {"B": "A", "C": "A"}),
        ("+A +B +C <B", {"B": "A", "C": "B"}),
        ("+A +B +C <A +D", {"D": "A", "C": "B", "B": "A"}),
        # And went to it again after all.
        ("+A +B <A <B", {"B": "A"}),
        ("+A +B <A !B +C", {"B": "A", "C": "B"}),
        # What waits is set against what was current when it was made; approved later, against what is then.
        ("+A ?B +C", {"B": "A", "C": "A"}),
        ("+A ?B +C yB", {"C": "A", "B": "C"}),
        ("+A ?B +C yB <C", {"C": "A", "B": "A"}),
        ("dX +A dY +B dZ", {"B": "A", "Y": "X", "Z": "Y"}),
    ],
)
def test_before(story: str, before: dict[str, str]) -> None:
    assert dict(follow(story).before) == before


def test_rejected_and_cleared_versions_are_passed_over() -> None:
    assert dict(follow("+A +B +C", {"B": "REJECTED"}).before) == {"B": "A", "C": "A"}
    assert dict(follow("+A +B", {"A": "REMOVED"}).before) == {}


def test_who_left_a_version_is_known_until_it_is_current_again() -> None:
    (name, event), = follow("+A +B <A").left.items()  # fmt: skip
    assert (name, event.version_id, event.who, event.note) == ("B", "A", "Li", "worse")
    assert follow("+A +B <A <B").left == {}
    assert set(follow("+A +B +C <A").left) == {"C"}
    assert set(follow("+A +B <A +C <A").left) == {"B", "C"}


def test_a_history_that_begins_late_goes_by_age_where_it_must() -> None:
    versions = [
        VersionRecord("set", name, "", "", "run", "PUBLISHED", at, False)
        for name, at in (("B", 2.0), ("A", 1.0))
    ]
    history = [
        VersionEvent("set", "A", "rolled_back", "Li", "worse", 4.0),
        VersionEvent("set", "B", "published", "run", "became current", 2.0),
    ]
    found = trail(versions, history)
    assert (dict(found.before), set(found.left)) == ({}, {"B"})
