"""Columns of the training set, and of the rows on their way there."""

from __future__ import annotations

import pyarrow as pa

EXPORTED = pa.schema(
    [
        ("id", pa.string()),  # 32 hex digits; the document's permanent identity
        ("text", pa.large_string()),
        ("source", pa.string()),
        ("path", pa.string()),  # file inside the source
        ("position", pa.int64()),  # byte offset of the record in the decompressed file; Parquet: row number
        ("part", pa.int32()),  # 0, or the ordinal of a piece of a split text
        ("url", pa.string()),
        ("source_record_id", pa.string()),
        ("title", pa.string()),
        ("language", pa.string()),
        ("domain", pa.string()),
        ("kind", pa.string()),
        ("code_language", pa.string()),
        ("quality_level", pa.string()),
        ("quality_score", pa.float32()),  # null: not scored
        ("difficulty", pa.string()),
        ("task_type", pa.string()),
        ("tokens", pa.int64()),
        ("copies", pa.uint32()),  # documents removed as duplicates of this one
        ("epoch_start", pa.int32()),  # half-open range of epochs
        ("epoch_end", pa.int32()),
        ("repetition", pa.int32()),  # 0 for the first time a document is given in a pass
        ("rules_passed", pa.string()),  # name and version of the rule set
        ("parser", pa.string()),
        ("metadata", pa.string()),  # JSON object, "" = none
        ("messages", pa.string()),  # JSON list of turns, "" = none
    ]
)
"""The columns of a shard."""

ROUTED = EXPORTED.append(pa.field("shard", pa.int32())).append(pa.field("order", pa.uint64()))
"""``scatter.rows``: with the shard's number and the row's place in the shuffled output."""

FROM_PARSE = {
    "text": "text",
    "source": "source_id",
    "path": "path",
    "position": "position",
    "part": "part",
    "url": "url",
    "source_record_id": "source_record_id",
    "title": "title",
    "code_language": "code_language",
    "parser": "parser",
    "metadata": "metadata",
    "messages": "messages",
}
"""Exported column -> column of ``parse.text``."""

FROM_LABELS = ("language", "domain", "kind", "quality_level", "difficulty", "task_type", "tokens", "copies")
"""Columns taken over from ``label.labels`` under their own names."""


def shard_name(path: str, number: int, total: int) -> str:
    """A shard's name inside its version: ``domain=web/part-00017-of-01024.parquet`` without the suffix."""
    name = f"part-{number:05d}-of-{total:05d}"
    return f"{path}/{name}" if path else name
