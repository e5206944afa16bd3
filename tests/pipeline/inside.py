"""Runs inside the test's own process: quick, and open to hooks and disks that fail on purpose."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.finish import Finished
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.pipeline.tally import StepReport
from dataflow_ops.storage.blob import TEMPORARY
from dataflow_ops.values import TaskRecord, TaskSpec
from tests.pipeline import harness


@dataclass
class Notes:
    """A reporter that remembers."""

    reports: dict[str, StepReport] = field(default_factory=dict)
    endings: list[TaskOutcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    on_task: Callable[[str, TaskOutcome], None] | None = None

    def step_planned(self, step: str, tasks: int, skipped: int) -> None:
        pass

    def task_ended(self, step: str, outcome: TaskOutcome) -> None:
        self.endings.append(outcome)
        if self.on_task is not None:
            self.on_task(step, outcome)

    def step_ended(self, report: StepReport) -> None:
        self.reports[report.step] = report

    def note(self, message: str) -> None:
        self.notes.append(message)

    def ran(self) -> dict[str, int]:
        """Step -> tasks run, where any were."""
        return {name: report.ran for name, report in self.reports.items() if report.ran}


@dataclass(frozen=True)
class At:
    """Calls something at a point, each time it is reached."""

    point: str
    act: Callable[[], None]

    def reached(self, point: str) -> None:
        if point == self.point:
            self.act()


def run(job: Path, home: Path, notes: Notes | None = None, **options: Any) -> Finished:
    """Run to the end in this process (or on ``workers``)."""
    overrides: Sequence[str] = options.pop("set", ())
    options.setdefault("workers", 0)
    return run_job(
        load_job(job, overrides), home, reporter=notes or Notes(), data_date="2026-01-01", **options
    )


def published(home: Path) -> dict[str, str]:
    """What versions are made of, less temporaries that a kill left beside it: no reader looks at them."""
    return {path: sha for path, sha in harness.published(home).items() if TEMPORARY not in path}


def spec_of(record: TaskRecord) -> TaskSpec:
    """The task behind a record."""
    return TaskSpec(record.key, record.step, record.layer, record.partition)


def texts() -> list[str]:
    """Real English texts of a few kilobytes, the same every time on one machine."""
    site = Path(sysconfig.get_paths()["purelib"])
    found = (
        p.read_text(encoding="utf-8", errors="replace") for p in sorted(site.glob("*.dist-info/METADATA"))
    )
    return [text for text in found if 2_000 < len(text) < 9_000]


def sources(root: Path, files: int = 16, *, chunk_mb: float = 0.04, run: str = "max_attempts: 3") -> Path:
    """Notes in Markdown and rows in JSON lines, cut into a few chunks; returns the job's path."""
    (root / "notes").mkdir(parents=True)
    taken = texts()[: 2 * files]
    for i, text in enumerate(taken[:files]):
        (root / "notes" / f"note-{i:03}.md").write_text(text, encoding="utf-8")
    (root / "rows").mkdir()
    rows = [{"id": f"row-{i}", "text": text} for i, text in enumerate(taken[files:] + taken[:3])]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "rows" / "rows.jsonl").write_text(lines, encoding="utf-8")
    job = root / "job.yaml"
    job.write_text(
        f"""dataset: {{id: tiny}}
sources:
  - {{source_id: notes, kind: files, path: {root}/notes, domain: notes}}
  - {{source_id: rows, kind: jsonl, path: {root}/rows, domain: rows}}
ingest: {{chunk_mb: {chunk_mb}}}
run: {{{run}}}
output: {{partition_by: [domain], version: t, shards: 2}}
""",
        encoding="utf-8",
    )
    return job
