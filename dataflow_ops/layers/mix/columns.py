"""Columns of what the mix layer writes."""

from __future__ import annotations

import pyarrow as pa

from dataflow_ops import schema

LABELS = schema.LABELS.append(pa.field("source_id", pa.string())).append(pa.field("text_bytes", pa.int64()))
"""``label.labels``: the shared columns, the source (a possible partition key of the output) and the
UTF-8 bytes of the text (which decide how many shards there are)."""

DOMAINS = pa.schema(
    [
        ("domain", pa.string()),
        ("ratio", pa.float64()),  # share asked for; null: the job gives no ratios
        ("asked_tokens", pa.int64()),  # of one pass, after the cap; null: everything
        ("target_tokens", pa.int64()),  # what is drawn against: asked, moved by on_shortage; null: everything
        ("cap_tokens", pa.int64()),  # null: none
        ("supply_tokens", pa.int64()),
        ("supply_documents", pa.int64()),
        ("drawn_tokens", pa.int64()),  # with repetitions
        ("drawn_rows", pa.int64()),  # with repetitions
        ("documents", pa.int64()),  # distinct documents drawn
        ("full_passes", pa.int32()),  # times every document of the domain is given
        ("threshold", pa.uint64()),  # documents at or below it are given once more; null: none is
        ("shortage_tokens", pa.int64()),  # asked and not there
        ("epoch_start", pa.int32()),  # half-open range of epochs
        ("epoch_end", pa.int32()),
    ]
)
"""``plan.domains``: one row per domain, in order of name."""

PARTITION_KEYS = ("domain", "language", "quality_level", "kind", "source")

PARTITIONS = pa.schema(
    [
        *((key, pa.string()) for key in PARTITION_KEYS),  # "" where the output is not partitioned by it
        ("path", pa.string()),  # "domain=web/language=en", "" where there is no partitioning
        ("first_shard", pa.int32()),
        ("shards", pa.int32()),
        ("total_shards", pa.int32()),  # of the whole version
        ("rows", pa.int64()),
        ("tokens", pa.int64()),
        ("text_bytes", pa.int64()),
    ]
)
"""``plan.partitions``: one row per folder of the version that has rows, with its contiguous shards."""

DRAW = pa.schema(
    [DOMAINS.field(name) for name in ("domain", "full_passes", "threshold", "epoch_start", "epoch_end")]
)
"""``plan.draw``: what decides whether a document is drawn, sliced by chunk, and nothing that only tells
about it: a domain that grew by a document elsewhere must not send every chunk through export again. The
threshold is the largest draw key at or below the domain's own that the chunk has: it draws the same."""

PLACES = pa.schema(
    [PARTITIONS.field(name) for name in (*PARTITION_KEYS, "path", "first_shard", "shards", "total_shards")]
)
"""``plan.places``: where a drawn document goes, likewise."""

NOTES = pa.schema([("note", pa.string())])
"""``plan.notes``: what a person should know about this plan, one sentence a row."""

LABEL_OF = {
    "domain": "domain",
    "language": "language",
    "quality_level": "quality_level",
    "kind": "kind",
    "source": "source_id",
}
"""Partition key -> column of ``label.labels``."""
