"""How far a version has moved from the one before: shares by domain and language, and lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COMPARED = ("domain", "language", "quality_level")
"""Labels whose shares are compared."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One share that moved.

    Attributes:
        what: ``domain``, ``language``, ``quality_level``, ``chars`` or ``tokens``.
        name: the value (``web``, ``zh``); of lengths ``""``.
        measure: ``documents`` or ``tokens`` (what the share is a share of); ``distance`` for lengths.
        old: share before.
        new: share now; of lengths the total variation distance of the two histograms, ``old`` being 0.
        limit: largest move allowed; ``None``: shown only.

    """

    what: str
    name: str
    measure: str
    old: float
    new: float
    limit: float | None = None

    @property
    def move(self) -> float:
        """New − old."""
        return self.new - self.old

    @property
    def beyond(self) -> bool:
        """Whether a person must look. Equality is within; a hair is allowed for rounding."""
        return self.limit is not None and abs(self.move) > self.limit + 1e-9


def compare(
    old: Mapping[str, Any], new: Mapping[str, Any], limits: Mapping[str, float] | None = None
) -> list[Drift]:
    """Compare two reports' data (``build_report_data``): their ``shares`` and ``lengths``.

    A value that only one of the two has counts as a share of 0 in the other. A version without documents
    has no shares; there is nothing to compare then.

    Args:
        old: of the version before.
        new: of this one.
        limits: largest move by label (``domain``, ``language``, ``quality_level``, ``chars``, ``tokens``).

    Returns:
        All moves that are not nothing, the largest first.

    """
    limits = limits or {}
    out: list[Drift] = []
    for label in COMPARED:
        for measure in ("documents", "tokens"):
            before, now = (_shares(side, label, measure) for side in (old, new))
            if not before or not now:
                continue
            for name in sorted({*before, *now}):
                out.append(
                    Drift(label, name, measure, before.get(name, 0.0), now.get(name, 0.0), limits.get(label))
                )
    for what in ("chars", "tokens"):
        one, other = _histogram(old, what), _histogram(new, what)
        if one and other:
            distance = sum(abs(one.get(e, 0.0) - other.get(e, 0.0)) for e in sorted({*one, *other})) / 2
            out.append(Drift(what, "", "distance", 0.0, distance, limits.get(what)))
    out = [d for d in out if abs(d.move) > 1e-12]
    return sorted(out, key=lambda d: (-abs(d.move), d.what, d.name, d.measure))


def from_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What :func:`compare` needs, out of a version's manifest (``totals.by_domain``, ``by_language``).

    A manifest has no lengths, and counts rows where a report counts documents: compare like with like.
    """
    totals = manifest.get("totals") or {}
    shares = {
        label: [
            {"name": name, "documents": cell["rows"], "tokens": cell["tokens"]}
            for name, cell in sorted((totals.get(f"by_{label}") or {}).items())
        ]
        for label in ("domain", "language")
    }
    return {"shares": shares, "lengths": {}}


def _shares(side: Mapping[str, Any], label: str, measure: str) -> dict[str, float]:
    rows = (side.get("shares") or {}).get(label) or []
    total = sum(row[measure] for row in rows)
    # A long list of names ends with one row without a name: all the others.
    return {row["name"] or "all others": row[measure] / total for row in rows} if total else {}


def _histogram(side: Mapping[str, Any], what: str) -> dict[float, float]:
    data = (side.get("lengths") or {}).get(what) or {}
    counts = data.get("counts") or []
    total = sum(counts)
    return {edge: n / total for edge, n in zip(data["edges"], counts, strict=False)} if total else {}
