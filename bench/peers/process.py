"""A command on one core: CPU time of all its processes, the memory of the largest."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "ignore",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
}


class Usage(NamedTuple):
    """What a command took.

    Attributes:
        code: exit code; negative after a signal.
        cpu: CPU seconds, user and system, of the command and of every child that it waited for.
        peak_mb: resident memory of the largest of these processes.
        wall: seconds.
    """

    code: int
    cpu: float
    peak_mb: float
    wall: float


def measured(
    command: Sequence[str], core: int, log: Path, environment: Mapping[str, str], limit_s: float
) -> Usage:
    """Run a command on a core and wait for it; after ``limit_s`` seconds it is killed with its children.

    The peak holds what this process has at the moment, too, as Linux passes it on over fork and exec: callers
    stay small and leave tables to other processes.
    """
    began = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ONE_THREAD, **environment},
            start_new_session=True,
        )
    timer = threading.Timer(limit_s, _kill, (process.pid,))
    timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        _kill(process.pid)
        raise
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    _kill(process.pid)  # a child that outlived it would work beside the next one
    wall = time.monotonic() - began
    return Usage(process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, wall)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
