"""One question from its reservation to its durable end. Runs in threads; what it shares is made for that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import sqlalchemy as sa

from dataflow_ops.clients.endpoint_errors import CallStopped, EndpointError, EndpointRefused
from dataflow_ops.clients.openai_answers import Completion
from dataflow_ops.clients.openai_api import OpenAiApi
from dataflow_ops.samples.augment.budget import Bound, Budget, BudgetReached
from dataflow_ops.samples.augment.pacing import Pacing
from dataflow_ops.samples.augment.requests import Request
from dataflow_ops.samples.augment.templates import Template
from dataflow_ops.samples.augment.validate import AnswerRefused, accept
from dataflow_ops.samples.running import until_there
from dataflow_ops.state.samples.generations import Asked, Usage, record_answer, record_failure
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore

_MOST_RAW: Final = 65_536
"""Characters of a raw answer that the failure queue keeps."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a question ended.

    Attributes:
        request: what was asked.
        how: ``answered`` and ``failed`` are durable; ``stopped`` and ``budget`` left nothing.
        usage: what it took.
        error: name of the failure.
        message: for people.
        about_all: the failure is the endpoint's, not this question's.
        final: the endpoint refuses everything: all were told to stop.
    """

    request: Request
    how: Literal["answered", "failed", "stopped", "budget"]
    usage: Usage
    error: str = ""
    message: str = ""
    about_all: bool = False
    final: bool = False


Ask = Callable[[Request], Outcome]
"""Asks, validates, makes the end durable; how it ended."""


class Caller:
    """Asks questions for one claim of a task.

    Args:
        store: whose patience is how long a database that is away is waited for.
        claim: of the task.
        template: whose check decides what a result is.
        api: the endpoint.
        pacing: rate limits.
        budget: tokens and money.
        stop: set when no further question is to be asked.
    """

    def __init__(
        self,
        store: SampleStore,
        claim: Claim,
        template: Template,
        api: OpenAiApi,
        pacing: Pacing,
        budget: Budget,
        stop: threading.Event,
    ) -> None:
        self._store = store
        self._claim = claim
        self._template = template
        self._api = api
        self._pacing = pacing
        self._budget = budget
        self._stop = stop

    def __call__(self, request: Request) -> Outcome:
        """Ask, validate, make the end durable.

        Raises:
            LeaseLost: somebody else owns the task now; nothing was written.
            StateError: the database stayed away.
        """
        try:
            outcome = self._ended(request)
        except BaseException:
            # What can't be written must not be asked: the other threads learn it before their next question.
            self._stop.set()
            raise
        if outcome.final:
            self._stop.set()
        return outcome

    def _ended(self, request: Request) -> Outcome:
        if request.stored is not None:
            text, finish = request.stored
            return self._judged(
                request, Completion(text, finish, "", 0, 0, text.encode(), 0, 0, 0.0), Usage()
            )
        gate = _CallGate(self._pacing, self._budget, request, self._template)
        try:
            completion = self._api.complete(request.body, request.key, gate, gate.tokens)
        except (CallStopped, BudgetReached) as e:
            how: Literal["stopped", "budget"] = "budget" if isinstance(e, BudgetReached) else "stopped"
            return gate.settled(Outcome(request, how, gate.usage(None, gate.lost), message=str(e)))
        except EndpointError as e:
            return gate.settled(self._failed(request, e, gate.usage(None, e.lost)))
        return gate.settled(self._judged(request, completion, gate.usage(completion, completion.lost)))

    def _judged(self, request: Request, completion: Completion, usage: Usage) -> Outcome:
        try:
            taken = accept(self._template.check, completion, request.source)
        except AnswerRefused as e:
            raw = completion.raw.decode("utf-8", "backslashreplace")
            return self._queued(request, e.name, str(e), raw, usage, completion.tries)
        self._durable(
            lambda connection: record_answer(
                connection,
                self._store.db,
                self._claim.task.task_id,
                self._asked(request),
                taken.text,
                self._template.result_as,
                taken.score,
                usage,
                completion.seconds,
                completion.finish_reason,
            )
        )
        return Outcome(request, "answered", usage)

    def _failed(self, request: Request, error: EndpointError, usage: Usage) -> Outcome:
        # Bytes that are no text are kept as \xNN: what came stays readable, whatever its encoding.
        raw = error.raw.decode("utf-8", "backslashreplace") if error.raw else None
        name = type(error).__name__
        return self._queued(
            request,
            name,
            str(error),
            raw,
            usage,
            error.tries,
            about_all=error.about_all,
            final=isinstance(error, EndpointRefused),
        )

    def _queued(
        self,
        request: Request,
        error: str,
        message: str,
        raw: str | None,
        usage: Usage,
        tries: int,
        *,
        about_all: bool = False,
        final: bool = False,
    ) -> Outcome:
        self._durable(
            lambda connection: record_failure(
                connection,
                self._store.db,
                self._claim.task.task_id,
                self._asked(request),
                error,
                message,
                None if raw is None else raw[:_MOST_RAW],
                usage,
                tries,
            )
        )
        return Outcome(request, "failed", usage, error, message, about_all, final)

    def _durable(self, write: Callable[[sa.Connection], None]) -> None:
        def in_transaction() -> None:
            with self._store.write() as connection:
                self._store.hold(connection, self._claim)
                write(connection)

        # The same row written twice is one row, so a commit of unknown end is simply repeated.
        until_there(self._store, in_transaction)

    def _asked(self, request: Request) -> Asked:
        sent = {k: v for k, v in request.body.items() if k not in ("messages", "model")}
        return Asked(
            request.key,
            request.retry_of,
            request.sample_id,
            request.file_id,
            request.row,
            request.turn,
            request.draw,
            self._template.name,
            self._template.prompt_version,
            self._template.model,
            request.body["messages"],
            sent,
        )


class _CallGate:
    """Where one question waits: its budget is reserved anew for each try, and settled when it has ended."""

    def __init__(self, pacing: Pacing, budget: Budget, request: Request, template: Template) -> None:
        self._pacing = pacing
        self._budget = budget
        self._prompt = request.most_prompt_tokens
        self._completion = template.most_completion_tokens
        self._bound = budget.bound(self._prompt, self._completion)
        self._reserved = False
        self.tokens = self._bound.tokens
        self.lost = 0
        """Tries whose usage never came; they count as spent already."""

    def admit(self, tokens: int, lost: int) -> None:
        """Count a lost try as spent, reserve what the next may take, and wait for its turn."""
        if lost > self.lost:
            self._budget.settle(self._bound, self.usage(None, lost - self.lost))
            self.lost, self._reserved = lost, False
        if not self._reserved:
            self._budget.reserve(self._bound)
            self._reserved = True
        self._pacing.admit(tokens)

    def hold(self, seconds: float) -> None:
        """Nobody is admitted for so long."""
        self._pacing.hold(seconds)

    def rest(self, seconds: float) -> None:
        """Wait between two tries."""
        self._pacing.rest(seconds)

    def usage(self, completion: Completion | None, lost: int) -> Usage:
        """What the tries took; where the endpoint does not count, the most that it may be."""
        prompt = answer = 0
        if completion is not None:
            prompt = self._prompt if completion.prompt_tokens is None else completion.prompt_tokens
            answer = (
                self._completion if completion.completion_tokens is None else completion.completion_tokens
            )
        return Usage(
            prompt,
            answer,
            self._budget.cost(prompt, answer),
            lost * self._bound.tokens,
            lost * self._bound.cost,
        )

    def settled(self, outcome: Outcome) -> Outcome:
        """Give back what was reserved and not used."""
        bound = self._bound if self._reserved else Bound(0, 0.0)
        used = outcome.usage - self.usage(None, self.lost)
        self._budget.settle(bound, used)
        self._pacing.give_back(bound.tokens - used.tokens)
        return outcome
