"""A Ctrl-C goes to the whole process group; workers must not die of it, not even while they import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = """
import multiprocessing as mp, os, signal, sys
from dataflow_ops.engine.pool import _deaf_to_interrupts

def child(pipe):
    pipe.send(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)

if __name__ == "__main__":
    ours, theirs = mp.get_context("spawn").Pipe()
    process = mp.get_context("spawn").Process(target=child, args=(theirs,))
    with _deaf_to_interrupts():
        process.start()
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    print(ours.recv())
    process.join()
"""


def test_a_worker_ignores_interrupts_from_its_first_moment(tmp_path: Path) -> None:
    script = tmp_path / "start.py"
    script.write_text(CODE)
    done = subprocess.run(
        [sys.executable, str(script)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip() == "True"
