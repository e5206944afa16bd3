"""A run in a process of its own that can be hurt: ``python -m tests.pipeline.child PICKLED_OPTIONS``."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def start(job: Path, home: Path, **options: Any) -> subprocess.Popen[str]:
    """Begin :func:`tests.pipeline.inside.run` in a process group of its own; hooks travel with it."""
    with tempfile.NamedTemporaryFile(suffix=".pickle", delete=False) as file:
        pickle.dump((job, home, options), file)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.child", file.name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str], expect: int | None = 0, timeout: float = 120) -> str:
    """Wait; the last line is the run's state."""
    out, err = process.communicate(timeout=timeout)
    if expect is not None:
        assert process.returncode == expect, f"exit {process.returncode}\n{err[-4000:]}"
    return out.strip().rpartition("\n")[2]


if __name__ == "__main__":
    from tests.pipeline import inside

    path = Path(sys.argv[1])
    job, home, options = pickle.loads(path.read_bytes())
    path.unlink()
    print(inside.run(job, home, **options).state)
