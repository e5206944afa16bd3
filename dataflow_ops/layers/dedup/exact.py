"""Step ``exact``: groups of equal key texts. A group is one node from here on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import I64, U8
from dataflow_ops.kernels.digest import leading_u64
from dataflow_ops.layers.dedup import base, columns, identity, order
from dataflow_ops.layers.dedup.filters import filter_of
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult


class ExactStep:
    """Reduce over a key prefix. Outputs ``groups``: members of groups of two or more, in survivor order, and
    the ``filter`` of the keys.
    """

    name = "exact"
    layer = "dedup"
    partitioned_by: Partitioning = "key_prefix"
    outputs = (OutputSpec("groups", columns.GROUPS), OutputSpec("filter", columns.FILTERS))

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self.inputs: tuple[Input, ...] = (Input("sign", "keys", "slice"),)
        if base.has_base(settings):
            self.inputs += (Input(base.STEP, "keys", "slice", ("sha1", "row", "doc_id")), *base.ALIVE)
            self.inputs += (Input(base.STEP, "key_filter", "pointer"),)

    def fingerprint(self) -> Mapping[str, object]:
        """Whether exact dedup is on, and what a key is."""
        return {
            "step": 1,
            **identity.key_fingerprint(self._settings),
            "exact": self._settings.dedup.exact,
            **base.fingerprint(self._settings),
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Group one prefix."""
        keys = side.table("sign", "keys")
        counts = Counts(documents_in=keys.num_rows, kept=keys.num_rows, documents_out=keys.num_rows)
        heads = leading_u64(columns.binary_rows(keys, "sha1"))
        bloom, told = filter_of(heads, side.numbers.key_prefixes, 1, self._settings)
        yield StepResult(outputs={"filter": bloom}, metrics=told)
        if not self._settings.dedup.exact or keys.num_rows == 0:
            yield StepResult(counts=counts)
            return
        if base.has_base(self._settings):
            keys = _with_base(side, keys)
        sha1 = columns.binary_rows(keys, "sha1")
        members, starts = equal_rows(sha1)
        if base.has_base(self._settings):
            new = columns.numbers(keys, "order_hi") != order.BASE
            members, starts = runs_with(new, members, starts)
        group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        chunk, row = columns.numbers(keys, "chunk"), columns.numbers(keys, "row")
        high, low = columns.numbers(keys, "order_hi"), columns.numbers(keys, "order_lo")
        within = order.sort(high[members], low[members], chunk[members], row[members], group)
        members = members[within]
        first = members[starts[:-1]][group]
        table = pa.Table.from_arrays(
            [
                pa.array(chunk[first]),
                pa.array(row[first]),
                pa.array(chunk[members]),
                pa.array(row[members]),
                *(keys.column(c).take(pa.array(members)).combine_chunks() for c in ("doc_id", "sha1")),
                pa.array(high[members]),
                pa.array(low[members]),
            ],
            schema=columns.GROUPS,
        )
        yield StepResult(
            outputs={"groups": table},
            counts=counts,
            metrics={"exact_groups": len(starts) - 1, "exact_copies": len(members) - (len(starts) - 1)},
        )


def _with_base(side: Side, keys: pa.Table) -> pa.Table:
    """The run's keys, and those of the version below that agree with one of them in the first eight bytes."""
    wanted = np.unique(leading_u64(columns.binary_rows(keys, "sha1")))
    tables = [keys]
    for chunk, found in base.hits(side, "keys", "sha1", wanted):
        found = found.combine_chunks()
        n = found.num_rows
        values = {
            **{name: found[name] for name in ("sha1", "row", "doc_id")},
            "chunk": pa.array(np.full(n, chunk, np.uint64)),
            "order_hi": pa.array(np.full(n, order.BASE, np.uint64)),
            "order_lo": pa.array(leading_u64(columns.binary_rows(found, "doc_id"))),
        }
        tables.append(pa.table([values[name] for name in columns.KEYS.names], schema=columns.KEYS))
    return pa.concat_tables(tables).combine_chunks()


def runs_with(mask: npt.NDArray[np.bool_], members: I64, starts: I64) -> tuple[I64, I64]:
    """Of runs of members those in which the mask holds of somebody; empty runs don't occur."""
    if len(starts) == 1:
        return members, starts
    keep = np.logical_or.reduceat(mask[members], starts[:-1])
    sizes = np.diff(starts)
    return members[np.repeat(keep, sizes)], np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64)


def equal_rows(values: U8) -> tuple[I64, I64]:
    """Find rows that occur twice or more.

    Args:
        values: uint8, shape ``(n, w)``, ``w >= 8``.

    Returns:
        ``(members, starts)``: row numbers group by group in ascending order of value, and int64 bounds of
        the groups in ``members``, shape ``(groups + 1,)``.
    """
    head = leading_u64(values)
    by_head = np.argsort(head, kind="stable")
    same = head[by_head][1:] == head[by_head][:-1]
    # Only rows whose first eight bytes meet another's are compared in full.
    near = np.zeros(len(values), np.bool_)
    near[1:] |= same
    near[:-1] |= same
    rows = by_head[near]
    whole = np.ascontiguousarray(values[rows]).view([("", np.void, values.shape[1])]).reshape(-1)
    _, label = np.unique(whole, return_inverse=True) if len(rows) else (None, np.empty(0, np.int64))
    label = np.asarray(label).reshape(-1)
    sizes = np.bincount(label, minlength=0)
    keep = sizes[label] > 1 if len(label) else np.empty(0, np.bool_)
    rows, label = rows[keep], label[keep]
    by_label = np.argsort(label, kind="stable")
    ends = np.flatnonzero(np.diff(label[by_label])) + 1
    starts = np.concatenate([[0], ends, [len(rows)]]) if len(rows) else np.zeros(1, np.int64)
    return rows[by_label], starts.astype(np.int64)
