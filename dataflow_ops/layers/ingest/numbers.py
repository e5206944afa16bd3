"""How many ranges each reduce is cut into."""

from __future__ import annotations

from collections.abc import Mapping

from dataflow_ops.errors import ConfigError
from dataflow_ops.values import Numbers

BYTES_PER_RANGE = 256 << 20
FEWEST, MOST = 4, 1024

_FIELDS = ("key_prefixes", "band_prefixes", "blocks", "root_prefixes", "shard_groups")


def numbers_for(total_bytes: int, overrides: Mapping[str, int] | None = None) -> Numbers:
    """One range for about 256 MB of text, as a power of two between 4 and 1,024.

    Powers of two, so that a prefix number is the first bits of a hash; few steps, so that a corpus that
    grows a little keeps its ranges.

    Args:
        total_bytes: unpacked bytes of the input.
        overrides: numbers to use instead, by field (an incremental run takes its parent's).

    Raises:
        ConfigError: an override is unknown, or no power of two.
    """
    n = FEWEST
    while n < MOST and n * BYTES_PER_RANGE < total_bytes:
        n *= 2
    values = dict.fromkeys(_FIELDS, n)
    for name, value in (overrides or {}).items():
        if name not in values:
            raise ConfigError(f"no such number of ranges: {name!r}; there are {', '.join(_FIELDS)}")
        if value < 1 or value & (value - 1):
            raise ConfigError(f"{name} must be a power of two, not {value}")
        values[name] = value
    return Numbers(**values)
