"""Step ``exact``: groups of equal key texts. A group is one node from here on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import I64, U8
from dataflow_ops.kernels.digest import leading_u64
from dataflow_ops.layers.dedup import base, columns, identity, order, spill
from dataflow_ops.layers.dedup.filters import Filling
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

_PEAK = 5.0
"""Bytes at the peak for each byte of keys; measured by ``bench.scaling.ranges``."""


def _eight(first: int) -> spill.KeyOf:
    """Eight bytes of the SHA-1 from some byte on, or what is left of it."""
    return lambda keys: leading_u64(_padded(columns.binary_rows(keys, "sha1")[:, first : first + 8]))


def _padded(values: U8) -> U8:
    return np.pad(values, ((0, 0), (0, 8 - values.shape[1])))


_HEAD = _eight(0)
_SHA1 = (_HEAD, _eight(8), _eight(16))
_FURTHER = (*_SHA1[1:], *map(spill.number, ("order_hi", "order_lo", "chunk", "row")))
"""By what keys are cut that agree in their first eight bytes, and are too many."""
_ONE_KEY = len(_SHA1)
"""Pieces from this depth on hold documents of one key, and not all of them."""


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
        """Group one prefix, a sub-range of its keys in memory at a time.

        A key that more documents have than fit is cut by the survivor order: its first document is the
        survivor of all.
        """
        share = spill.share_of(side, _PEAK)
        with spill.Spill(side, share) as keys:
            for _, table in side.tables("sign", "keys"):
                keys.add(table, _HEAD(table))
            n = keys.rows
            bloom = Filling(n, side.numbers.key_prefixes, 1, self._settings)
            first: pa.Table | None = None  # survivor of a key that is cut
            alone: pa.Table | None = None  # document of such a key, as long as it is the only one
            for depth, part in spill.finer(side, keys, _FURTHER, share):
                side.checkpoint()
                bloom.add(_HEAD(part))
                if not self._settings.dedup.exact:
                    continue
                if depth < _ONE_KEY:
                    yield self._groups(side, part, None)
                    continue
                sha1 = part.column("sha1")[0]
                if first is not None and first.column("sha1")[0] != sha1:
                    first = None
                if first is None and alone is not None and alone.column("sha1")[0] == sha1:
                    part = pa.concat_tables([alone, part]).combine_chunks()
                found = self._groups(side, part, first)
                if first is None:
                    groups = found.outputs["groups"]
                    first, alone = (groups.slice(0, 1), None) if groups.num_rows else (None, part)
                yield found
            split = {"ranges_split": 1.0} if keys.spilled else {}
        table, told = bloom.done()
        yield StepResult(
            outputs={"filter": table},
            counts=Counts(documents_in=n, kept=n, documents_out=n),
            metrics={**told, **split},
        )

    def _groups(self, side: Side, keys: pa.Table, first: pa.Table | None) -> StepResult:
        """Groups of some keys; ``first``: a survivor that comes before them all."""
        if first is None and base.has_base(self._settings):
            keys = _with_base(side, keys)
        sha1 = columns.binary_rows(keys, "sha1")
        if first is None:
            members, starts = equal_rows(sha1)
        else:
            members, starts = np.arange(len(sha1)), np.array([0, len(sha1)])
        if first is None and base.has_base(self._settings):
            new = columns.numbers(keys, "order_hi") != order.BASE
            members, starts = runs_with(new, members, starts)
        group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        chunk, row = columns.numbers(keys, "chunk"), columns.numbers(keys, "row")
        high, low = columns.numbers(keys, "order_hi"), columns.numbers(keys, "order_lo")
        within = order.sort(high[members], low[members], chunk[members], row[members], group)
        members = members[within]
        heads = members[starts[:-1]][group]
        if first is None:
            survivors = [pa.array(chunk[heads]), pa.array(row[heads])]
        else:
            survivors = [pa.repeat(first.column(f"survivor_{c}")[0], len(members)) for c in ("chunk", "row")]
        table = pa.Table.from_arrays(
            [
                *survivors,
                pa.array(chunk[members]),
                pa.array(row[members]),
                *(keys.column(c).take(pa.array(members)).combine_chunks() for c in ("doc_id", "sha1")),
                pa.array(high[members]),
                pa.array(low[members]),
            ],
            schema=columns.GROUPS,
        )
        groups = len(starts) - 1 if first is None else 0
        return StepResult(
            outputs={"groups": table},
            metrics={"exact_groups": groups, "exact_copies": len(members) - groups},
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
