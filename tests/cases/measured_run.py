"""One run in a process of its own that notes how much memory each task took: JOB HOME UNTIL.

Prints JSON: step -> the largest peak of resident memory, in bytes, from one durable action to the next.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Peaks:
    """Writes down the peak since the last point, and starts measuring anew (Linux: ``clear_refs`` 5)."""

    path: Path

    def reached(self, point: str) -> None:
        status = Path("/proc/self/status").read_text("ascii")
        (line,) = [one for one in status.splitlines() if one.startswith("VmHWM")]
        with open(self.path, "a", encoding="utf-8") as out:
            out.write(f"{point.split()[-1]} {int(line.split()[1]) << 10}\n")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def main(job: Path, home: Path, until: str) -> None:
    from dataflow_ops.cli.console import ConsoleReporter
    from dataflow_ops.job_file import load_job
    from dataflow_ops.pipeline.run import run_job

    log = home.with_name("peaks.txt")
    reporter = ConsoleReporter(quiet=True)
    run_job(load_job(job), home, until=until, workers=1, reporter=reporter, hooks=Peaks(log))
    peaks: dict[str, int] = {}
    for line in log.read_text("utf-8").splitlines():
        step, peak = line.split()
        peaks[step] = max(peaks.get(step, 0), int(peak))
    print(json.dumps(peaks))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
