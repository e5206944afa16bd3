"""What a template says: which turns, what is asked, of which model, what an answer must be, where it goes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from dataflow_ops.clients.openai_api import Patience, check_base_url
from dataflow_ops.errors import ConfigError
from dataflow_ops.section import Section
from dataflow_ops.state.database import dump

Kind = Literal["response", "rewrite", "question", "scoring"]
Result = Literal["next_turn", "replacement", "question", "score"]

RESULTS: Final[Mapping[str, tuple[Result, ...]]] = {
    "response": ("next_turn", "replacement"),
    "rewrite": ("replacement",),
    "question": ("question",),
    "scoring": ("score",),
}
"""What may become of a result, by kind; the first is the default."""
PLACEHOLDERS: Final[Mapping[str, str]] = {
    "turn": "text of the turn",
    "role": "who says it",
    "dialogue": "the whole dialogue, one paragraph a turn: ROLE: TEXT",
    "before": "the turns before it, in the same form",
    "after": "the turns behind it, in the same form",
    "draw": "number of the draw, from 1",
}
PLACEHOLDER: Final = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
RENDER_VERSION: Final = 1
"""Part of every prompt version: rendering the same template otherwise asks everything again."""
_OURS: Final = ("model", "messages", "stream", "n", "seed")
_LIMITS_OF_ANSWER: Final = ("max_tokens", "max_completion_tokens")
_ROLES: Final = ("user", "assistant", "system", "developer", "tool")
Positive = Annotated[float, Field(gt=0)]


class Target(Section):
    """Which turns of the samples are asked about; those without text never are.

    Attributes:
        turns: each turn that fits, or the first or the last of each dialogue.
        roles: whose turns.
        status: of the rows; ``NEW`` where nothing was cleaned.
    """

    turns: Literal["each", "first", "last"] = "each"
    roles: tuple[str, ...] = Field(default=("assistant",), min_length=1)
    status: tuple[Literal["NEW", "KEPT", "REJECTED", "DUPLICATE"], ...] = Field(
        default=("NEW", "KEPT"), min_length=1
    )

    @field_validator("roles")
    @classmethod
    def _are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for role in value:
            if role not in _ROLES:
                raise ValueError(f"no role {role!r}; known: {', '.join(_ROLES)}")
        return value


class Message(Section):
    """A message with placeholders, or (``dialogue``) turns of the dialogue as messages of their own."""

    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | None = None
    dialogue: Literal["before", "through", "whole"] | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if self.dialogue is not None:
            if self.role is not None or self.content is not None:
                raise ValueError("either dialogue, or role and content")
        elif self.role is None or not self.content:
            raise ValueError("needs role and content (or dialogue: before | through | whole)")
        for name in PLACEHOLDER.findall(self.content or ""):
            if name not in PLACEHOLDERS:
                raise ValueError(f"no placeholder {{{{{name}}}}}; known: {', '.join(PLACEHOLDERS)}")
        return self


class Score(Section):
    """Where the number of a scoring stands, and which are allowed.

    Attributes:
        low: smallest.
        high: largest.
        whole: no fractions.
        field: name in the answer's JSON object; without it the answer is the number alone.
    """

    low: float
    high: float
    whole: bool = False
    field: str | None = None

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low ({self.low:g}) must be below high ({self.high:g})")
        return self


class Check(Section):
    """What an answer must be. It is never empty, whatever is said here.

    Attributes:
        min_chars: fewest characters.
        max_chars: most characters.
        refusals: ``reject`` an answer that begins with refusal boilerplate, English or Chinese.
        cut_short: ``reject`` an answer that ended at the limit of tokens.
        must_differ: refuse an answer equal to the turn.
        json_schema: the answer must be JSON of this schema (JSON Schema, draft 2020-12).
        score: only for ``scoring``.
    """

    min_chars: int = Field(default=1, ge=1)
    max_chars: int | None = Field(default=None, ge=1)
    refusals: Literal["reject", "keep"] = "reject"
    cut_short: Literal["reject", "keep"] = "reject"
    must_differ: bool = False
    json_schema: dict[str, Any] | None = None
    score: Score | None = None

    @field_validator("json_schema")
    @classmethod
    def _is_a_schema(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            from dataflow_ops.samples.augment.validate import check_schema

            check_schema(value)
        return value

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.max_chars is not None and self.max_chars < self.min_chars:
            raise ValueError(f"max_chars ({self.max_chars}) is below min_chars ({self.min_chars})")
        return self


class Endpoint(Section):
    """Where the model answers. Not part of the prompt version: the same model may move."""

    base_url: str | None = None
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    connect_s: Positive = 10.0
    read_s: Positive = 120.0
    total_s: Positive = 300.0
    tries: int = Field(default=6, ge=1, le=20)
    back_off_s: Positive = 1.0
    most_wait_s: Positive = 3600.0

    @field_validator("base_url")
    @classmethod
    def _is_plain(cls, value: str | None) -> str | None:
        try:
            return None if value is None else check_base_url(value)
        except ConfigError as e:
            raise ValueError(str(e)) from e

    @property
    def patience(self) -> Patience:
        """For the client."""
        return Patience(
            connect_s=self.connect_s,
            read_s=self.read_s,
            total_s=self.total_s,
            tries=self.tries,
            base_s=self.back_off_s,
            most_wait_s=self.most_wait_s,
        )


class Limits(Section):
    """How much at once, how fast, how much in all. Not part of the prompt version."""

    concurrency: int = Field(default=8, ge=1, le=256)
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    budget_tokens: int | None = Field(default=None, ge=1)
    budget_cost: Positive | None = None


class Prices(Section):
    """What a million tokens costs; ``currency`` is only shown."""

    prompt: float = Field(default=0.0, ge=0)
    completion: float = Field(default=0.0, ge=0)
    currency: str = Field(default="USD", pattern=r"^[A-Za-z]{3}$")


class Template(Section):
    """A template."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    kind: Kind
    description: str = ""
    target: Target = Target()
    messages: tuple[Message, ...] = Field(min_length=1)
    model: str = Field(min_length=1, max_length=200)
    parameters: dict[str, Any]
    draws: int = Field(default=1, ge=1, le=100)
    seed: int | None = None
    """Sent as ``seed`` + number of the draw; None sends none."""
    check: Check = Check()
    result: Result | None = None
    endpoint: Endpoint = Endpoint()
    limits: Limits = Limits()
    prices: Prices = Prices()

    @field_validator("parameters")
    @classmethod
    def _can_be_sent(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in _OURS:
            if name in value:
                where = {"n": "draws"}.get(name, f"the template's own {name}")
                told = "answers are read whole" if name == "stream" else f"say it by {where}"
                raise ValueError(f"'{name}' does not belong here: {told}")
        limit = next((value[name] for name in _LIMITS_OF_ANSWER if name in value), None)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise ValueError(
                "needs max_tokens (or max_completion_tokens), a whole number: without it no budget holds"
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as e:
            raise ValueError(f"can't be sent as JSON ({e}); quote dates") from e
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        used = {name for m in self.messages for name in PLACEHOLDER.findall(m.content or "")}
        if not (used - {"role", "draw"} or any(m.dialogue for m in self.messages)):
            raise ValueError(
                "messages: nothing of the sample is in them; use {{turn}}, {{dialogue}} or a message"
                " 'dialogue: through'"
            )
        allowed = RESULTS[self.kind]
        if self.result is not None and self.result not in allowed:
            raise ValueError(f"result: of kind {self.kind} comes {' or '.join(allowed)}, not {self.result}")
        if (self.kind == "scoring") != (self.check.score is not None):
            raise ValueError(
                "check.score: needed, with low and high, for kind scoring"
                if self.kind == "scoring"
                else f"check.score: only for kind scoring, this is {self.kind}"
            )
        return self

    @property
    def result_as(self) -> Result:
        """What becomes of a result."""
        return self.result or RESULTS[self.kind][0]

    @property
    def most_completion_tokens(self) -> int:
        """Longest answer that is asked for."""
        return int(next(self.parameters[name] for name in _LIMITS_OF_ANSWER if name in self.parameters))

    @property
    def deciding(self) -> dict[str, Any]:
        """All that decides which requests are sent and which answers are taken."""
        parts = self.model_dump(
            mode="json", exclude={"description", "endpoint", "limits", "prices"}, exclude_none=True
        )
        return {**parts, "result": self.result_as, "render_version": RENDER_VERSION}

    @property
    def prompt_version(self) -> str:
        """SHA-256 of :attr:`deciding`, in hexadecimal."""
        return hashlib.sha256(dump(self.deciding).encode()).hexdigest()
