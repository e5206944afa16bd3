"""The order of the steps, and into how many partitions each is cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dataflow_ops.errors import ConfigError

if TYPE_CHECKING:  # DAG files are parsed every few seconds: nothing heavy is imported here
    from dataflow_ops.protocols import Partitioning
    from dataflow_ops.values import Numbers

LAYERS: tuple[str, ...] = ("ingest", "parse", "filter", "dedup", "score", "mix", "export")

STEPS: tuple[tuple[str, str, Partitioning], ...] = (
    ("discover", "ingest", "all"),
    ("fetch", "ingest", "chunk"),
    ("parse", "parse", "chunk"),
    ("filter", "filter", "chunk"),
    ("sign", "dedup", "chunk"),
    ("supersede", "dedup", "all"),
    ("exact", "dedup", "key_prefix"),
    ("match", "dedup", "band_prefix"),
    ("gather", "dedup", "chunk"),
    ("recall", "dedup", "block"),
    ("verify", "dedup", "block"),
    ("unite", "dedup", "all"),
    ("collect", "dedup", "block"),
    ("confirm", "dedup", "root_prefix"),
    ("score", "score", "chunk"),
    ("label", "mix", "chunk"),
    ("plan", "mix", "all"),
    ("scatter", "export", "chunk"),
    ("export", "export", "shard_group"),
)
"""``(step, layer, partitioned by)`` in the order of the data; ``publish`` follows them all. Kept as plain
data so that a DAG can be built from it without importing a single step."""

ONLY_ABOVE: tuple[str, ...] = ("supersede", "recall")
"""Steps of runs that build on a version; other runs have no task of them."""

STEP_NAMES: tuple[str, ...] = tuple(name for name, _, _ in STEPS)

COMPACTION: tuple[str, ...] = ("weigh", "pack", "trace")
"""Steps of a run that compacts versions, in order; they are none of the flow."""


def steps_until(layer: str | None) -> tuple[str, ...]:
    """Names of the steps up to and including a layer; all for ``None``.

    Raises:
        ConfigError: no such layer.
    """
    if layer is None:
        return STEP_NAMES
    if layer not in LAYERS:
        raise ConfigError(f"--until {layer}: no such layer; there are {', '.join(LAYERS)}")
    last = LAYERS.index(layer)
    return tuple(name for name, of, _ in STEPS if LAYERS.index(of) <= last)


def partitioning(step: str) -> Partitioning:
    """What a step is partitioned by.

    Raises:
        ConfigError: no such step.
    """
    for name, _, by in STEPS:
        if name == step:
            return by
    raise ConfigError(f"there is no step '{step}'; there are {', '.join(STEP_NAMES)}")


def partitions(step: str, numbers: Numbers, chunks: Sequence[str]) -> list[str]:
    """Partition names of a step: chunk ids, prefix numbers, or ``all``."""
    by = partitioning(step)
    if by == "all":
        return ["all"]
    if by == "chunk":
        return list(chunks)
    counts = {
        "key_prefix": numbers.key_prefixes,
        "band_prefix": numbers.band_prefixes,
        "block": numbers.blocks,
        "root_prefix": numbers.root_prefixes,
        "shard_group": numbers.shard_groups,
    }
    return [str(i) for i in range(counts[by])]
