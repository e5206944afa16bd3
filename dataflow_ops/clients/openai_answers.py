"""What an answer of ``/chat/completions`` says, from its bytes. Nothing is guessed and nothing repaired."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from typing import Any, Final

_MOST_TOKENS: Final = 2**40
_CHARSET: Final = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)


class UnreadableBody(ValueError):
    """The bytes are not the answer that the interface promises: the message says why."""


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer.

    Attributes:
        text: what the model wrote, as it came; may be empty.
        finish_reason: ``stop``, ``length``, ``content_filter`` …; ``""`` where it is not told.
        refusal: the refusal of models that tell it apart from the text; mostly ``""``.
        prompt_tokens: as the endpoint counts; None where it does not.
        completion_tokens: the same for the answer.
        raw: bytes of the answer, without the API key.
        tries: how often it was asked.
        lost: earlier tries that reached the endpoint and whose answer never came.
        seconds: from the first try to the answer, waiting included.
    """

    text: str
    finish_reason: str
    refusal: str
    prompt_tokens: int | None
    completion_tokens: int | None
    raw: bytes
    tries: int
    lost: int
    seconds: float


def inflate(raw: bytes, encoding: str, most: int) -> bytes:
    """Undo a ``Content-Encoding`` that came although none was asked for.

    Args:
        raw: as received.
        encoding: the header's value.
        most: longest result in bytes.

    Raises:
        UnreadableBody: it is not what the header says, too long, or of an unknown kind.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return raw
    if name not in ("gzip", "x-gzip", "deflate"):
        raise UnreadableBody(f"the answer is encoded as {encoding!r:.40}, which was not asked for")
    machine = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        data = machine.decompress(raw, most)
    except zlib.error as e:
        raise UnreadableBody(f"the answer says that it is {name}, and is not ({e})") from e
    if not machine.eof:
        raise UnreadableBody(f"the answer ends inside its {name} data, or is longer than {most:,} bytes")
    return data


def read_completion(
    raw: bytes, content_type: str, tries: int = 1, lost: int = 0, seconds: float = 0.0
) -> Completion:
    """The answer in the bytes.

    Raises:
        UnreadableBody: wrong encoding, broken JSON, or no first choice with a message.
    """
    found = _json(_text(raw, content_type))
    if not isinstance(found, dict):
        raise UnreadableBody("the answer is JSON, but no object")
    choices = found.get("choices")
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        error = found.get("error")
        told = f"; it says: {json.dumps(error, ensure_ascii=False):.300}" if error else ""
        raise UnreadableBody(f"the answer has no choices{told}")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise UnreadableBody("the answer's first choice has no message")
    usage = found.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Completion(
        _content(message.get("content")),
        str(choices[0].get("finish_reason") or ""),
        str(message.get("refusal") or ""),
        _tokens(usage.get("prompt_tokens")),
        _tokens(usage.get("completion_tokens")),
        raw,
        tries,
        lost,
        seconds,
    )


def _text(raw: bytes, content_type: str) -> str:
    """Decode strictly: as declared, else as UTF-8, which is what JSON is."""
    declared = _CHARSET.search(content_type)
    name = declared[1] if declared else "utf-8"
    try:
        text = raw.decode("utf-8-sig" if name.lower() in ("utf-8", "utf8") else name)
    except LookupError as e:
        raise UnreadableBody(f"the answer declares the encoding {name!r:.40}, which nobody knows") from e
    except UnicodeError as e:
        at = f" (at byte {e.start:,})" if isinstance(e, UnicodeDecodeError) else ""
        raise UnreadableBody(f"the answer is not in {name}{at}") from e
    return text


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as e:
        raise UnreadableBody("the answer is JSON nested too deep") from e
    except ValueError as e:
        raise UnreadableBody(f"the answer is no JSON: {e}") from e


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _content(content: object) -> str:
    """Text of a message: a string, null, or parts of which those with text count."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        if all(isinstance(part, str) for part in parts):
            return "".join(str(part) for part in parts)
    raise UnreadableBody("the answer's content is no text")


def _tokens(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS:
        return value
    return None
