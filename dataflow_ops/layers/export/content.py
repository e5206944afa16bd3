"""What the rows of shards are, however they are cut: two hashes and the sums that a manifest tells.

``order`` is a polynomial over the rows' SHA-256 modulo the prime 2²⁵⁵ − 19: another row, or another order,
gives another value, and the value of two stretches follows from theirs (Rabin's fingerprint over a prime
field). ``ids`` is the sum modulo 2²⁵⁶ of a SHA-256 over each row's id and hash: blind to order, it tells
whether the same documents are there (an incremental multiset hash after Bellare and Micciancio).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.layers.export.columns import EXPORTED

PRIME = 2**255 - 19
SPREAD = int.from_bytes(hashlib.sha256(b"dataflow: order of rows").digest(), "big") % PRIME
_IDS = 2**256
_OTHERS = tuple(name for name in EXPORTED.names if name != "text")
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Cells = Mapping[tuple[str, str], tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Content:
    """A stretch of rows.

    Attributes:
        rows: all rows.
        documents: distinct documents (rows of repetition 0).
        tokens: over all rows.
        text_bytes: UTF-8 bytes of their text.
        order: order-sensitive hash of the rows.
        ids: order-free hash of ids and rows.
        cells: ``(domain, language)`` -> ``(rows, tokens, documents)``.
    """

    rows: int = 0
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    order: int = 0
    ids: int = 0
    cells: Cells = field(default_factory=dict)

    def __add__(self, after: Content) -> Content:
        """This stretch, and then another one."""
        cells = dict(self.cells)
        for key, more in after.cells.items():
            mine = cells.get(key, (0, 0, 0))
            cells[key] = (mine[0] + more[0], mine[1] + more[1], mine[2] + more[2])
        return Content(
            self.rows + after.rows,
            self.documents + after.documents,
            self.tokens + after.tokens,
            self.text_bytes + after.text_bytes,
            (self.order * pow(SPREAD, after.rows, PRIME) + after.order) % PRIME,
            (self.ids + after.ids) % _IDS,
            cells,
        )

    def as_json(self) -> dict[str, Any]:
        """JSON-able, in an order of its own."""
        return {
            "rows": self.rows,
            "documents": self.documents,
            "tokens": self.tokens,
            "text_bytes": self.text_bytes,
            "order": f"{self.order:064x}",
            "ids": f"{self.ids:064x}",
            "cells": [[*key, *numbers] for key, numbers in sorted(self.cells.items())],
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Content:
        """What :meth:`as_json` gave."""
        return cls(
            found["rows"],
            found["documents"],
            found["tokens"],
            found["text_bytes"],
            int(found["order"], 16),
            int(found["ids"], 16),
            {(d, lang): (rows, tokens, docs) for d, lang, rows, tokens, docs in found["cells"]},
        )


def content_of(table: pa.Table) -> Content:
    """The content of some rows with the columns of :data:`EXPORTED`."""
    order = ids = 0
    data, offsets = string_buffers(table["text"])
    text = memoryview(data)  # type: ignore[arg-type]
    columns = [table[name].to_pylist() for name in _OTHERS]
    for at, row in enumerate(zip(*columns, strict=True)):
        # A JSON list ends where it ends, so that no two rows give the same bytes.
        digest = hashlib.sha256(_ENCODE(row).encode("utf-8", "surrogatepass"))
        digest.update(text[int(offsets[at]) : int(offsets[at + 1])])
        whole = digest.digest()
        order = (order * SPREAD + int.from_bytes(whole, "big")) % PRIME
        ids += int.from_bytes(hashlib.sha256(row[0].encode() + whole).digest(), "big")
    first = pc.equal(table["repetition"], 0)
    counted = table.select(["domain", "language", "tokens"]).append_column("first", first.cast(pa.int64()))
    grouped = counted.group_by(["domain", "language"]).aggregate(
        [("tokens", "count"), ("tokens", "sum"), ("first", "sum")]
    )
    return Content(
        table.num_rows,
        pc.sum(first).as_py() or 0,
        pc.sum(table["tokens"]).as_py() or 0,
        int(offsets[table.num_rows] - offsets[0]),
        order,
        ids % _IDS,
        {
            (cell["domain"], cell["language"]): (cell["tokens_count"], cell["tokens_sum"], cell["first_sum"])
            for cell in grouped.to_pylist()
        },
    )


def content_of_all(tables: Iterable[pa.Table]) -> Content:
    """The content of a stream of rows; only one table is held at a time."""
    whole = Content()
    for table in tables:
        if table.num_rows:
            whole += content_of(table)
    return whole
