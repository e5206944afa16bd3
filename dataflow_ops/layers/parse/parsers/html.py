"""HTML by resiliparse: main content without menus, fast."""

from __future__ import annotations

from typing import Final

from dataflow_ops.errors import ParserFailed
from dataflow_ops.layers.parse.parsers.base import Hints, ParsedDocument, Parser
from dataflow_ops.layers.parse.parsers.html_source import read_markup

MAX_DEPTH: Final = 1500
"""Nesting above which main content is not looked for: its time grows with the square of the depth (1,000
levels 10 ms, 4,000 levels 140 ms, 60,000 levels more than 20 s), plain extraction stays linear."""


def parse_html(data: bytes, hints: Hints) -> ParsedDocument:
    """Text of a page.

    Raises:
        UndecodableText: no encoding gives readable text.
        ParserFailed: the markup gives no document.
    """
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    markup = read_markup(data, hints)
    try:
        tree = HTMLTree.parse(markup.text.replace("\x00", ""))
    except (ValueError, RuntimeError) as e:
        raise ParserFailed(f"resiliparse: {e}") from e
    main = hints.main_content and markup.depth <= MAX_DEPTH
    text = extract_plain_text(tree, preserve_formatting=True, main_content=main, alt_texts=False)
    if main and not text.strip():
        # Short pages without paragraphs have no main content by its heuristics, but have text.
        text = extract_plain_text(tree, preserve_formatting=True, main_content=False, alt_texts=False)
    repairs = ("html",) if markup.broken else ()
    return ParsedDocument(text.strip(), (tree.title or "").strip(), {}, repairs, markup.encoding)


PARSER: Final = Parser("html", 1, parse_html, guarded=True, libraries=("Resiliparse",))
