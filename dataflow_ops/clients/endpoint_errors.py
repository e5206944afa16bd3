"""What asking an endpoint for an answer may end with, and where a question waits.

::

    EndpointError
    ├── EndpointAway        overloaded, broken or out of reach at every try: ask again later
    ├── QuestionRefused     this question is refused: asking again does not help
    ├── EndpointRefused     every question is refused: check address, key and account
    └── UnreadableAnswer    an answer came that can't be read: its bytes are kept
    CallStopped             told to stop while the question waited
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from dataflow_ops.errors import DataFlowError


class EndpointError(DataFlowError):
    """A question got no answer that can be read.

    Attributes:
        raw: bytes of the last answer as they came, without the API key; empty where none came.
        tries: how often it was asked.
        lost: tries that reached the endpoint and whose usage is not known: it may have worked, and charged.
        about_all: whether other questions would meet the same, so that the caller should stop asking.
    """

    about_all: ClassVar[bool] = False

    def __init__(self, message: str, raw: bytes = b"", tries: int = 1, lost: int = 0) -> None:
        super().__init__(message)
        self.raw = raw
        self.tries = tries
        self.lost = lost


class EndpointAway(EndpointError):
    """Overloaded, broken or out of reach, at every try: ask again later."""

    retryable = True
    about_all = True


class QuestionRefused(EndpointError):
    """The endpoint refuses this question (too long, not allowed): asking again does not help."""


class EndpointRefused(EndpointError):
    """The endpoint refuses everything: check address, key, model and account."""

    about_all = True


class UnreadableAnswer(EndpointError):
    """The endpoint answered, but with broken JSON, in a wrong encoding, or with something else."""


class CallStopped(DataFlowError):
    """The caller was told to stop while the question waited; it has not been asked since."""


class Gate(Protocol):
    """All waiting of a question, so that the caller can end it. Each raises :class:`CallStopped` then."""

    def admit(self, tokens: int, lost: int) -> None:
        """Wait until a try of so many tokens may go out, after so many lost ones. Called before each try."""

    def hold(self, seconds: float) -> None:
        """Admit nobody for so long: the endpoint asked for it."""

    def rest(self, seconds: float) -> None:
        """Wait between two tries."""
