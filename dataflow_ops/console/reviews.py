"""People's word on removed documents: what the audit of the rules is fed with."""

from __future__ import annotations

from typing import Any

from dataflow_ops.console.place import Place
from dataflow_ops.console.runs import known_run
from dataflow_ops.errors import ConfigError
from dataflow_ops.observe.ids import full_id
from dataflow_ops.pipeline.session import latest_run
from dataflow_ops.state.reviews import ReviewRecord

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


def review_found(place: Place, run_id: str | None, document: str, verdict: str, who: str) -> ReviewRecord:
    """The same for a person who knows the document only: by its id, the start of one, or its URL.

    Args:
        place: the home.
        run_id: the run; the newest for ``None``.
        document: what :func:`~dataflow_ops.pipeline.look.lineage_of` can find.
        verdict: ``keep``, ``drop`` or ``""``.
        who: name of the person.

    Raises:
        NotThere: no such run.
        ConfigError: no such document, several, or one that no rule removed.
    """
    from dataflow_ops.pipeline.look import lineage_of

    run_id = run_id or latest_run(place.state)
    _, found = lineage_of(place.home.path, run_id, document)
    if found["fate"] not in ("rejected", "duplicate"):
        raise ConfigError(f"{found['doc_id']} was not removed by a rule in this run: it is {found['fate']}")
    review(place, run_id, found["doc_id"], found["rule"], verdict, who)
    return ReviewRecord(
        known_run(place, run_id).dataset, found["doc_id"], found["rule"], run_id, verdict, who, "", 0.0
    )


def said_of(place: Place, run_id: str | None) -> dict[tuple[str, str], ReviewRecord]:
    """``(document, rule)`` → verdict, of the run's data set: what was said in earlier runs holds on."""
    row = known_run(place, run_id or latest_run(place.state))
    return {(one.doc_id, one.rule): one for one in place.state.reviews_of(row.dataset)}


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
