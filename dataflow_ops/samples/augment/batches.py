"""What is to be asked, batch by batch: failures that were put back first, then the files from the cursor on.

A request that has an answer, or stands in the failure queue, is in its batch but is not asked again. That
holds for answers that another version of the template got to the very same request, too: they are judged by
this version's check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.samples.augment.render import render
from dataflow_ops.samples.augment.requests import Request, body_of, request_key, retry_key
from dataflow_ops.samples.augment.templates import Template
from dataflow_ops.samples.running import until_there
from dataflow_ops.state.cursors import files_to_read
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.samples.failures import Failure, Which, list_failures
from dataflow_ops.state.samples.generations import Known, known, version_key
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.samples.targets import (
    Turn,
    Wanted,
    count_targets,
    next_targets,
    read_dialogues,
    read_turns,
)

BATCH: Final = 10
"""Turns of a batch; each is asked about ``draws`` times."""


@dataclass(slots=True)
class Batch:
    """Requests that move the cursor together.

    Attributes:
        requests: those that are to be asked.
        after: where the cursor stands when all have ended.
        rows: turns in it.
        known: what was known before of its other requests.
    """

    requests: list[Request]
    after: CursorRecord
    rows: int
    known: dict[str, Known] = field(default_factory=dict)


class Batches:
    """The batches of one claim of a task.

    Args:
        store: read from.
        claim: of the task.
        template: what is asked.
    """

    def __init__(self, store: SampleStore, claim: Claim, template: Template) -> None:
        task = claim.task
        if task.highest_id is None:
            raise StateError(f"sample task {task.task_id} was claimed without a snapshot")
        self._store = store
        self._task = task
        self._template = template
        self._at = claim.cursor or CursorRecord(None, 0, 0, {})
        target = template.target
        self._wanted = Wanted(target.turns, target.roles, target.status, task.highest_id)

    def total(self) -> int:
        """How many requests the whole task has."""
        with self._store.read() as connection:
            turns = count_targets(connection, self._wanted, self._task.files)
        return turns * self._template.draws

    def __iter__(self) -> Iterator[Batch]:
        """Batches in order; each is read when it is asked for."""
        yield from self._put_back()
        for file, offset in files_to_read(self._task.files, self._claimed()):
            start = (offset, _turn_of(self._at) if file == self._at.file_id else 0)
            while True:
                batch = until_there(self._store, partial(self._next, file, start))
                if batch is None:
                    break
                start = (batch.after.offset, _turn_of(batch.after))
                self._at = batch.after
                yield batch

    def _claimed(self) -> CursorRecord | None:
        return None if self._at.file_id is None else self._at

    def _put_back(self) -> Iterator[Batch]:
        """Failures that somebody put back, each under a new key. The cursor stays where it is."""
        after = ""
        while True:
            found = until_there(self._store, partial(self._failures, after))
            if not found:
                return
            after = found[-1][0].key
            requests = [_again(failure, turn, self._template) for failure, turn in found]
            yield Batch(requests, self._at, 0)

    def _failures(self, after: str) -> list[tuple[Failure, Turn]]:
        which = Which(task_id=self._task.task_id, state="REQUEUED")
        with self._store.read() as connection:
            failures = list_failures(connection, which, BATCH, after)
            turns = read_turns(connection, [failure.sample_id for failure in failures])
        return [(failure, turns[failure.sample_id]) for failure in failures]

    def _next(self, file: str, start: tuple[int, int]) -> Batch | None:
        with self._store.read() as connection:
            targets = next_targets(connection, self._wanted, file, start, BATCH)
            if not targets:
                return None
            dialogues = read_dialogues(
                connection, file, [target.row for target in targets], self._wanted.highest_id
            )
            requests = self._requests(targets, dialogues)
            there, left = self._sorted(connection, requests)
        processed = self._at.processed_rows + len(targets)
        after = _behind(targets[-1], dialogues[targets[-1].row], processed)
        return Batch(left, after, len(targets), there)

    def _sorted(
        self, connection: sa.Connection, requests: Sequence[Request]
    ) -> tuple[dict[str, Known], list[Request]]:
        """What is known of requests for this prompt version, and the requests that are left."""
        version = self._template.prompt_version
        there = known(connection, [request.key for request in requests])
        others = {key: one for key, one in there.items() if one.prompt_version != version}
        settled = {key: one for key, one in there.items() if key not in others}
        settled |= known(connection, [version_key(key, version) for key in others])
        left = []
        for request in requests:
            other = others.get(request.key)
            if other is None:
                if request.key not in settled:
                    left.append(request)
            elif (own := version_key(request.key, version)) not in settled:
                # An answer is judged by this version's check; what failed for another one is asked anew.
                stored = (other.answer, other.finish_reason) if other.how == "answered" else None
                left.append(replace(request, key=own, stored=stored))
        return settled, left

    def _requests(self, targets: Sequence[Turn], dialogues: Mapping[int, Sequence[Turn]]) -> list[Request]:
        found = []
        for target in targets:
            for draw in range(self._template.draws):
                messages = render(self._template, dialogues[target.row], target, draw)
                body = body_of(self._template, messages, draw)
                key = request_key(target.sample_id, target.turn, draw, body)
                found.append(_request(key, target, draw, body))
        return found


def _request(
    key: str, turn: Turn, draw: int, body: Mapping[str, object], retry_of: str | None = None
) -> Request:
    return Request(key, turn.sample_id, turn.file_id, turn.row, turn.turn, draw, turn.content, body, retry_of)


def _again(failure: Failure, turn: Turn, template: Template) -> Request:
    """A failed request once more, with the prompt that somebody wrote for it where there is one."""
    messages = failure.edited_prompt if failure.edited_prompt is not None else failure.prompt
    body = body_of(template, messages, failure.draw)
    return _request(retry_key(failure.key, body), turn, failure.draw, body, failure.key)


def _behind(last: Turn, dialogue: Sequence[Turn], processed: int) -> CursorRecord:
    """Where the cursor stands behind a turn: at the next record, or within this one where more may come."""
    if last.turn == dialogue[-1].turn:
        return CursorRecord(last.file_id, last.row + 1, processed, {})
    return CursorRecord(last.file_id, last.row, processed, {"turn": last.turn + 1})


def _turn_of(at: CursorRecord) -> int:
    """The first turn not yet asked about in the record where the cursor stands."""
    turn = at.detail.get("turn", 0)
    return turn if isinstance(turn, int) else 0
