"""A task of a Celery worker may start workers of its own."""

from __future__ import annotations

import subprocess
import sys

CHECK = """
import os, sys
import billiard
from dataflow_ops.airflow.processes import allow_children

def child():
    pass

def task():
    # Airflow's supervisor forks the task from the worker's process.
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    import multiprocessing
    allow = sys.argv[1] == "allow"
    if allow:
        allow_children()
    try:
        worker = multiprocessing.get_context("spawn").Process(target=print)
        worker.start()
        worker.join()
        os._exit(0 if worker.exitcode == 0 else 9)
    except AssertionError:
        os._exit(5)

if __name__ == "__main__":
    process = billiard.Process(target=task)
    process.daemon = True
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""


def test_a_task_of_a_celery_worker_may_start_workers(tmp_path: object) -> None:
    import pathlib

    script = pathlib.Path(str(tmp_path)) / "check.py"
    script.write_text(CHECK, encoding="utf-8")
    ends = {
        how: subprocess.run([sys.executable, str(script), how], check=False, timeout=60).returncode
        for how in ("allow", "as it is")
    }
    assert ends == {"allow": 0, "as it is": 5}


PRELOAD = """
import gc, os, sys
sys.argv = ["airflow", "celery", "worker"]
import airflow.settings
assert "airflow_local_settings" in sys.modules
heavy = [name for name in ("numpy", "numba", "pyarrow", "polars") if name in sys.modules]
assert not heavy, heavy
assert "dataflow_ops.state.store" in sys.modules
inherited = len(gc.get_objects())
pid = os.fork()
if not pid:
    os._exit(0 if gc.get_freeze_count() > inherited * 0.9 > 10_000 else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_celery_worker_preloads_nothing_that_hangs_forked_tasks_nor_what_they_would_collect() -> None:
    from dataflow_ops.stack.environment import LOCAL_SETTINGS

    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {LOCAL_SETTINGS!r})\n{PRELOAD}"],
        check=False,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
