"""Which dialogues were kept so far, found by equal key text or by a band of their signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dataflow_ops.kernels.arrow import I64, U32, U64

Place = tuple[str, int]
"""File id and row_identifier of a dialogue."""


class Candidate(NamedTuple):
    """A kept dialogue that another may be like; sorts by likelihood, then by age.

    Attributes:
        unlike: bands in common, negative.
        number: of the kept dialogue.
    """

    unlike: int
    number: int


class HashIndex:
    """Numbers under hashes, in sorted runs that double in size: adding n costs n log n, a look-up log n each.

    Twelve bytes an entry, twice that while the two largest runs are joined.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[U64, U32]] = []

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _ in self._runs)

    def add(self, hashes: U64, numbers: I64) -> None:
        """Put each number under its hash.

        Args:
            hashes: uint64, shape ``(n,)``.
            numbers: int64 below 2**32, shape ``(n,)``.
        """
        if not len(hashes):
            return
        run = (hashes, numbers.astype(np.uint32))
        while self._runs and len(self._runs[-1][0]) <= 2 * len(run[0]):
            before = self._runs.pop()
            run = (np.concatenate([before[0], run[0]]), np.concatenate([before[1], run[1]]))
        order = np.argsort(run[0], kind="stable")
        self._runs.append((run[0][order], run[1][order]))

    def find(self, hashes: U64) -> tuple[I64, I64]:
        """All that lies under some hashes.

        Returns:
            ``(place, number)``: int64 of equal length; place is the hash's index in what was asked.
        """
        places, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for known, under in self._runs:
            first = np.searchsorted(known, hashes, "left")
            count = np.searchsorted(known, hashes, "right") - first
            hit = np.flatnonzero(count)
            times = count[hit]
            inside = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
            places.append(np.repeat(hit, times))
            numbers.append(under[np.repeat(first[hit], times) + inside].astype(np.int64))
        return np.concatenate(places), np.concatenate(numbers)


class Survivors:
    """Kept dialogues in the order in which they were kept; the earlier one of two survives."""

    def __init__(self) -> None:
        self._exact, self._near = HashIndex(), HashIndex()
        self._files: dict[str, int] = {}
        self._names: list[str] = []
        self._file: list[U32] = []
        self._row: list[I64] = []
        self._ends: list[int] = [0]

    def __len__(self) -> int:
        return self._ends[-1]

    def add(self, places: Sequence[Place], keys: U64, hashes: U64, owners: I64) -> None:
        """Add some dialogues behind the others.

        Args:
            places: where they are.
            keys: hash of each key text; uint64, shape ``(n,)``.
            hashes: band hashes of all, uint64 of any length.
            owners: whose each is: index into ``places``.
        """
        base = len(self)
        for file, _ in places:
            if file not in self._files:
                self._files[file] = len(self._names)
                self._names.append(file)
        self._file.append(np.array([self._files[file] for file, _ in places], np.uint32))
        self._row.append(np.array([row for _, row in places], np.int64))
        self._ends.append(base + len(places))
        self._exact.add(keys, base + np.arange(len(places), dtype=np.int64))
        self._near.add(hashes, base + owners)

    def place(self, number: int) -> Place:
        """Where a dialogue is."""
        block = int(np.searchsorted(self._ends, number, "right")) - 1
        at = number - self._ends[block]
        return self._names[self._file[block][at]], int(self._row[block][at])

    def equal(self, keys: U64) -> dict[int, list[int]]:
        """Index of a key → kept dialogues whose key texts have the same hash, ascending."""
        found: dict[int, list[int]] = {}
        for place, number in sorted(zip(*(v.tolist() for v in self._exact.find(keys)), strict=True)):
            found.setdefault(place, []).append(number)
        return found

    def alike(self, hashes: U64, owners: I64, most: int) -> tuple[dict[int, list[Candidate]], dict[int, int]]:
        """Kept dialogues that share bands with each of some others.

        Args:
            hashes: band hashes, uint64.
            owners: whose each is, int64.
            most: so many for each at most.

        Returns:
            Owner → the likeliest first; owner → how many were left out, where any were.
        """
        places, numbers = self._near.find(hashes)
        pairs, bands = np.unique(np.stack([owners[places], numbers], axis=1), axis=0, return_counts=True)
        order = np.lexsort((pairs[:, 1], -bands, pairs[:, 0]))
        found: dict[int, list[Candidate]] = {}
        beyond: dict[int, int] = {}
        for (owner, number), shared in zip(pairs[order].tolist(), bands[order].tolist(), strict=True):
            mine = found.setdefault(owner, [])
            if len(mine) < most:
                mine.append(Candidate(-shared, number))
            else:
                beyond[owner] = beyond.get(owner, 0) + 1
        return found, beyond
