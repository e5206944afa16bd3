"""How many worker processes a run is worth, where nobody said."""

from __future__ import annotations

from typing import Final

BYTES_EACH: Final = 4 * 2**20
"""Input that pays for one process: to start it costs 1 to 2.5 s of CPU (imports, compiled kernels), and so
much Markdown takes 1.6 s from parse to export."""


def workers_for(size: int, cores: int) -> int:
    """Worker processes for an input.

    A single one beside a parent that waits for it is no faster than the parent alone.

    Args:
        size: of the sources, bytes.
        cores: of the machine.

    Returns:
        At most ``cores``; 0 where the process that is there already does best.
    """
    return min(cores, size // BYTES_EACH) if size >= 2 * BYTES_EACH else 0
