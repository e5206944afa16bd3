"""What the tasks of a run add up to, without anybody waiting for it.

Settled steps are kept in state. What is still moving is added up in the background and remembered for a time
that grows with what it cost. A question waits for a moment for what is not known at all, or known to be had
quickly; else it takes the last answer there is. So a page answers quickly however many chunks there are, and
the database spends at most a twentieth of its time on each question.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

from dataflow_ops.state.glance import LetterGroup
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.totals import StepTotals

PATIENCE_S = 0.1
"""How long one page waits for all its questions together."""
QUICK_S = 0.05
"""What cost no more than this is waited for, though an older answer is there."""
REST = 20
"""An answer is good for so many times what it cost."""
REMEMBERED = 2_000
"""Answers at most; the oldest go first."""

_Questions = dict[tuple[str, ...], Callable[[], Any]]


@dataclass(slots=True)
class _Answer:
    value: Any = None
    known: bool = False
    asked_at: float = 0.0
    cost_s: float = 0.0
    work: Future[Any] | None = None


class Sums:
    """Sums by run and step, hits by rule, letters by group.

    Args:
        state: the open state store.
        patience_s: see :data:`PATIENCE_S`.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        state: StateStore,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._patience_s = patience_s
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, ...], _Answer] = {}
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="dataflow-sums")

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def until(self) -> float:
        """When a page that is asked for now has waited long enough: to be handed to all its questions."""
        return self._clock() + self._patience_s

    def totals(self, run_id: str, until: float | None = None) -> tuple[dict[str, StepTotals], bool]:
        """Step → sums, and whether nothing is missing that will be known in a moment."""
        found = self._state.kept_totals(run_id)
        questions: _Questions = {
            ("total", run_id, step): partial(self._state.total_of_step, run_id, step)
            for step in self._state.steps_of_run(run_id)
            if step not in found
        }
        answers = self._ask(questions, until)
        found |= {key[2]: value for key, value in answers.items() if value is not None}
        return found, len(answers) == len(questions)

    def hits(
        self, run_id: str, totals: Mapping[str, StepTotals], until: float | None = None
    ) -> tuple[dict[str, dict[str, int]], bool]:
        """Step → rule → records, for the steps of ``totals``; and whether nothing is missing."""
        removing = {step: one for step, one in totals.items() if one.rejected}
        questions: _Questions = {
            ("hits", run_id, step): partial(self._state.hits_of_step, run_id, step, one.settled)
            for step, one in removing.items()
        }
        answers = self._ask(questions, until)
        return {key[2]: value for key, value in answers.items()}, len(answers) == len(questions)

    def letters(self, run_id: str, until: float | None = None) -> tuple[list[LetterGroup], bool]:
        """Dead letters of a run by what they have in common; and whether they are known yet."""
        key = ("letters", run_id)
        answers = self._ask({key: partial(self._state.letter_groups, run_id)}, until)
        return answers.get(key, []), key in answers

    def any(
        self, key: tuple[str, ...], question: Callable[[], Any], until: float | None = None
    ) -> tuple[Any, bool]:
        """The answer to a question of any kind, and whether it is known yet."""
        answers = self._ask({key: question}, until)
        return answers.get(key), key in answers

    def forget(self, run_id: str) -> None:
        """Somebody changed a run just now: what is remembered of it is too old."""
        with self._lock:
            for key, answer in self._answers.items():
                if key[1] == run_id:
                    answer.cost_s = 0.0

    def _ask(self, questions: _Questions, until: float | None) -> dict[tuple[str, ...], Any]:
        work = []
        with self._lock:
            now = self._clock()
            for key, question in questions.items():
                answer = self._answers.pop(key, _Answer())
                self._answers[key] = answer  # the newest stand last
                fresh = answer.known and now - answer.asked_at < REST * answer.cost_s
                if not fresh and answer.work is None:
                    answer.work = self._pool.submit(self._find, answer, question)
                if answer.work is not None and (not answer.known or answer.cost_s <= QUICK_S):
                    work.append(answer.work)
            for key in list(self._answers)[: max(0, len(self._answers) - REMEMBERED)]:
                del self._answers[key]
        left = self._patience_s if until is None else until - self._clock()
        for done in wait(work, max(0.0, left)).done:
            done.result()  # a database that is away is told to whoever asks
        with self._lock:
            return {
                key: found.value
                for key in questions
                if (found := self._answers.get(key)) is not None and found.known
            }

    def _find(self, answer: _Answer, question: Callable[[], Any]) -> Any:
        began = self._clock()
        try:
            value = question()
        except BaseException:
            with self._lock:
                answer.work, answer.known = None, False
            raise
        with self._lock:
            answer.value, answer.known, answer.work = value, True, None
            answer.asked_at = began
            answer.cost_s = self._clock() - began
        return value
