"""Columns of the data sets between the dedup steps, and how they become numpy arrays and back.

A document is addressed by ``(chunk, row)``; ``order_hi, order_lo`` place it in the survivor order
(:mod:`dataflow_ops.layers.dedup.order`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import I64, U8, U64
from dataflow_ops.schema import DOC_ID, SHA1, chunk_name

_ADDRESS = [("chunk", pa.uint64()), ("row", pa.uint32())]
_ORDER = [("order_hi", pa.uint64()), ("order_lo", pa.uint64())]

KEYS = pa.schema([("sha1", SHA1), *_ADDRESS, ("doc_id", DOC_ID), *_ORDER])
"""``sign.keys``: one row per kept document, sliced by key prefix."""

BANDS = pa.schema([("band", pa.uint64()), *_ADDRESS, ("key", pa.uint64()), *_ORDER])
"""``sign.bands``: one row per document and band, sliced by band prefix; ``key``: head of the SHA-1."""

GROUPS = pa.schema(
    [
        ("survivor_chunk", pa.uint64()),
        ("survivor_row", pa.uint32()),
        *_ADDRESS,
        ("doc_id", DOC_ID),
        ("sha1", SHA1),
        *_ORDER,
    ]
)
"""``exact.groups``: all members of groups of two or more equal key texts, in survivor order."""

BUCKETS = pa.schema([("bucket", pa.uint64()), *_ADDRESS])
"""``match.buckets``: members in survivor order, one bucket after another; ``bucket``: hash of the list."""

FILTERS = pa.schema([("keys", pa.int64()), ("bits", pa.large_binary())])
"""``exact.filter``, ``match.filter``: one row, the Bloom filter of the slice's keys (heads of SHA-1; band
hashes) and how many they are."""

RECALLED = pa.schema([*_ADDRESS, ("key", pa.uint64()), ("block", pa.uint32())])
"""``match.recalled``, of incremental runs: which texts of the version below which block needs; ``key``: head
of the SHA-1. Sliced by the first bits of the chunk's number, so that one task reads a chunk's text."""

GONE = pa.schema([("chunk", pa.uint64()), ("place", pa.uint32()), ("row", pa.int64())])
"""``supersede.gone``: documents of the versions below that later ones replaced. ``place``: row in the chunk's
lineage; ``row``: of its text, -1 where it has none."""

TOMBSTONES = pa.schema(
    [
        ("chunk", pa.uint64()),
        ("place", pa.uint32()),
        ("doc_id", DOC_ID),
        ("fate", pa.string()),
        ("shard", pa.string()),
    ]
)
"""``supersede.tombstones``: those of them that this run replaces, ascending by chunk and place."""

WANTED = pa.schema([("row", pa.uint32()), ("block", pa.uint32())])
"""``match.wanted``: which key texts which block needs, sliced by chunk."""

EDGES = pa.schema(
    [
        ("a_chunk", pa.uint64()),
        ("a_row", pa.uint32()),
        ("b_chunk", pa.uint64()),
        ("b_row", pa.uint32()),
        ("similarity", pa.float64()),
    ]
)
"""``verify.edges``: pairs whose edit similarity reached the threshold; a is before b in survivor order.
Where it is 0 they were not compared: both are alike to the same better document."""

NODES = pa.schema([*_ADDRESS, ("doc_id", DOC_ID), ("sha1", SHA1), *_ORDER, ("block", pa.uint32())])
"""``verify.nodes``: the documents at the ends of edges; ``block``: where their gathered text is."""

MEMBERS = pa.schema(
    [
        ("root_chunk", pa.uint64()),
        ("root_row", pa.uint32()),
        ("node_chunk", pa.uint64()),  # first of its exact group; itself without one
        ("node_row", pa.uint32()),
        *_ADDRESS,
        ("doc_id", DOC_ID),
        ("sha1", SHA1),
        *_ORDER,
        ("block", pa.int64()),  # first block in whose gathered texts its text is; -1: not gathered
    ]
)
"""``unite.members``: every document of every component, sliced by root prefix."""

LINKS = pa.schema([("root_chunk", pa.uint64()), ("root_row", pa.uint32()), *EDGES])
"""``unite.links``: the verified edges between nodes of each component, sliced by root prefix."""

ASKED = pa.schema([*_ADDRESS, ("range", pa.uint32())])
"""``unite.asked``: which key texts of a block which root range has to compare, sliced by block."""

REMOVED = pa.schema([("row", pa.uint32())])
"""``confirm.removed``: rows of a chunk that are duplicates, and nothing else: who only asks whether a
document is still there is not run again because the survivor changed its row, or stands for one more."""

COPIES = pa.schema([("row", pa.uint32()), ("copies", pa.uint32())])
"""``confirm.copies``: rows of a chunk that stand for others, and for how many."""

LOSSES = pa.schema(
    [("row", pa.uint32()), ("verdict", pa.string()), ("survivor_id", DOC_ID), ("similarity", pa.float32())]
)
"""``confirm.losses``: what a removed document's fate says, with the survivor by its permanent identity."""

