"""The two rules of dedup: one name and one sentence on every page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COUNTED_AS: Final[Mapping[str, str]] = {"exact_duplicate": "exact", "near_duplicate": "near"}
"""Name that dedup counts its hits under → name of the rule, which verdicts have too."""
TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "exact": ("the same text as a document that is kept", "与保留文档文本相同"),
    "near": ("nearly the same text as a document that is kept", "与保留文档文本近似"),
}
"""Rule → what it says, in English and Chinese."""
