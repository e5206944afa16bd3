"""The plan's two passes over all labels: what there is, then what of it is drawn.

Memory grows with domains and partitions, not with documents; see :mod:`dataflow_ops.layers.mix.threshold`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.layers.mix import threshold as cuts
from dataflow_ops.layers.mix.draw import U64, draw_key

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Tables = Callable[[], Iterable[pa.Table]]
"""Gives the labels anew at each call: ``doc_id``, ``domain``, ``tokens``, ``text_bytes``, ``place``."""


@dataclass
class Totals:
    """Documents, rows (with repetitions), tokens and UTF-8 bytes of rows, of a domain or a partition."""

    documents: int = 0
    rows: int = 0
    tokens: int = 0
    size: int = 0

    def add(self, times: int, tokens: I64, sizes: I64) -> None:
        """Add documents that are each given ``times`` more times; ``documents`` is counted apart."""
        self.rows += times * len(tokens)
        self.tokens += times * int(tokens.sum())
        self.size += times * int(sizes.sum())


@dataclass
class Supply:
    """What one domain has.

    Attributes:
        histogram: tokens by bucket of the draw key, int64 of shape ``(BUCKETS,)``.
        documents: how many.

    """

    histogram: I64
    documents: int = 0

    @property
    def tokens(self) -> int:
        """All of its tokens."""
        return int(self.histogram.sum())


@dataclass(frozen=True, slots=True)
class Last:
    """The document that reaches a domain's target: its id (16 bytes) and its tokens."""

    doc_id: bytes
    tokens: int


@dataclass
class Drawn:
    """What is drawn.

    Attributes:
        domains: totals by domain.
        places: totals by partition.
        limits: domain -> draw key of the last document of its rest; None: no rest.
        last: that document, for the domains that have one.
        reached: per table, in order, for each domain that it has: largest draw key below the crossing
            bucket (None: none), and the keys inside that bucket.

    """

    domains: dict[str, Totals]
    places: dict[str, Totals] = field(default_factory=dict)
    limits: dict[str, int | None] = field(default_factory=dict)
    last: dict[str, Last] = field(default_factory=dict)
    reached: list[dict[str, tuple[int | None, U64]]] = field(default_factory=list)

    def limit_in(self, table: int, domain: str) -> int | None:
        """Draw key of the last document of the rest among those of one table; None: none is drawn.

        It draws the very documents of the table that the domain's own limit draws, and stays what it is
        when that limit moves past documents of other tables only.
        """
        limit = self.limits.get(domain)
        if limit is None:
            return None
        certain, crossing = self.reached[table][domain]
        below = crossing[crossing <= np.uint64(limit)]
        return int(below.max()) if len(below) else certain


@dataclass(frozen=True, slots=True)
class _Open:
    """Documents of a crossing bucket: keys, ids, tokens, bytes of those in one table and partition."""

    place: str
    keys: U64
    doc_ids: pa.ChunkedArray
    tokens: I64
    sizes: I64


def count(tables: Tables, seed: int) -> dict[str, Supply]:
    """First pass: what every domain has, in order of name."""
    supply: dict[str, Supply] = {}
    for table in tables():
        draw = draw_key(table["doc_id"], seed)
        for domain, mask in by_value(table["domain"]):
            one = supply.setdefault(domain, Supply(np.zeros(cuts.BUCKETS, np.int64)))
            np.add.at(one.histogram, cuts.bucket_of(draw[mask]), table["tokens"].to_numpy()[mask])
            one.documents += int(mask.sum())
    return dict(sorted(supply.items()))


def draw(tables: Tables, seed: int, found: Mapping[str, cuts.Cut]) -> Drawn:
    """Second pass: totals of what is drawn, and where each domain's draw ends.

    Args:
        tables: the labels.
        seed: ``mixing.seed``.
        found: domain -> cut, for every domain of the labels.

    """
    out = Drawn({d: Totals() for d in found})
    waiting: dict[str, list[_Open]] = {d: [] for d in found}
    for table in tables():
        keys = draw_key(table["doc_id"], seed)
        tokens, sizes = table["tokens"].to_numpy(), table["text_bytes"].to_numpy()
        buckets = cuts.bucket_of(keys)
        reached: dict[str, tuple[int | None, U64]] = {}
        out.reached.append(reached)
        for domain, mask in by_value(table["domain"]):
            cut = found[domain]
            certain = buckets < cut.bucket
            sure = keys[mask & certain]
            reached[domain] = (int(sure.max()) if len(sure) else None, keys[mask & (buckets == cut.bucket)])
            out.domains[domain].documents += int((mask if cut.full_passes else mask & certain).sum())
            for place, inside in by_value(table["place"], mask):
                total = out.places.setdefault(place, Totals())
                for times, chosen in ((cut.full_passes, inside), (1, inside & certain)):
                    total.add(times, tokens[chosen], sizes[chosen])
                    out.domains[domain].add(times, tokens[chosen], sizes[chosen])
                crossing = inside & (buckets == cut.bucket)
                if crossing.any():
                    ids = table["doc_id"].filter(pa.array(crossing))
                    waiting[domain].append(
                        _Open(place, keys[crossing], ids, tokens[crossing], sizes[crossing])
                    )
    for domain, opens in waiting.items():
        out.limits[domain] = _settle(found[domain], opens, out, domain)
    return out


def _settle(cut: cuts.Cut, opens: list[_Open], out: Drawn, domain: str) -> int | None:
    """Find the exact end of a draw, and add the crossing bucket's documents up to there."""
    if not opens:
        return None
    limit = cuts.threshold(
        cut, np.concatenate([o.keys for o in opens]), np.concatenate([o.tokens for o in opens])
    )
    if limit is None:
        return None
    for one in opens:
        taken = one.keys <= np.uint64(limit)
        for total in (out.places[one.place], out.domains[domain]):
            total.add(1, one.tokens[taken], one.sizes[taken])
        out.domains[domain].documents += 0 if cut.full_passes else int(taken.sum())
        for i in np.flatnonzero(one.keys == np.uint64(limit)):
            out.last[domain] = Last(one.doc_ids[int(i)].as_py(), int(one.tokens[i]))
    return limit


def by_value(column: pa.ChunkedArray, within: Bools | None = None) -> Iterator[tuple[str, Bools]]:
    """``(value, mask of its rows)`` for each value of a string column, ascending; empty masks left out."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes, values = encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()
    for code in sorted(range(len(values)), key=values.__getitem__):
        mask = codes == code
        if within is not None:
            mask = mask & within
        if mask.any():
            yield values[code], mask


def survivors(table: pa.Table, place: pa.ChunkedArray) -> pa.Table:
    """The labels that label itself let through, with their partition beside them."""
    return table.append_column("place", place).filter(pc.equal(table["verdict"], ""))
