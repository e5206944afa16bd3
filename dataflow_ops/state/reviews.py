"""What people said about removed documents: rightly removed, or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError
from dataflow_ops.state.database import Database
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.tables import review
from dataflow_ops.state.upsert import upsert

VERDICTS: Final = ("keep", "drop")
"""``keep``: wrongly removed; ``drop``: rightly removed."""

_c = review.c
_COLUMNS: Final[tuple[sa.ColumnElement[Any], ...]] = (
    _c.dataset,
    _c.doc_id,
    _c.rule,
    _c.run_id,
    _c.verdict,
    _c.who,
    _c.note,
    _c.created_at,
)


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    """One person's verdict on a document that a rule removed."""

    dataset: str
    doc_id: str
    rule: str
    run_id: str
    verdict: str
    who: str
    note: str
    created_at: float


class Reviews:
    """Verdicts by data set, document and rule. The last word counts."""

    db: Database

    def set_review(
        self, dataset: str, doc_id: str, rule: str, run_id: str, verdict: str, who: str, note: str = ""
    ) -> None:
        """Record a verdict, or take it back with an empty one.

        Args:
            dataset: the data set.
            doc_id: 32 hex digits.
            rule: what removed the document.
            run_id: the run that removed it.
            verdict: ``keep``, ``drop``, or ``""``.
            who: name of the person.
            note: for people.

        Raises:
            ConfigError: no such verdict.
        """
        if verdict and verdict not in VERDICTS:
            raise ConfigError(f"verdict {verdict!r}: use keep (wrongly removed) or drop (rightly removed)")
        key = {"dataset": dataset, "doc_id": doc_id, "rule": rule}
        with self.db.write() as connection:
            if verdict:
                now = connection.execute(sa.select(self.db.now)).scalar_one()
                row = {**key, "run_id": run_id, "verdict": verdict, "who": who, "note": note}
                upsert(connection, review, [{**row, "created_at": now}])
            else:
                connection.execute(
                    sa.delete(review).where(_c.dataset == dataset, _c.doc_id == doc_id, _c.rule == rule)
                )
            emit(
                connection,
                self.db,
                "review.set" if verdict else "review.cleared",
                doc_id,
                {"dataset": dataset, "rule": rule, "run": run_id, "verdict": verdict, "who": who},
            )

    def reviews_of(self, dataset: str, run_id: str | None = None, limit: int = 10_000) -> list[ReviewRecord]:
        """Verdicts of a data set (given in one run), newest first."""
        query = sa.select(*_COLUMNS).where(_c.dataset == dataset)
        if run_id is not None:
            query = query.where(_c.run_id == run_id)
        query = query.order_by(_c.created_at.desc(), _c.doc_id, _c.rule).limit(limit)
        with self.db.read() as connection:
            return [ReviewRecord(*row) for row in connection.execute(query)]

    def reviews_of_documents(self, dataset: str, doc_ids: Sequence[str]) -> list[ReviewRecord]:
        """Verdicts on these documents, whatever run removed them."""
        query = sa.select(*_COLUMNS).where(_c.dataset == dataset, self.db.among(_c.doc_id, doc_ids))
        with self.db.read() as connection:
            return [ReviewRecord(*row) for row in connection.execute(query)]

    def count_reviews(self, dataset: str, run_id: str | None = None) -> dict[str, dict[str, int]]:
        """Rule → verdict → documents."""
        query = sa.select(_c.rule, _c.verdict, sa.func.count()).where(_c.dataset == dataset)
        if run_id is not None:
            query = query.where(_c.run_id == run_id)
        query = query.group_by(_c.rule, _c.verdict).order_by(_c.rule, _c.verdict)
        counts: dict[str, dict[str, int]] = {}
        with self.db.read() as connection:
            for rule, verdict, number in connection.execute(query):
                counts.setdefault(rule, {})[verdict] = number
        return counts
