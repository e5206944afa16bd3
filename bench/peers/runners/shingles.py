"""Shingles and groups for the libraries that leave both to their user."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_HAN = re.compile("[\u4e00-\u9fff]")


def shingles(text: str, size: int) -> list[str]:
    """Runs of ``size`` words of the lower-case text; of characters where a third of them is Han."""
    text = text.lower()
    if len(_HAN.findall(text)) * 3 > len(text):
        joined = "".join(_WORD.findall(text))
        return [joined[i : i + size] for i in range(max(1, len(joined) - size + 1))]
    words = _WORD.findall(text)
    if size == 1:
        return words
    return [" ".join(words[i : i + size]) for i in range(max(1, len(words) - size + 1))]


class Groups:
    """Union-find over positions; the lowest of a group stands for it."""

    def __init__(self, n: int) -> None:
        self._parent = list(range(n))

    def find(self, i: int) -> int:
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def join(self, members: Iterable[int]) -> None:
        roots = sorted({self.find(i) for i in members})
        for root in roots[1:]:
            self._parent[root] = roots[0]

    def decided(self, ids: list[int]) -> tuple[list[int], dict[int, int]]:
        """Ids that stay, and the group of every id."""
        roots = [self.find(i) for i in range(len(ids))]
        kept = [ids[i] for i, root in enumerate(roots) if i == root]
        return kept, {ids[i]: ids[root] for i, root in enumerate(roots)}
