"""Parsers: one small file per format, listed in one literal table.

To add a format, write a file with a ``PARSER`` and put it into :data:`PARSERS`. Native libraries are
imported inside the functions that need them, so that importing this package stays cheap.
"""

from __future__ import annotations

from typing import Final

from dataflow_ops import media
from dataflow_ops.layers.parse.parsers import code, html, html_trafilatura, markdown, pdf, text
from dataflow_ops.layers.parse.parsers.base import Parser

PARSERS: Final[dict[str, Parser]] = {
    media.HTML: html.PARSER,
    media.XHTML: html.PARSER,
    media.PDF: pdf.PARSER,
    media.MARKDOWN: markdown.PARSER,
    "text/x-markdown": markdown.PARSER,
    "text/x-rst": text.PARSER,
    media.TEXT: text.PARSER,
    media.CODE: code.PARSER,
    "text/x-python": code.PARSER,
}
"""Media type -> parser."""

HTML_EXTRACTORS: Final[dict[str, Parser]] = {
    "resiliparse": html.PARSER,
    "trafilatura": html_trafilatura.PARSER,
}
"""``sources.html_extractor`` -> parser of HTML."""

BY_NAME: Final[dict[str, Parser]] = {p.name: p for p in (*PARSERS.values(), *HTML_EXTRACTORS.values())}


def parser_of(media_type: str, html_extractor: str = "resiliparse") -> Parser | None:
    """The parser of a media type, or None where there is none."""
    parser = PARSERS.get(media_type)
    return HTML_EXTRACTORS[html_extractor] if parser is html.PARSER else parser
