"""PDF by pypdfium2: the text layer, page by page. Scanned pages have none; no OCR is done."""

from __future__ import annotations

import re
from typing import Any, Final

from dataflow_ops.errors import ParserFailed
from dataflow_ops.layers.parse.parsers.base import Hints, ParsedDocument, Parser

_HYPHEN: Final = re.compile("[\ufffe\x02]\\s*")
"""PDFium's sign for a hyphen at the end of a line: the word goes on in the next one."""
_FIELDS: Final = ("Author", "Subject", "Keywords", "CreationDate")


def parse_pdf(data: bytes, hints: Hints) -> ParsedDocument:
    """Text of all pages, separated by an empty line.

    Raises:
        ParserFailed: encrypted, or not readable as PDF.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as e:
        text = str(e)
        raise ParserFailed(
            "the PDF is encrypted" if "assword" in text else f"not a readable PDF: {text}"
        ) from e
    try:
        pages = []
        for page in document:
            text_page = page.get_textpage()
            pages.append(text_page.get_text_range())
            text_page.close()
            page.close()
        info = document.get_metadata_dict(skip_empty=True)
    except pypdfium2.PdfiumError as e:
        raise ParserFailed(f"page {len(pages) + 1} of the PDF can't be read: {e}") from e
    finally:
        document.close()
    text = "\n\n".join(_HYPHEN.sub("", page).replace("\r\n", "\n").strip() for page in pages)
    metadata: dict[str, Any] = {"pages": len(pages)}
    metadata.update({name.lower(): info[name] for name in _FIELDS if info.get(name)})
    return ParsedDocument(text.strip(), str(info.get("Title", "")).strip(), metadata)


PARSER: Final = Parser("pdf", 1, parse_pdf, guarded=True, libraries=("pypdfium2",))
