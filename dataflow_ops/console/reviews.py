"""People's word on removed documents: what the audit of the rules is fed with."""

from __future__ import annotations

from typing import Any

from dataflow_ops.console.place import Place
from dataflow_ops.console.runs import known_run
from dataflow_ops.errors import ConfigError
from dataflow_ops.observe.ids import full_id

MAX_NOTE = 2_000


def review(place: Place, run_id: str, doc_id: str, rule: str, verdict: str, who: str, note: str = "") -> None:
    """Say of a removed document: keep (wrongly removed), drop (rightly), or nothing any more (``""``).

    Raises:
        NotThere: no such run.
        ConfigError: no such verdict, or the id is none.
    """
    row = known_run(place, run_id)
    whole = full_id(doc_id)
    if len(whole) != 32:
        raise ConfigError(f"'{doc_id}' is the beginning of an id: give all 32 digits")
    if not rule:
        raise ConfigError("say which rule removed the document")
    place.state.set_review(row.dataset, whole, rule, run_id, verdict, who, note[:MAX_NOTE])


def counts(place: Place, run_id: str) -> dict[str, Any]:
    """How many were given in a run, by rule, most first.

    Raises:
        NotThere: no such run.
    """
    row = known_run(place, run_id)
    said = place.state.count_reviews(row.dataset, run_id)
    rules = sorted(said, key=lambda rule: (-sum(said[rule].values()), rule))
    return {
        "keep": sum(one.get("keep", 0) for one in said.values()),
        "drop": sum(one.get("drop", 0) for one in said.values()),
        "by_rule": [
            {"rule": rule, "keep": said[rule].get("keep", 0), "drop": said[rule].get("drop", 0)}
            for rule in rules
        ],
    }
