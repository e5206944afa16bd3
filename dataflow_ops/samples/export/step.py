"""An export, shard by shard: each is whole under its name before the cursor moves past it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dataflow_ops.samples.cleaning.dialogues import Dialogue, Turn, dialogues_of
from dataflow_ops.samples.export.forms import FORMS
from dataflow_ops.samples.export.joining import Answer, LeftOut, Record, records_of
from dataflow_ops.samples.export.lines import WRITERS, Lines
from dataflow_ops.samples.export.settings import SampleExportSettings
from dataflow_ops.samples.running import Interrupted
from dataflow_ops.state.database import Database
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.turns import read_records
from dataflow_ops.storage.blob import BlobStore

LEFT_OUT: Final = "left_out."
"""Begins the names of counts that say why dialogues or records did not go out."""
PAGE: Final = 10_000
"""Turns that are read at once."""

ReadAnswers = Callable[[str, int, int], Mapping[int, Sequence[Answer]]]
"""File, first and last ``row_identifier`` → record → what models answered about it."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where an export stands: all before ``row`` of ``file`` is out.

    Attributes:
        file: index into the task's files.
        row: ``row_identifier``.
    """

    file: int
    row: int


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard as the manifest lists it."""

    path: str
    sha256: str
    size: int
    records: int


@dataclass(frozen=True, slots=True)
class Written:
    """What came of one stretch of dialogues.

    Attributes:
        after: where to go on.
        turns: rows read; 0 where nothing was left.
        shard: None where the stretch held nothing to write.
        counts: name → number of this stretch.
    """

    after: Position
    turns: int
    shard: Shard | None
    counts: Mapping[str, float]


class Exporting:
    """One export under way.

    What goes into a shard depends on settings and rows alone, so a shard that is written again after a
    kill has the same bytes and is adopted.

    Args:
        db: the database.
        task: claimed, so that it has a snapshot.
        settings: of the export.
        blobs: where it goes.
        answers: what models answered.
        should_stop: asked after each page.
    """

    def __init__(
        self,
        db: Database,
        task: SampleTask,
        settings: SampleExportSettings,
        blobs: BlobStore,
        answers: ReadAnswers,
        should_stop: Callable[[], bool],
    ) -> None:
        self._db, self._task, self._settings, self._blobs = db, task, settings, blobs
        self._answers, self._should_stop = answers, should_stop
        self._suffix = WRITERS[settings.compression][0]

    @property
    def folder(self) -> str:
        """Where the export lies, below the storage root."""
        return f"exports/{self._task.dataset}/{self._task.task_id}"

    def shard(self, number: int, at: Position) -> Written:
        """Write the next shard, if anything is left.

        Args:
            number: of the shard, from 0.
            at: where to begin.

        Raises:
            Interrupted: ``should_stop`` said so; the shard under way was given up.
            OutputConflict: another export lies under the same name.
            StorageFull: no space left.
        """
        path = f"part-{number:05d}.{self._suffix}"
        staged = self._blobs.stage(f"{self.folder}/{path}")
        try:
            lines = Lines(staged, self._settings.compression)
            counts: Counter[str] = Counter()
            turns = 0
            for file, dialogue in self._dialogues(at):
                turns += len(dialogue[0].turns)
                self._add(dialogue, lines, counts)
                at = Position(file, dialogue[0].row_identifier + 1)
                if self._settings.shard_records and lines.records >= self._settings.shard_records:
                    break
            if not lines.records:
                return Written(at, turns, None, _told(counts))
            sha256 = lines.finish()
            size, _ = self._blobs.publish(staged.path, f"{self.folder}/{path}", sha256)
            counts.update({"records": lines.records, "bytes": size, "shards": 1})
            return Written(at, turns, Shard(path, sha256, size, lines.records), _told(counts))
        finally:
            staged.discard()

    def _add(self, dialogue: tuple[Dialogue, Sequence[Answer]], lines: Lines, counts: Counter[str]) -> None:
        one, answers = dialogue
        counts["dialogues"] += 1
        made = records_of(
            (one.file, one.row_identifier),
            one.said,
            [turn.turn_taking for turn in one.turns],
            _of_record(one.turns[0].meta),
            answers,
            originals=self._settings.originals,
            min_score=self._settings.min_score,
        )
        try:
            for record in made:
                self._put(record, lines, counts)
        except LeftOut as e:
            counts[f"{LEFT_OUT}{e}"] += 1

    def _put(self, record: Record, lines: Lines, counts: Counter[str]) -> None:
        try:
            lines.add(FORMS[self._settings.form](record))
        except LeftOut as e:
            counts[f"{LEFT_OUT}{e}"] += 1

    def _dialogues(self, at: Position) -> Iterator[tuple[int, tuple[Dialogue, Sequence[Answer]]]]:
        for number in range(at.file, len(self._task.files)):
            file, first = self._task.files[number], at.row if number == at.file else 0
            while True:
                if self._should_stop():
                    raise Interrupted
                with self._db.read() as connection:
                    rows = read_records(
                        connection,
                        file,
                        first,
                        self._task.highest_id or 0,
                        PAGE,
                        statuses=self._settings.status,
                    )
                if not rows:
                    break
                answers = self._answers(file, first, rows[-1][1])
                for dialogue in dialogues_of(file, (Turn(*row) for row in rows)):
                    yield number, (dialogue, answers.get(dialogue.row_identifier, ()))
                first = rows[-1][1] + 1


def _of_record(meta: str | None) -> dict[str, Any]:
    """Keys of the record beside its turns."""
    found: dict[str, Any] = {} if meta is None else json.loads(meta).get("record", {})
    return found


def _told(counts: Counter[str]) -> dict[str, float]:
    return {name: float(n) for name, n in counts.items() if n}
