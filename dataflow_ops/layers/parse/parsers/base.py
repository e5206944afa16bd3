"""What a parser is: a named, versioned function from a document's bytes to its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Hints:
    """What is known of a document besides its bytes.

    Attributes:
        path: path inside the source (extension, folder names).
        charset: declared by the transport, or ``""``.
        main_content: HTML without menus, headers and footers.
    """

    path: str = ""
    charset: str = ""
    main_content: bool = True


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a parser gives.

    Attributes:
        text: the document's text, before normalising; may be empty.
        title: or ``""``.
        metadata: JSON-able facts (front matter, PDF fields, extra columns).
        repairs: marks of what was mended: ``html``, ``fence``, …
        encoding: codec that the text was read with, ``""`` where the format has none of its own.
        code_language: ``python``, …; ``""`` where it is not code.
        messages: turns of a dialogue, each with ``role`` and ``content`` first; None else.
    """

    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()
    encoding: str = ""
    code_language: str = ""
    messages: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Parser:
    """One way to read one kind of document.

    Attributes:
        name: stable; stored with every document as ``name@version``.
        version: raised whenever output changes.
        parse: ``parse(data, hints)``; raises DocumentError where the document can't be read.
        guarded: runs in the child process with limits, because its library is native code or its run
            time is not linear in the input.
        kind_hint: ``code``, ``dialogue`` or ``""``.
        libraries: distributions whose version shapes output; part of the step's fingerprint.
    """

    name: str
    version: int
    parse: Callable[[bytes, Hints], ParsedDocument]
    guarded: bool = False
    kind_hint: str = ""
    libraries: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """``name@version``."""
        return f"{self.name}@{self.version}"
