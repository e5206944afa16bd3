"""Which dialogues of a batch say what an earlier one says already; every pair is compared text by text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dataflow_ops.errors import StateError
from dataflow_ops.kernels.similarity import similarity
from dataflow_ops.samples.cleaning.keys import Keymaker, Keys
from dataflow_ops.samples.cleaning.settings import SampleCleanSettings
from dataflow_ops.samples.cleaning.survivors import Candidate, Place, Survivors

ReadTexts = Callable[[Sequence[Place]], dict[Place, str]]
"""What of some kept dialogues is compared, read again from the database."""

_AT_ONCE: Final = 256
"""Dialogues whose candidates are read together: bounds the texts that are held."""


class Duplicate(NamedTuple):
    """What a dialogue is a duplicate of.

    Attributes:
        survivor: the kept dialogue.
        kind: ``exact`` or ``near``.
        similarity: edit similarity of the key texts.
    """

    survivor: Place
    kind: str
    similarity: float


class Deduplicator:
    """Holds each dialogue against all that were kept before it, in the order in which they are read.

    So the outcome depends on that order alone: not on how rows fall into batches, nor on where a task
    was interrupted.

    Args:
        settings: of the clean-up.
        read_texts: of kept dialogues.
    """

    def __init__(self, settings: SampleCleanSettings, read_texts: ReadTexts) -> None:
        self._keymaker = Keymaker(settings)
        self._read = read_texts
        self._exact, self._near = settings.dedup.exact, settings.dedup.near
        self._least = settings.dedup.verify.min_similarity
        self._most = settings.near.max_candidates
        self.kept = Survivors()
        self.beyond = 0
        """Candidates that were not compared, because a dialogue had too many."""

    def remember(self, places: Sequence[Place], texts: Sequence[str]) -> None:
        """Add dialogues that were kept earlier."""
        if places:
            keys = self._keymaker.keys(texts)
            self.kept.add(places, keys.exact, keys.bands, keys.owners)

    def find(self, places: Sequence[Place], texts: Sequence[str]) -> list[Duplicate | None]:
        """Duplicates among some dialogues; the others are kept from now on.

        Args:
            places: of the dialogues, in order.
            texts: what of each is compared.
        """
        found: list[Duplicate | None] = []
        for start in range(0, len(places), _AT_ONCE):
            end = start + _AT_ONCE
            found += self._some(places[start:end], texts[start:end])
        return found

    def _some(self, places: Sequence[Place], texts: Sequence[str]) -> list[Duplicate | None]:
        keys = self._keymaker.keys(texts)
        equal = self.kept.equal(keys.exact) if self._exact else {}
        alike, beyond = self.kept.alike(keys.bands, keys.owners, self._most) if self._near else ({}, {})
        wanted = {n for numbers in equal.values() for n in numbers}
        known = self._texts(wanted | {c.number for some in alike.values() for c in some})
        first = len(self.kept)
        mine = _Batch(keys, first)
        out: list[Duplicate | None] = []
        for i, key in enumerate(keys.texts):
            found: Duplicate | None = None
            if self._exact:
                same = [*equal.get(i, []), *mine.equal(i)]
                found = self._same(key, same, known, mine, places)
            if found is None and self._near:
                likely = sorted([*alike.get(i, []), *mine.alike(i)])
                for candidate in likely[: self._most]:
                    text, place = self._one(candidate.number, known, mine, places)
                    value = similarity(key, text, self._least)
                    if value > 0.0:
                        found = Duplicate(place, "near", value)
                        break
                else:
                    self.beyond += beyond.get(i, 0) + max(0, len(likely) - self._most)
            if found is None:
                mine.keep(i)
            out.append(found)
        kept = np.array(mine.kept, np.int64)
        new = np.full(len(places), -1, np.int64)
        new[kept] = np.arange(len(kept))
        owners = new[keys.owners]
        self.kept.add(
            [places[i] for i in mine.kept], keys.exact[kept], keys.bands[owners >= 0], owners[owners >= 0]
        )
        return out

    def _same(
        self, key: str, numbers: Sequence[int], known: dict[int, str], mine: _Batch, places: Sequence[Place]
    ) -> Duplicate | None:
        for number in numbers:
            text, place = self._one(number, known, mine, places)
            if text == key:
                return Duplicate(place, "exact", 1.0)
        return None

    def _one(
        self, number: int, known: dict[int, str], mine: _Batch, places: Sequence[Place]
    ) -> tuple[str, Place]:
        """Key text and place of a kept dialogue, of an earlier batch or of this one."""
        if number in known:
            return known[number], self.kept.place(number)
        j = mine.index(number)
        return mine.texts[j], places[j]

    def _texts(self, numbers: set[int]) -> dict[int, str]:
        places = {number: self.kept.place(number) for number in sorted(numbers)}
        read = self._read(list(places.values()))
        gone = [place for place in places.values() if place not in read]
        if gone:
            file, row = gone[0]
            raise StateError(
                f"dialogue {row} of file {file} was kept and is gone: rows of 'sample' were deleted for good"
                " while a task compared others with them; run the task again"
            )
        folded = self._keymaker.texts([read[place] for place in places.values()]) if places else []
        return dict(zip(places, folded, strict=True))


class _Batch:
    """Kept dialogues of the batch under way; their numbers go on from those that were kept before."""

    def __init__(self, keys: Keys, first: int) -> None:
        self.texts = keys.texts
        self.kept: list[int] = []
        self._first = first
        self._exact = keys.exact.tolist()
        self._bands: dict[int, list[int]] = {}
        # A hash that is there once joins nobody: most are, and need no entry.
        _, inverse, times = np.unique(keys.bands, return_inverse=True, return_counts=True)
        shared = np.flatnonzero(times[inverse] > 1)
        for owner, band in zip(keys.owners[shared].tolist(), keys.bands[shared].tolist(), strict=True):
            self._bands.setdefault(owner, []).append(band)
        self._by_exact: dict[int, list[int]] = {}
        self._by_band: dict[int, list[int]] = {}

    def index(self, number: int) -> int:
        return self.kept[number - self._first]

    def equal(self, i: int) -> list[int]:
        return self._by_exact.get(self._exact[i], [])

    def alike(self, i: int) -> list[Candidate]:
        times: dict[int, int] = {}
        for band in self._bands.get(i, []):
            for number in self._by_band.get(band, []):
                times[number] = times.get(number, 0) + 1
        return [Candidate(-shared, number) for number, shared in times.items()]

    def keep(self, i: int) -> None:
        number = self._first + len(self.kept)
        self.kept.append(i)
        self._by_exact.setdefault(self._exact[i], []).append(number)
        for band in self._bands.get(i, []):
            self._by_band.setdefault(band, []).append(number)
