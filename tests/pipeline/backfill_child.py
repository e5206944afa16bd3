"""A backfill in a process of its own, which may be told to die: ``backfill_child JOB HOME JSON``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def start(job: Path, home: Path, first: str, last: str, **options: Any) -> subprocess.Popen[str]:
    """Begin a backfill. ``kill`` is a day and a crash point; ``reprocess`` and ``parallel`` are passed on."""
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


def _die_on(day: str, point: str, marker: Path) -> None:
    """Let the run of one day meet a crash point once."""
    from dataflow_ops.pipeline import backfill_days
    from tests.pipeline.run_once import KillAt

    real = backfill_days.run_job

    def run_job(*args: Any, **named: Any) -> Any:
        if named["data_date"] == day:
            named["hooks"] = KillAt(point, marker)
        return real(*args, **named)

    backfill_days.run_job = run_job


def _main(job: str, home: str, options: dict[str, Any]) -> None:
    from dataflow_ops.cli.main import main

    if "kill" in options:
        _die_on(*options["kill"], Path(home).with_name("killed"))
    sys.argv = ["dataflow", "backfill", job, "--home", home, "--json", "--workers", "0"]
    sys.argv += ["--from", options["first"], "--to", options["last"]]
    sys.argv += ["--reprocess", options.get("reprocess", "none")]
    sys.argv += ["--parallel", str(options.get("parallel", 1))]
    main()


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