PAIRS = pa.schema(
    [
        ("removed", pa.string()),
        ("survivor", pa.string()),
        ("verdict", pa.string()),
        ("similarity", pa.float64()),
        ("removed_chunk", pa.string()),
        ("removed_row", pa.uint32()),
        ("survivor_chunk", pa.string()),
        ("survivor_row", pa.uint32()),
    ]
)
"""``confirm.pairs``: removed document and its survivor by hex id, for reports and audits."""


def signatures_schema(permutations: int) -> pa.Schema:
    """``sign.signatures``: kept documents long enough for a shingle, in ascending order of row.

    ``made_by`` names the settings and code behind the signature: others must not be compared with it.
    """
    return pa.schema(
        [
            ("row", pa.uint32()),
            ("doc_id", DOC_ID),
            ("sha1", SHA1),
            *_ORDER,
            ("shingle", pa.uint8()),
            ("made_by", pa.string()),
            ("signature", pa.binary(4 * permutations)),
        ]
    )


def texts_schema(permutations: int) -> pa.Schema:
    """``gather.texts``: key texts of candidates with what verifying needs, sliced by block."""
    return pa.schema(
        [("chunk", pa.uint64()), *signatures_schema(permutations), ("key_text", pa.large_string())]
    )


def collected_schema(permutations: int) -> pa.Schema:
    """``collect.texts``: what confirming needs of :func:`texts_schema`, sliced by root prefix."""
    whole = texts_schema(permutations)
    return pa.schema(
        [whole.field(name) for name in ("chunk", "row", "shingle", "made_by", "signature", "key_text")]
    )


def numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """A numeric column as one numpy array."""
    values: npt.NDArray[Any] = table.column(name).to_numpy()
    return values


def binary_rows(table: pa.Table, name: str) -> U8:
    """A fixed-size binary column as uint8, shape ``(n, width)``."""
    column = table.column(name)
    column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        return np.empty((0, column.type.byte_width), np.uint8)
    width = column.type.byte_width
    body = np.frombuffer(column.buffers()[1], np.uint8) if len(column) else np.empty(0, np.uint8)
    return body[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)


def fixed_binary(rows: U8) -> Any:
    """Uint8 of shape ``(n, width)`` as a fixed-size binary array."""
    body = np.ascontiguousarray(rows)
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(body)]
    )


def prefix_slices(prefixes: I64, ranges: int) -> Any:
    """The ``slice`` column for prefix numbers."""
    return pa.array([str(i) for i in range(ranges)], pa.string()).take(pa.array(prefixes))


def chunk_slices(chunks: U64) -> Any:
    """The ``slice`` column for chunk numbers."""
    encoded = pa.array(chunks).dictionary_encode()
    names = [chunk_name(c) for c in encoded.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(encoded.indices)


def distinct(*values: U64) -> U64:
    """All values that occur, ascending; made for many that are few different ones."""
    found: U64 = np.sort(pa.chunked_array([pa.array(v) for v in values], pa.uint64()).unique().to_numpy())
    return found


def first_of_each(*values: npt.NDArray[np.unsignedinteger]) -> I64:
    """Rows that differ, in ascending order of the values, of equal ones the first."""
    by_value = np.lexsort(values[::-1])
    new = np.ones(len(by_value), np.bool_)
    new[1:] = False
    for v in values:
        new[1:] |= v[by_value][1:] != v[by_value][:-1]
    found: I64 = by_value[new]
    return found


def address_ids(*pairs: tuple[U64, npt.NDArray[np.uint32]]) -> list[I64]:
    """One number per ``(chunk, row)``, comparable among the arrays of this call (order: chunk, row).

    Raises:
        ValueError: more than 2**31 chunks.
    """
    known = distinct(*(chunk for chunk, _ in pairs))
    if len(known) >= 1 << 31:
        raise ValueError(f"{len(known)} chunks are too many")
    return [
        (np.searchsorted(known, chunk).astype(np.int64) << 32) | row.astype(np.int64) for chunk, row in pairs
    ]
