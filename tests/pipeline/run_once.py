"""One run in a process of its own, which may be told to die: ``run_once.py JOB HOME [JSON options]``."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class KillAt:
    """Kills the process, as the kernel would, the first time a point is reached and its marker is absent."""

    point: str
    marker: Path

    def reached(self, point: str) -> None:
        if point != self.point:
            return
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Record:
    """Writes down every point that is reached."""

    path: Path

    def reached(self, point: str) -> None:
        with open(self.path, "a", encoding="utf-8") as out:
            out.write(point + "\n")


def run(job: Path, home: Path, options: dict[str, Any]) -> int:
    from dataflow_ops.cli.console import ConsoleReporter
    from dataflow_ops.job_file import load_job
    from dataflow_ops.pipeline.run import run_job

    hooks = None
    if "kill" in options:
        hooks = KillAt(options["kill"], Path(options["marker"]))
    elif "record" in options:
        hooks = Record(Path(options["record"]))
    reporter = ConsoleReporter(quiet=not options.get("verbose"))
    result = run_job(
        load_job(job, options.get("set", ())),
        home,
        workers=options.get("workers", 0),
        until=options.get("until"),
        reporter=reporter,
        mode=options.get("mode", "full"),
        data_date=options.get("date", "2026-01-01"),
        hooks=hooks,
        tuning=options.get("tuning"),
    )
    tasks = {name: [r.tasks, r.ran, r.skipped] for name, r in reporter.reports.items()}
    print(json.dumps({"state": result.state, "version": result.version_id, "tasks": tasks}))
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}))
