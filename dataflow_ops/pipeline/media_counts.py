"""Documents of a run by what they are, in words for people."""

from __future__ import annotations

from collections import Counter

import pyarrow.compute as pc

from dataflow_ops.media import CODE, HTML, JSON, JSONL, MARKDOWN, PARQUET, PDF, TEXT, WARC, XHTML
from dataflow_ops.pipeline.reader import RunReader

NAMES = {
    HTML: "HTML",
    XHTML: "HTML",
    PDF: "PDF",
    MARKDOWN: "Markdown",
    TEXT: "plain text",
    JSONL: "JSON lines",
    JSON: "JSON",
    PARQUET: "Parquet rows",
    WARC: "WARC records",
}
"""Media type -> what it is called; code is called by its language."""

LANGUAGES = {
    "cmake": "CMake",
    "css": "CSS",
    "cpp": "C++",
    "csharp": "C#",
    "cuda": "CUDA",
    "javascript": "JavaScript",
    "php": "PHP",
    "sql": "SQL",
    "typescript": "TypeScript",
    "xml": "XML",
    "yaml": "YAML",
}
"""Languages that are not just written with a capital."""

_COLUMNS = ("media_type", "code_language", "path")


def documents_by_media(reader: RunReader) -> list[tuple[str, int]]:
    """``(name, documents)`` of everything that parse turned into text, most first."""
    counts: Counter[str] = Counter()
    for _, output in reader.outputs("parse", "text"):
        table = reader.read(output, columns=_COLUMNS)
        rest = pc.equal(table["media_type"], TEXT)
        is_rest = pc.and_(rest, pc.match_substring_regex(table["path"], r"(?i)\.rst$"))
        counts["reStructuredText"] += pc.sum(is_rest).as_py() or 0
        table = table.filter(pc.invert(is_rest)).group_by(["media_type", "code_language"])
        for row in table.aggregate([("path", "count")]).to_pylist():
            counts[_name(row["media_type"], row["code_language"])] += row["path_count"]
    return sorted(((n, c) for n, c in counts.items() if c), key=lambda pair: (-pair[1], pair[0]))


def _name(media_type: str, language: str) -> str:
    if language:
        return f"{LANGUAGES.get(language, language.capitalize())} code"
    return "code" if media_type == CODE else NAMES.get(media_type, media_type or "unknown")
