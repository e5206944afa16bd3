"""A backfill in a process of its own, which may be told to die: ``backfill_child JOB HOME JSON``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def start(job: Path, home: Path, first: str, last: str, **options: Any) -> subprocess.Popen[str]:
    """Begin a backfill; ``reprocess`` and ``parallel`` are passed on.

    ``kill`` is a day and a crash point; on the day ``wait`` it says so in the midst of a step, and waits.
    """
    given = json.dumps({"first": first, "last": last, **options})
    return subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.backfill_child", str(job), str(home), given],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str], expect: int = 0) -> dict[str, Any]:
    """Wait; what ``--json`` printed (empty where it was killed)."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == expect, f"exit {process.returncode}\n{err[-4000:]}"
    found: dict[str, Any] = json.loads(out) if out.strip() else {}
    return found


class _Waits:
    """Says once that it is in the midst of a step, and stays there for a while."""

    said = False

    def reached(self, point: str) -> None:
        if point == "before commit parse" and not self.said:
            self.said = True
            print("waits for a signal", file=sys.stderr, flush=True)
            time.sleep(3.0)


def _met_on(day: str, hooks: Any) -> None:
    """Let the run of one day meet crash points."""
    from dataflow_ops.pipeline import backfill_days

    real = backfill_days.run_job

    def run_job(*args: Any, **named: Any) -> Any:
        if named["data_date"] == day:
            named["hooks"] = hooks
        return real(*args, **named)

    backfill_days.run_job = run_job


def _main(job: str, home: str, options: dict[str, Any]) -> None:
    from dataflow_ops.cli.main import main

    if "kill" in options:
        from tests.pipeline.run_once import KillAt

        day, point = options["kill"]
        _met_on(day, KillAt(point, Path(home).with_name("killed")))
    elif "wait" in options:
        _met_on(options["wait"], _Waits())
    sys.argv = ["dataflow", "backfill", job, "--home", home, "--json", "--workers", "0"]
    sys.argv += ["--from", options["first"], "--to", options["last"]]
    sys.argv += ["--reprocess", options.get("reprocess", "none")]
    sys.argv += ["--parallel", str(options.get("parallel", 1))]
    main()


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
