"""Whether an answer may be a result. What is refused goes to the failure queue, it never is a result."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Final

from dataflow_ops.clients.openai_answers import Completion
from dataflow_ops.samples.augment.refusals import is_refusal
from dataflow_ops.samples.augment.templates import Check, Score

_FENCE: Final = re.compile(r"^\s*```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\s*$", re.DOTALL)
_NUMBER: Final = re.compile(r"^[+-]?\d{1,15}(?:\.\d{1,15})?$")
_FULL_WIDTH: Final = str.maketrans("０１２３４５６７８９．－", "0123456789.-")
_SHOWN: Final = 120


class AnswerRefused(ValueError):
    """An answer that is no result.

    Attributes:
        name: of the fault, as the failure queue shows it.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class Accepted:
    """A result: its text, and the number in it where it is a scoring."""

    text: str
    score: float | None = None


def accept(check: Check, completion: Completion, source: str) -> Accepted:
    """The result in an answer.

    Args:
        check: of the template.
        completion: the answer.
        source: text of the turn that was asked about.

    Returns:
        The text as the model wrote it; of JSON what is inside its code fence, where it came in one.

    Raises:
        AnswerRefused: says what is wrong.
    """
    text = completion.text
    if completion.refusal or completion.finish_reason == "content_filter":
        told = completion.refusal or "the endpoint's filter stopped the answer"
        raise AnswerRefused("Refused", f"the endpoint refuses: {_short(told)}")
    if not _is_visible(text):
        raise AnswerRefused("EmptyAnswer", "the answer is empty")
    if completion.finish_reason == "length" and check.cut_short == "reject":
        raise AnswerRefused(
            "CutShort",
            f"the answer ends at the limit of tokens, after {len(text):,} characters; raise max_tokens",
        )
    _check_characters(text, source)
    if check.refusals == "reject" and is_refusal(text):
        raise AnswerRefused("Refused", f"the answer is refusal boilerplate: {_short(text)}")
    if check.json_schema is not None or (check.score is not None and check.score.field is not None):
        fenced = _FENCE.match(text)
        text = fenced[1] if fenced else text
    score = None if check.score is None else _score(check.score, text)
    if check.json_schema is not None:
        _check_json(check.json_schema, text)
    length = len(text.strip())
    if length < check.min_chars or length > (check.max_chars or length):
        bounds = (
            f"{check.min_chars:,} to {check.max_chars:,}"
            if check.max_chars
            else f"{check.min_chars:,} or more"
        )
        raise AnswerRefused("WrongLength", f"the answer has {length:,} characters, not {bounds}")
    if check.must_differ and text.strip() == source.strip():
        raise AnswerRefused("Unchanged", "the answer is the turn's own text")
    return Accepted(text, score)


def check_schema(schema: dict[str, Any]) -> None:
    """Whether a JSON Schema can be used.

    Raises:
        ValueError: it is none, or refers to another document, which is never fetched.
    """
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as e:
        raise ValueError(f"no JSON Schema: {e.message} (at {e.json_path})") from e
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise ValueError(f"$ref {reference!r}: only references within the schema (#/…) are followed")


def _references(value: object) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for one in value.values() for found in _references(one)]
    return [found for one in value for found in _references(one)] if isinstance(value, list) else []


def _is_visible(text: str) -> bool:
    """Whether there is anything but white space and characters that nobody sees."""
    return any(unicodedata.category(c)[0] not in "CZ" for c in text)


def _check_characters(text: str, source: str) -> None:
    """What a database would replace, or what an endpoint replaced already, is not the model's text."""
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise AnswerRefused("BrokenText", "the answer holds NUL or half of a surrogate pair")
    if "\ufffd" in text and "\ufffd" not in source:
        raise AnswerRefused(
            "BrokenText", "the answer holds U+FFFD: it was decoded wrongly before it came here"
        )


def _check_json(schema: dict[str, Any], text: str) -> None:
    import jsonschema

    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(_json(text)))
    if error is not None:
        raise AnswerRefused(
            "WrongShape", f"the answer does not fit the schema at {error.json_path}: {_short(error.message)}"
        )


def _json(text: str) -> Any:
    def no_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    try:
        return json.loads(text, parse_constant=no_constant)
    except RecursionError as e:
        raise AnswerRefused("NotJson", "the answer is JSON nested too deep") from e
    except ValueError as e:
        raise AnswerRefused("NotJson", f"the answer is no JSON ({e}): {_short(text)}") from e


def _score(score: Score, text: str) -> float:
    if score.field is None:
        found: object = text.strip().translate(_FULL_WIDTH).rstrip(".。")
        if not _NUMBER.match(str(found)):
            raise AnswerRefused("NoScore", f"the answer is not a number alone: {_short(text)}")
        number = float(str(found))
    else:
        whole = _json(text)
        found = whole.get(score.field) if isinstance(whole, dict) else None
        if not isinstance(found, int | float) or isinstance(found, bool):
            raise AnswerRefused("NoScore", f"the answer has no number in {score.field!r}: {_short(text)}")
        number = float(found)
    if not score.low <= number <= score.high or (score.whole and number != int(number)):
        kind = "a whole number " if score.whole else ""
        raise AnswerRefused(
            "ScoreOutOfRange", f"the score is {number:g}, not {kind}from {score.low:g} to {score.high:g}"
        )
    return number


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
