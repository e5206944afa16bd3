"""Requests and answers of guarded parsers as plain bytes: a small JSON head, then the document raw."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any, Final

from dataflow_ops import errors
from dataflow_ops.errors import DocumentError, ParserFailed
from dataflow_ops.layers.parse.guard import Answer, Request
from dataflow_ops.layers.parse.parsers import BY_NAME
from dataflow_ops.layers.parse.parsers.base import Hints, ParsedDocument
from dataflow_ops.source_settings import SourceSettings

TARGET: Final = "dataflow_ops.layers.parse.wire:handle"
"""What the guard's child runs."""
_LENGTH: Final = struct.Struct("<I")


def preload(sources: Iterable[SourceSettings]) -> tuple[str, ...]:
    """Modules that the child imports at its start, so that no document's limits pay for them."""
    always = ("resiliparse.extract.html2text", "resiliparse.parse.html", "pypdfium2")
    return (*always, "trafilatura") if any(s.html_extractor == "trafilatura" for s in sources) else always


def request(parser: str, hints: Hints, data: bytes) -> Request:
    """Ask for one document to be parsed by the parser of that name."""
    head = json.dumps([parser, hints.path, hints.charset, hints.main_content]).encode()
    return (_LENGTH.pack(len(head)), head, data)


def handle(message: memoryview) -> bytes:
    """Parse one document (in the child). Never raises for a bad document."""
    (size,) = _LENGTH.unpack(message[:4])
    name, path, charset, main = json.loads(bytes(message[4 : 4 + size]))
    try:
        parsed = BY_NAME[name].parse(bytes(message[4 + size :]), Hints(path, charset, main))
    except DocumentError as e:
        return _framed({"error": type(e).__name__, "message": str(e)}, "")
    except MemoryError:
        raise
    except Exception as e:  # noqa: BLE001 - whatever a library raises concerns this document alone
        return _framed({"error": "ParserFailed", "message": f"{type(e).__name__}: {e}"[:500]}, "")
    head = {
        "title": parsed.title,
        "metadata": parsed.metadata,
        "repairs": parsed.repairs,
        "encoding": parsed.encoding,
        "code_language": parsed.code_language,
    }
    return _framed(head, parsed.text)


def _framed(head: dict[str, Any], text: str) -> bytes:
    encoded = json.dumps(head, default=str).encode()
    return b"".join((_LENGTH.pack(len(encoded)), encoded, text.encode("utf-8", "surrogatepass")))


def answered(answer: Answer) -> ParsedDocument | DocumentError:
    """The document in an answer, or the error that isolates it."""
    if isinstance(answer, DocumentError):
        return answer
    (size,) = _LENGTH.unpack_from(answer)
    head = json.loads(answer[4 : 4 + size])
    if "error" in head:
        kind: type[DocumentError] = getattr(errors, head["error"], ParserFailed)
        return kind(head["message"])
    return ParsedDocument(
        answer[4 + size :].decode("utf-8", "surrogatepass"),
        head["title"],
        head["metadata"],
        tuple(head["repairs"]),
        head["encoding"],
        head["code_language"],
    )
