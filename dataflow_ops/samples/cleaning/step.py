"""A clean-up, batch by batch: read, normalise, judge, compare, and write what came out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dataflow_ops.samples.cleaning.dialogues import Dialogue, Turn, dialogues_of
from dataflow_ops.samples.cleaning.duplicates import Deduplicator, Duplicate
from dataflow_ops.samples.cleaning.judging import Judge
from dataflow_ops.samples.cleaning.normalising import Change, Normaliser
from dataflow_ops.samples.cleaning.settings import SampleCleanSettings
from dataflow_ops.samples.cleaning.survivors import Place
from dataflow_ops.state.database import Database
from dataflow_ops.state.samples import turns as state
from dataflow_ops.state.samples.records import SampleTask

REJECTED, DUPLICATE = "REJECTED", "DUPLICATE"
_SHOWN = 12
"""Digits of a file's id that name it, as commands print them."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What one batch comes to.

    Attributes:
        next_row: ``row_identifier`` to go on with.
        turns: rows processed.
        rows: updates of ``sample``.
        changes: rows of ``sample_change``.
        counts: name → number of this batch.
    """

    next_row: int
    turns: int
    rows: Sequence[dict[str, Any]]
    changes: Sequence[dict[str, Any]]
    counts: Mapping[str, float]

    def write(self, connection: sa.Connection, db: Database) -> None:
        """Write all of it in the caller's transaction.

        Raises:
            StateError: a turn is not there any more: nothing may be committed.
        """
        state.write_verdicts(connection, db, self.rows, self.changes)


class Cleaning:
    """One clean-up under way.

    The outcome depends on settings, files and rows alone. Whoever takes a task up again reads the dialogues
    that were kept before its cursor, and those of the data set's other files, once more.

    Args:
        db: the database.
        task: claimed, so that it has a snapshot.
        settings: of the clean-up.
    """

    def __init__(self, db: Database, task: SampleTask, settings: SampleCleanSettings) -> None:
        self._db, self._task, self._settings = db, task, settings
        self._normaliser, self._judge = Normaliser(settings), Judge(settings)
        self._deduplicator = Deduplicator(settings, self._compared)

    def remember(self, file: str | None, before: int) -> int:
        """Read what is kept already; to be called once, before the first batch.

        Args:
            file: where the task stands; None: at the beginning.
            before: ``row_identifier`` to go on with.

        Returns:
            How many dialogues are remembered.
        """
        if self._settings.dedup.exact or self._settings.dedup.near:
            if self._settings.near.scope == "dataset":
                with self._db.read() as connection:
                    others = state.other_files(connection, self._task.dataset, self._task.files)
                for other in others:
                    self._remember(other, None)
            done = self._task.files.index(file) if file is not None else 0
            for mine in self._task.files[:done]:
                self._remember(mine, None)
            if file is not None:
                self._remember(file, before)
        return len(self._deduplicator.kept)

    def batch(self, file: str, first: int) -> Cleaned | None:
        """Clean the next records of a file; None where there are none left.

        Args:
            file: of the task's files.
            first: ``row_identifier`` to begin with.
        """
        with self._db.read() as connection:
            rows = state.read_records(connection, file, first, self._highest(), self._settings.batch_rows)
        if not rows:
            return None
        changes: list[Change] = []
        dialogues, control = self._normalised(file, rows, changes)
        refused = self._judge.refused(dialogues, control)
        left = [i for i, rule in enumerate(refused) if not rule]
        already = self._deduplicator.beyond
        places = [(file, dialogues[i].row_identifier) for i in left]
        found = self._deduplicator.find(places, [dialogues[i].compared() for i in left])
        same = dict(zip(left, found, strict=True))
        counts: Counter[str] = Counter(
            {
                "turns": len(rows),
                "dialogues": len(dialogues),
                "not_compared": self._deduplicator.beyond - already,
            }
        )
        updates, history = _written(self._task.task_id, dialogues, refused, same, changes, rows, counts)
        return Cleaned(
            rows[-1][1] + 1, len(rows), updates, history, {name: n for name, n in counts.items() if n}
        )

    def _normalised(
        self, file: str, rows: Sequence[state.TurnRow], changes: list[Change]
    ) -> tuple[list[Dialogue], list[int]]:
        turns: list[Turn] = []
        removed: Counter[int] = Counter()
        for row in rows:
            turn, control = self._normaliser.turn(Turn(*row), changes)
            turns.append(turn)
            if control:
                removed[turn.row_identifier] += control
        dialogues = dialogues_of(file, turns)
        return dialogues, [removed[one.row_identifier] for one in dialogues]

    def _remember(self, file: str, before: int | None) -> None:
        for page in state.kept_pages(self._db, file, self._highest(), before):
            dialogues = dialogues_of(file, (Turn(*row) for row in page))
            places = [(file, one.row_identifier) for one in dialogues]
            self._deduplicator.remember(places, [one.compared() for one in dialogues])

    def _compared(self, places: Sequence[Place]) -> dict[Place, str]:
        found: dict[Place, list[Turn]] = {}
        with self._db.read() as connection:
            for file, row in state.read_dialogues(connection, self._db, places):
                turn = Turn(*row)
                found.setdefault((file, turn.row_identifier), []).append(turn)
        return {place: Dialogue(*place, turns).compared() for place, turns in found.items()}

    def _highest(self) -> int:
        return self._task.highest_id or 0


def _written(
    task_id: str,
    dialogues: Sequence[Dialogue],
    refused: Sequence[str],
    same: Mapping[int, Duplicate | None],
    changes: Sequence[Change],
    rows: Sequence[state.TurnRow],
    counts: Counter[str],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Updates and history of a batch; what happened is added to ``counts``."""
    contents: dict[int, str] = {}
    ordinal: Counter[int] = Counter()
    history: list[dict[str, Any]] = []
    for change in changes:
        contents[change.sample_id] = change.after
        ordinal[change.sample_id] += 1
        counts[f"changed.{change.rule}"] += 1
        history.append(_change(task_id, change))
    counts["turns_changed"] = len(contents)
    updates = []
    before = {row[0]: row[6] for row in rows}
    for i, dialogue in enumerate(dialogues):
        status, rule = _verdict(refused[i], same.get(i))
        counts[status.lower()] += 1
        if status == REJECTED:
            counts[f"rule.{rule}"] += 1
        for turn in dialogue.turns:
            row: dict[str, Any] = {"id": turn.id, "status": status, "status_rule": rule or None}
            if turn.id in contents:
                row |= {"data_content": contents[turn.id], "data_length": len(contents[turn.id])}
            updates.append(row)
            if status != state.KEPT:
                verdict = Change(turn.id, ordinal[turn.id], rule, "status", before[turn.id], status)
                history.append(_change(task_id, verdict))
    return updates, history


def _verdict(rule: str, duplicate: Duplicate | None) -> tuple[str, str]:
    if rule:
        return REJECTED, rule
    if duplicate is not None:
        file, row = duplicate.survivor
        return DUPLICATE, f"{duplicate.kind} {duplicate.similarity:.4f} of {file[:_SHOWN]}:{row}"
    return state.KEPT, ""


def _change(task_id: str, change: Change) -> dict[str, Any]:
    return {
        "sample_id": change.sample_id,
        "task_id": task_id,
        "ordinal": change.ordinal,
        "rule": change.rule,
        "field": change.field,
        "before": change.before,
        "after": change.after,
    }
