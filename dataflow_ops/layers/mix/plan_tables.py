"""The plan as rows: domains and partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.layers.mix.allot import allot, shard_count
from dataflow_ops.layers.mix.columns import DOMAINS, DRAW, LABEL_OF, PARTITION_KEYS, PARTITIONS
from dataflow_ops.layers.mix.tally import Drawn, Supply, Totals
from dataflow_ops.layers.mix.targets import Target
from dataflow_ops.layers.mix.threshold import Cut
from dataflow_ops.settings import MixingSettings

_SEPARATOR = "\x1f"


def epochs(mixing: MixingSettings) -> tuple[int, int]:
    """The one window of all documents while they are unscored: from the first to the last epoch named."""
    if mixing.curriculum is None:
        return 0, 1
    ranges = (mixing.curriculum.early_epochs, mixing.curriculum.later_epochs)
    return min(a for a, _ in ranges), max(b for _, b in ranges)


def domain_rows(
    wanted: Mapping[str, Target],
    supply: Mapping[str, Supply],
    found: Mapping[str, Cut],
    drawn: Drawn,
    mixing: MixingSettings,
) -> pa.Table:
    """``plan.domains``: one row per domain that has documents or is named in the job."""
    first, last = epochs(mixing)
    rows = []
    for domain, target in wanted.items():
        total = drawn.domains.get(domain, Totals())
        rows.append(
            {
                "domain": domain,
                "ratio": target.ratio,
                "asked_tokens": target.asked,
                "target_tokens": target.drawn,
                "cap_tokens": target.cap,
                "supply_tokens": supply[domain].tokens if domain in supply else 0,
                "supply_documents": supply[domain].documents if domain in supply else 0,
                "drawn_tokens": total.tokens,
                "drawn_rows": total.rows,
                "documents": total.documents,
                "full_passes": found[domain].full_passes if domain in found else 0,
                "threshold": drawn.limits.get(domain),
                "shortage_tokens": target.shortage,
                "epoch_start": first,
                "epoch_end": last,
            }
        )
    return pa.Table.from_pylist(rows, schema=DOMAINS)


def draw_rows(chunks: Sequence[str], domains: pa.Table, drawn: Drawn) -> pa.Table:
    """``plan.draw`` with its ``slice``: for each chunk the domains it has, with its own threshold.

    Args:
        chunks: of the tables that were drawn from, in their order.
        domains: :func:`domain_rows`.
        drawn: what was drawn of them.

    """
    rows = {row["domain"]: row for row in domains.select(DRAW.names).to_pylist()}
    found = [
        {**rows[domain], "threshold": drawn.limit_in(table, domain), "slice": chunk}
        for table, chunk in enumerate(chunks)
        for domain in sorted(drawn.reached[table])
    ]
    return pa.Table.from_pylist(found, schema=DRAW.append(pa.field("slice", pa.string())))


def places(table: pa.Table, keys: Sequence[str]) -> pa.ChunkedArray:
    """The partition of every label: the values of its keys in the order of :data:`PARTITION_KEYS`, joined."""
    used = [k for k in PARTITION_KEYS if k in keys]
    if not used:
        return pa.chunked_array([pa.array([""] * table.num_rows, pa.string())])
    return pc.binary_join_element_wise(*(table[LABEL_OF[k]].cast(pa.string()) for k in used), _SEPARATOR)


def partition_rows(found: Mapping[str, Totals], keys: Sequence[str], shards: int | None) -> pa.Table:
    """``plan.partitions``: partitions with rows, in order of their folders, with contiguous shards.

    Args:
        found: partition (from :func:`places`) -> what is drawn of it.
        keys: ``output.partition_by``: the order of the folders.
        shards: ``output.shards``.

    """
    used = [k for k in PARTITION_KEYS if k in keys]
    filled = []
    for name, total in found.items():
        if total.rows:
            values = dict(zip(used, name.split(_SEPARATOR), strict=True)) if used else {}
            filled.append(("/".join(f"{k}={quote(values[k], safe='')}" for k in keys), values, total))
    filled.sort(key=lambda one: one[0])
    asked = shard_count(sum(t.size for _, _, t in filled), shards)
    shares = allot(asked, [t.tokens for _, _, t in filled], [t.rows for _, _, t in filled])
    firsts = np.cumsum([0, *shares])
    rows = [
        {
            **{k: values.get(k, "") for k in PARTITION_KEYS},
            "path": path,
            "first_shard": int(first),
            "shards": share,
            "total_shards": int(firsts[-1]),
            "rows": total.rows,
            "tokens": total.tokens,
            "text_bytes": total.size,
        }
        for (path, values, total), share, first in zip(filled, shares, firsts[:-1], strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=PARTITIONS)
