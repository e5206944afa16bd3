"""The same work handed out twice: by Celery (a message published again), or by a second process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.live.lab import Lab
from tests.stack.live import ROOT

_BESIDE = """
import sys
from pathlib import Path
from dataflow_ops.pipeline.bundles import run_bundle
run_bundle(Path(sys.argv[1]), sys.argv[3], {"run_id": sys.argv[2], "until": None, "index": 0, "of": 1}, 1)
"""


def again(lab: Lab, run: str) -> int:
    """Publish the messages of a run's running tasks a second time; return how many there were."""
    return int(_child(lab, "-m", "tests.live.deliver", run).splitlines()[-1])


def beside(lab: Lab, run: str, step: str) -> None:
    """Run a whole step of a run in another process, while Airflow's tasks run it too."""
    _child(lab, "-c", _BESIDE, str(lab.stack.home), lab.ours(run), step)


def _child(lab: Lab, *arguments: str) -> str:
    own = lab.stack.environment()
    own["PYTHONPATH"] = os.pathsep.join((own["PYTHONPATH"], str(ROOT)))
    done = subprocess.run(
        [sys.executable, *arguments], env=own, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _publish(run: str) -> int:
    """In a process with the stack's environment: as the scheduler does it, under the same Celery id."""
    import sqlalchemy as sa
    from airflow.executors.workloads import ExecuteTask
    from airflow.models.taskinstance import TaskInstance
    from airflow.providers.celery.executors.celery_executor import CeleryExecutor
    from airflow.providers.celery.executors.celery_executor_utils import send_workload_to_executor
    from airflow.utils.session import create_session

    generator = CeleryExecutor().jwt_generator
    with create_session() as session:
        running: list[Any] = list(
            session.scalars(
                sa.select(TaskInstance).where(TaskInstance.run_id == run, TaskInstance.state == "running")
            )
        )
        for instance in running:
            work = ExecuteTask.make(instance, generator=generator)
            send_workload_to_executor((instance.key, work, instance.queue, None))
    return len(running)


if __name__ == "__main__":
    assert Path.cwd() == ROOT
    print(_publish(sys.argv[1]))
