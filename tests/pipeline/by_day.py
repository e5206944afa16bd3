"""A small real corpus that lies in folders by day, some of it seen on two days."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.inside import texts

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


def build(root: Path, days: tuple[str, ...] = DAYS, files: int = 8) -> Path:
    """Write ``root/notes/DAY/*.md`` and a job; return the job's path."""
    found = texts()
    for n, day in enumerate(days):
        folder = root / "notes" / day
        folder.mkdir(parents=True)
        taken = found[n * files : (n + 1) * files + 2]  # two of them come again the day after
        for i, text in enumerate(taken):
            (folder / f"note-{n}-{i:02}.md").write_text(text, encoding="utf-8")
    job = root / "job.yaml"
    job.write_text(
        f"""dataset: {{id: daily}}
sources:
  - {{source_id: notes, kind: files, path: "{root}/notes/{{date}}", domain: notes}}
ingest: {{chunk_mb: 0.04}}
run: {{max_attempts: 3}}
output: {{partition_by: [domain], version: t, shards: 2}}
""",
        encoding="utf-8",
    )
    return job
