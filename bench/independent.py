"""An independent judge of duplicates: the standard library and rapidfuzz, no code of the product."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import defaultdict

from rapidfuzz.distance import Levenshtein


def key_text(text: str) -> str:
    """NFKC, case folded, white space removed; control characters are gone by then."""
    kept = "".join(c for c in text if c in "\t\n\r" or unicodedata.category(c) != "Cc")
    return "".join(unicodedata.normalize("NFKC", kept).casefold().split())


def similarity(a: str, b: str) -> float:
    """1 - Levenshtein / longer length, in full."""
    return Levenshtein.normalized_similarity(a, b)


def hard_negatives(
    texts: dict[int, str], wanted: int, low: float = 0.60, high: float = 0.75
) -> list[tuple[int, int, float]]:
    """Pairs that are alike but not duplicates: share a rare 20-character piece, similarity in [low, high]."""
    pieces: dict[bytes, list[int]] = defaultdict(list)
    keys: dict[int, str] = {}
    for i, text in texts.items():
        keys[i] = key = key_text(text)
        # The three smallest hashes of every 8th 20-character piece: an own little sketch.
        hashes = sorted(
            hashlib.blake2b(key[k : k + 20].encode(), digest_size=8).digest()
            for k in range(0, max(1, len(key) - 20), 1)
        )[:3]
        for h in hashes:
            pieces[h].append(i)
    found: dict[tuple[int, int], float] = {}
    for members in pieces.values():
        for at, a in enumerate(members[:30]):
            for b in members[at + 1 : at + 12]:
                if (a, b) in found or a == b:
                    continue
                longer = max(len(keys[a]), len(keys[b]))
                if min(len(keys[a]), len(keys[b])) < low * longer:
                    continue
                s = Levenshtein.normalized_similarity(keys[a], keys[b], score_cutoff=low)
                if low <= s <= high:
                    found[a, b] = s
                    if len(found) >= wanted:
                        return [(x, y, v) for (x, y), v in found.items()]
    return [(x, y, v) for (x, y), v in found.items()]
