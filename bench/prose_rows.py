"""JSON-lines files of prose for benchmarks: real English from installed packages, the same every time."""

from __future__ import annotations

import json
import random
import sysconfig
from pathlib import Path


def write_rows(folder: Path, *, files: int, rows: int, words: int = 330, seed: int = 7) -> None:
    """Write ``files`` files of ``rows`` rows.

    Args:
        folder: made if need be.
        files: number of files.
        rows: rows in each.
        words: words in a row, about 7 bytes each.
        seed: other seeds give other rows.
    """
    site = Path(sysconfig.get_paths()["purelib"])
    pool: list[str] = []
    for path in sorted(site.glob("*.dist-info/METADATA")):
        pool += path.read_text(encoding="utf-8", errors="replace").split()
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        lines = []
        for row in range(rows):
            begin = draw.randrange(len(pool) - words)
            text = " ".join(pool[begin : begin + words])
            lines.append(json.dumps({"id": f"{number}-{row}", "text": text}) + "\n")
        (folder / f"part-{number:04}.jsonl").write_text("".join(lines), encoding="utf-8")
