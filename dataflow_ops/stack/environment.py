"""The environment that all processes share, local or in containers: built in one place so that they agree."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.clients.s3 import NOTED
from dataflow_ops.stack.keys import Keys
from dataflow_ops.stack.object_store import client_variables
from dataflow_ops.stack.settings import StackSettings

DATABASE_USER = "dataflow"
LOCAL_SETTINGS = str(Path(__file__).resolve().parents[1] / "airflow" / "config")
"""Folder of Airflow's hook file; on PYTHONPATH of every process."""


@dataclass(frozen=True)
class Places:
    """Where things are, seen from a process of the stack."""

    home: str
    airflow_home: str
    jobs: str
    dags: str
    plugins: str
    local_settings: str
    listen: str
    public: str
    web: str
    postgres: str
    redis: str
    store: str = ""
    """``host:port`` each, ``public`` as a browser sees ``web``; ``listen`` is the address to listen on.
    ``store`` is empty where the stack has no object store."""


def local_places(settings: StackSettings, airflow_home: Path, store: bool = False) -> Places:
    """Everything on this machine; with or without an object store."""
    host, ports = settings.host, settings.ports
    return Places(
        home=str(settings.home),
        airflow_home=str(airflow_home),
        jobs=str(settings.jobs),
        dags=str(settings.dags),
        plugins=str(settings.plugins),
        local_settings=LOCAL_SETTINGS,
        listen=host,
        public=f"{host}:{ports.web}",
        web=f"{host}:{ports.web}",
        postgres=f"{host}:{ports.postgres}",
        redis=f"{host}:{ports.redis}",
        store=f"{host}:{ports.object_store}" if store else "",
    )


def environment(settings: StackSettings, places: Places, keys: Keys) -> dict[str, str]:
    """All variables that make a process part of the stack. ``docs/stack.md`` gives the reasons."""
    tuning = settings.airflow
    login = f"{DATABASE_USER}:{keys.postgres_password}@{places.postgres}"
    database = f"postgresql+psycopg://{login}"
    redis = f"redis://:{keys.redis_password}@{places.redis}"
    return {
        "AIRFLOW_HOME": places.airflow_home,
        "PYTHONPATH": places.local_settings,
        # Titles of processes would otherwise overwrite the memory in which leftovers are recognised.
        "SPT_NOENV": "1",
        "DATAFLOW_HOME": places.home,
        "DATAFLOW_ROOT": settings.storage_root or places.home,
        "DATAFLOW_STATE_URL": f"{database}/dataflow",
        "DATAFLOW_REDIS_URL": f"{redis}/1",
        "DATAFLOW_JOBS": places.jobs,
        "DATAFLOW_CORES_PER_TASK": str(settings.workers.cores_per_task),
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
        "AIRFLOW__CORE__DAGS_FOLDER": places.dags,
        "AIRFLOW__CORE__PLUGINS_FOLDER": places.plugins,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__CORE__LAZY_LOAD_PLUGINS": "False",
        "AIRFLOW__CORE__FERNET_KEY": keys.fernet_key,
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{places.web}/execution/",
        # Pools say how many tasks run. A second limit that followed the workers would change the environment
        # of everything else with each worker more.
        "AIRFLOW__CORE__PARALLELISM": "1024",
        "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": str(tuning.max_active_tasks_per_dag),
        "AIRFLOW__CORE__MAX_MAP_LENGTH": str(tuning.max_map_length),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"{database}/airflow",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": f"{places.airflow_home}/logs",
        "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
        "AIRFLOW__API__BASE_URL": f"http://{places.public}",
        "AIRFLOW__API__HOST": places.listen,
        "AIRFLOW__API__PORT": str(settings.ports.web),
        "AIRFLOW__API__WORKERS": str(tuning.api_workers),
        "AIRFLOW__API__SECRET_KEY": keys.api_secret_key,
        "AIRFLOW__API_AUTH__JWT_SECRET": keys.jwt_secret,
        "AIRFLOW__OPERATORS__DEFAULT_QUEUE": "cpu",
        "AIRFLOW__CELERY__BROKER_URL": f"{redis}/0",
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{database}/airflow",
        "AIRFLOW__CELERY__WORKER_PREFETCH_MULTIPLIER": "1",
        "AIRFLOW__CELERY__SYNC_PARALLELISM": "1",
        "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": str(tuning.visibility_timeout_s),
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": f"{tuning.idle_sleep_s:g}",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(tuning.task_heartbeat_timeout_s),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
        "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": str(tuning.queued_timeout_s),
        "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "30",
        "AIRFLOW__SCHEDULER__NUM_STUCK_IN_QUEUED_RETRIES": "1000",
        "AIRFLOW__SCHEDULER__MAX_TIS_PER_QUERY": "64",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "60",
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": f"{tuning.task_end_poll_s:g}",
        # A restarted api-server or database costs no task: pauses between tries stay short, and are many.
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "100",
        "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "5",
        "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "10",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": str(tuning.dag_refresh_s),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": str(tuning.dag_refresh_s),
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        # All job files are one DAG file. 200 jobs take 4 s of one core to read, 40 s to hand over, and many
        # times that beside full workers; a file that runs out of time loses all its DAGs.
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
        "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "1200",
        "AIRFLOW__TRIGGERER__CAPACITY": str(tuning.triggers),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        **(client_variables(places.store, keys) if places.store else {}),
        **settings.environment,
    }


def connection(own: Mapping[str, str]) -> dict[str, str]:
    """What a command line on the stack's home must know, and finds there.

    Args:
        own: the stack's variables.
    """
    found = {"state_url": own["DATAFLOW_STATE_URL"], "redis_url": own["DATAFLOW_REDIS_URL"]}
    if own["DATAFLOW_ROOT"] != own["DATAFLOW_HOME"]:
        found["root"] = own["DATAFLOW_ROOT"]
    return found | {name: own[variable] for name, variable in NOTED.items() if own.get(variable)}


def inherited(shell: Mapping[str, str]) -> dict[str, str]:
    """What processes keep of the shell that starts them: nothing of Airflow, Python or DataFlow."""
    dropped = ("AIRFLOW", "PYTHON", "DATAFLOW_", "CELERY")
    return {name: value for name, value in shell.items() if not name.startswith(dropped)}


def as_shell(variables: Mapping[str, str]) -> str:
    """Lines for ``set -a; . FILE``."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(variables.items()))
