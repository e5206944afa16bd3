"""Columns of the data sets between steps. Names follow the field: ``id``, ``text``, ``source``, ``url``.

A *chunk* is 8 bytes (uint64; 16 hex digits where it is a name), a *row* the position of a document in
its chunk's parse output; ``(chunk, row)`` points at a document inside a run, ``doc_id`` (16 bytes) names
it for good.
"""

from __future__ import annotations

import hashlib

import pyarrow as pa

DOC_ID = pa.binary(16)
SHA1 = pa.binary(20)

FILES = pa.schema(
    [
        ("source_id", pa.string()),
        ("path", pa.string()),  # relative to the source, forward slashes; the identity
        ("start", pa.int64()),  # byte range of a splittable file (Parquet: row groups); 0
        ("end", pa.int64()),  # exclusive; -1: to the end
        ("size", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("etag", pa.string()),
        ("media_type", pa.string()),
    ]
)
"""``discover.files``: sliced by chunk, in the order of (path, start)."""

FETCHED = pa.schema(
    [
        ("source_id", pa.string()),
        ("path", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("size", pa.int64()),
        ("sha256", pa.string()),  # of the file as stored; of a range: of the range's bytes
        ("media_type", pa.string()),
        ("charset", pa.string()),  # from the transport (HTTP header), else ""
        ("url", pa.string()),  # where the source is a list of URLs, else ""
        ("location", pa.string()),  # "" = read it at the source, else the blob it was brought to
    ]
)
"""``fetch.files``: no times, so that a touched file changes nothing downstream."""

DOCUMENTS = pa.schema(
    [
        ("doc_id", DOC_ID),
        ("text", pa.large_string()),
        ("source_id", pa.string()),
        ("path", pa.string()),
        ("position", pa.int64()),  # byte offset in the decompressed file; Parquet: row number
        ("part", pa.int32()),  # 0, or the ordinal of a piece of a split text
        ("url", pa.string()),
        ("source_record_id", pa.string()),  # the user's id: an attribute, never identity
        ("title", pa.string()),
        ("media_type", pa.string()),
        ("parser", pa.string()),  # name@version
        ("kind_hint", pa.string()),  # code | dialogue | "" (measured from the text by filter)
        ("code_language", pa.string()),  # "python", "" where not code
        ("encoding", pa.string()),
        ("repairs", pa.string()),  # comma-separated: html, fence, surrogate, nul, nan, split, …
        ("raw_chars", pa.int32()),  # characters before control characters were removed
        ("control_chars", pa.int32()),  # how many of them were control characters
        ("replacement_chars", pa.int32()),  # U+FFFD in the text
        ("metadata", pa.string()),  # JSON with sorted keys: front matter, extra columns; "" = none
        ("messages", pa.string()),  # JSON list of turns for dialogues; "" else
    ]
)
"""``parse.text``: the corpus; row i of every aligned output of later steps belongs to row i here."""

PARSE_REJECTS = pa.schema(
    [
        ("doc_id", DOC_ID),
        ("source_id", pa.string()),
        ("path", pa.string()),
        ("position", pa.int64()),
        ("part", pa.int32()),
        ("url", pa.string()),
        ("rule", pa.string()),
        ("value", pa.float64()),
        ("bound", pa.float64()),
        ("detail", pa.string()),
    ]
)
"""``parse.rejects``: records that gave no text (``empty_text``), were too long, …"""

DEAD = pa.schema(
    [
        ("level", pa.string()),  # document | file
        ("source_id", pa.string()),
        ("path", pa.string()),
        ("position", pa.int64()),
        ("doc_id", DOC_ID),  # null for files
        ("error", pa.string()),  # class name in errors.py
        ("message", pa.string()),
        ("parser", pa.string()),
        ("media_type", pa.string()),
        ("host", pa.string()),
    ]
)
"""``<step>.dead``: the engine copies these rows into the dead_letter table on commit."""

VERDICTS = pa.schema([("kept", pa.bool_()), ("kind", pa.string()), ("script", pa.string())])
"""``filter.verdicts``: aligned. kind: prose | code | table | dialogue; script: latin | han | kana | hangul
| cyrillic | arabic | … | none, the dominant script."""

REJECTS = pa.schema(
    [
        ("row", pa.uint32()),
        ("doc_id", DOC_ID),
        ("rule", pa.string()),
        ("gate", pa.string()),  # L1 | L2
        ("value", pa.float64()),
        ("bound", pa.float64()),
        ("side", pa.string()),  # low: value below bound; high: value above it
    ]
)
"""``filter.rejects``: the first failing rule, with its exact value."""

DUPLICATES = pa.schema(
    [
        ("row", pa.uint32()),
        ("verdict", pa.string()),  # exact | near
        ("survivor_chunk", pa.uint64()),
        ("survivor_row", pa.uint32()),
        ("survivor_id", DOC_ID),
        ("similarity", pa.float32()),  # edit similarity of the two key texts; 1 for exact
        (
            "copies",
            pa.uint32(),
        ),  # 0 here; on the survivor's own row (verdict "survivor") how many it stands for
    ]
)
"""``confirm.verdicts``: sliced by chunk; one row per removed document, and one per survivor of a group
(verdict ``survivor``, survivor columns pointing at itself)."""

SCORES = pa.schema([("row", pa.uint32()), ("score", pa.float32()), ("scored_by", pa.string())])
"""``score.scores``: per survivor; null and ``not scored`` until a model is there."""

LABELS = pa.schema(
    [
        ("row", pa.uint32()),
        ("doc_id", DOC_ID),
        ("domain", pa.string()),
        ("language", pa.string()),
        ("language_score", pa.float32()),
        ("kind", pa.string()),
        ("difficulty", pa.string()),
        ("task_type", pa.string()),
        ("quality_level", pa.string()),
        ("tokens", pa.int64()),
        ("chars", pa.int64()),
        ("copies", pa.uint32()),
        ("verdict", pa.string()),  # "" = goes on; else the rule that label itself applied (language)
    ]
)
"""``label.labels``: one row per survivor of filter and dedup."""

FATES = pa.schema(
    [
        ("doc_id", DOC_ID),
        ("source_id", pa.string()),
        ("path", pa.string()),
        ("position", pa.int64()),
        ("part", pa.int32()),
        ("url", pa.string()),
        ("fate", pa.string()),  # exported | rejected | duplicate | not_sampled
        ("step", pa.string()),  # where its fate was decided
        ("rule", pa.string()),
        ("value", pa.float64()),
        ("bound", pa.float64()),
        ("survivor_id", DOC_ID),
        ("similarity", pa.float32()),
        ("shard", pa.string()),
        ("copies", pa.uint32()),
    ]
)
"""``scatter.fates``: one row per document of the chunk, the version's lineage."""


def empty(schema: pa.Schema) -> pa.Table:
    """A table of no rows."""
    return schema.empty_table()


def doc_id(source_id: str, path: str, position: int, part: int = 0) -> bytes:
    """Permanent identity of a document: the first 16 bytes of SHA-256(source, path # position # part)."""
    text = f"{source_id}\x00{path}#{position}#{part}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:16]


def chunk_name(chunk: int) -> str:
    """A chunk number as a partition name: 16 hex digits."""
    return f"{chunk:016x}"
