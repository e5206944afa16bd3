"""A request and its key: a hash of all that decides the answer, so that nothing is asked for twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataflow_ops.samples.augment.templates import Template
from dataflow_ops.state.database import dump


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked once.

    Attributes:
        key: of the request; sent as idempotency key.
        sample_id: row that is asked about.
        file_id: its file.
        row: its record.
        turn: its place in the dialogue.
        draw: from 0.
        source: text of the row.
        body: what is sent.
        retry_of: key of the failed request that this one asks again; None for the first.
        stored: an answer that another prompt version got to the very same request, and why it ended: it is
            judged, and nothing is asked.
    """

    key: str
    sample_id: int
    file_id: str
    row: int
    turn: int
    draw: int
    source: str
    body: Mapping[str, Any]
    retry_of: str | None = None
    stored: tuple[str, str] | None = None

    @property
    def most_prompt_tokens(self) -> int:
        """An upper bound: no byte-level tokenizer makes more tokens than there are bytes of UTF-8.

        Chat formats add a few tokens around each message.
        """
        messages: Sequence[Mapping[str, Any]] = self.body["messages"]
        texts = (json.dumps(m, ensure_ascii=False).encode("utf-8", "surrogatepass") for m in messages)
        return 16 + sum(16 + len(text) for text in texts)


def body_of(template: Template, messages: Sequence[Mapping[str, Any]], draw: int) -> dict[str, Any]:
    """What is sent for one draw."""
    seed = {} if template.seed is None else {"seed": template.seed + draw}
    return {**template.parameters, **seed, "model": template.model, "messages": list(messages)}


def request_key(sample_id: int, turn: int, draw: int, body: Mapping[str, Any]) -> str:
    """SHA-256 of sample, turn, draw, prompt, model and parameters, in hexadecimal."""
    return _hash({"sample": sample_id, "turn": turn, "draw": draw, "body": body})


def retry_key(failed: str, body: Mapping[str, Any]) -> str:
    """The key under which a failed request is asked again: another one, that follows from the old."""
    return _hash({"retry_of": failed, "body": body})


def _hash(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(dump(parts).encode()).hexdigest()
