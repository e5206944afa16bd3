"""How many worker processes a run is worth, where nobody said."""

from __future__ import annotations

from typing import Final

BYTES_EACH: Final = 4 * 2**20
"""Input that pays for one process. To start it costs 1 s of CPU and more (imports, compiled kernels); so much
Markdown takes about as long from parse to export, other formats longer. Whole runs over Markdown on two busy
cores took, with 0, 1 and 2 workers: .15 MB 3.2, 4.2 and 5.2 s of CPU, 4 MB 4.8, 5.1 and 6.6, 16 MB 5.9, 6.5
and 7.8."""


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
