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
for name in ("numba", "pyarrow.parquet", "dataflow_ops.state.store"):
    assert name in sys.modules, name
assert "polars" not in sys.modules
tasks = "/proc/self/task"  # Linux alone tells
threads = [open(f"{tasks}/{t}/comm").read() for t in (os.listdir(tasks) if os.path.isdir(tasks) else ())]
assert len(threads) <= 1, threads
inherited = len(gc.get_objects())

def task():
    import numpy, pyarrow
    from dataflow_ops.kernels import counts
    assert gc.get_freeze_count() > inherited * 0.9 > 10_000
    table = pyarrow.table({"text": ["a b", "c"] * 1000}).sort_by("text")
    assert pyarrow.compute.count_distinct(table["text"]).as_py() == 2
    assert (numpy.ones((300, 300)) @ numpy.ones((300, 300))).sum() == 300 ** 3
    counts.warm()

for _ in range(20):
    pid = os.fork()
    if not pid:
        try:
            task()
        except BaseException as e:
            print(repr(e), file=sys.stderr, flush=True)
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""


def test_a_celery_worker_preloads_what_tasks_need_and_starts_no_thread_that_could_hang_them() -> None:
    from dataflow_ops.stack.environment import LOCAL_SETTINGS

    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {LOCAL_SETTINGS!r})\n{PRELOAD}"],
        check=False,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
