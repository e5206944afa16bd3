"""Where the comparison keeps its files."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "bench" / ".cache"
ROWS = CACHE / "rows.jsonl"
RESULTS = ROOT / "bench" / "RESULTS.md"
PLOT = ROOT / "bench" / "peers" / "results.svg"
