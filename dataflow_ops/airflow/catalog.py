"""All job files of a folder as DAGs. One broken file takes nothing with it: it is told elsewhere, by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from airflow.sdk import DAG, get_parsing_context  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.dag_factory import Mode, corpus_dag
from dataflow_ops.airflow.places import RETRIES
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.settings import JobSettings

MODES: Final[tuple[Mode, ...]] = ("full", "incremental")


@dataclass(frozen=True, slots=True)
class _Job:
    """A job file, and what it gives: its settings, or what is wrong with it."""

    path: Path
    settings: JobSettings | None
    problem: str = ""

    @property
    def dataset(self) -> str:
        return "" if self.settings is None else self.settings.dataset.id


def corpora(
    jobs: Path, home: Path, *, cores: int = 1, retries: int = RETRIES, only: str | None = None
) -> dict[str, DAG]:
    """DAGs by id, two of each job file that is well. :func:`broken` names the others.

    Args:
        jobs: folder of job files (``*.yaml``).
        home: DataFlow's home folder.
        cores: worker processes inside one task.
        retries: of each Airflow task.
        only: id of the only DAG that is wanted; None: all.
    """
    found: dict[str, DAG] = {}
    for job in _read(jobs):
        modes = [mode for mode in MODES if only in (None, f"{job.dataset}__{mode}")]
        dags, problem = _dags(job, modes, home, cores, retries)
        if not problem:
            found |= {dag.dag_id: dag for dag in dags}
    return found


def wanted() -> str | None:
    """The only DAG that a DAG file is read for: each task reads the file again, for the one it is of."""
    found: str | None = get_parsing_context().dag_id
    return found


def broken(jobs: Path) -> dict[str, str]:
    """Job files that give no DAG: name -> what is wrong with it. Makes all DAGs, to know."""
    told = ((job.path.name, _dags(job, MODES, jobs, 1, RETRIES)[1]) for job in _read(jobs))
    return {name: problem for name, problem in told if problem}


def tell_broken(jobs: Path) -> None:
    """Fail where a job file gives no DAG.

    Airflow hides all DAGs of a file with an import error, so this is called in a file that has none.

    Raises:
        ConfigError: names every broken job file and what is wrong with it.
    """
    problems = broken(jobs)
    if problems:
        text = "\n\n".join(f"jobs/{name}: no DAG.\n{problem}" for name, problem in problems.items())
        raise ConfigError(f"{len(problems)} job file(s) give no DAG; the others are not concerned.\n\n{text}")


def _read(jobs: Path) -> list[_Job]:
    """All job files. Where two name one data set both are refused: nobody can tell which is meant."""
    read = [_load(path) for path in sorted(jobs.glob("*.yaml"))]
    named: dict[str, list[str]] = defaultdict(list)
    for job in read:
        if job.settings is not None:
            named[job.dataset].append(f"jobs/{job.path.name}")
    return [_alone(job, named[job.dataset]) if job.settings is not None else job for job in read]


def _load(path: Path) -> _Job:
    try:
        return _Job(path, load_job(path))
    except ConfigError as e:
        return _Job(path, None, str(e))
    except Exception as e:  # noqa: BLE001 - told as this file's own error: whatever it is, the others stay
        return _Job(path, None, _told(e))


def _alone(job: _Job, named: list[str]) -> _Job:
    if len(named) < 2:
        return job
    files = " and ".join(named)
    why = f"data set '{job.dataset}' is named by {files}: none of them gives DAGs until one has another id"
    return _Job(job.path, None, why)


def _dags(job: _Job, modes: Sequence[Mode], home: Path, cores: int, retries: int) -> tuple[list[DAG], str]:
    """The DAGs of a job file, and what is wrong with it, if something is."""
    if job.settings is None:
        return [], job.problem
    try:
        made = [
            corpus_dag(job.path, home, mode=mode, cores=cores, retries=retries, settings=job.settings)
            for mode in modes
        ]
    except ConfigError as e:
        return [], str(e)
    except Exception as e:  # noqa: BLE001 - told as this file's own error: whatever it is, the others stay
        return [], _told(e)
    return made, ""


def _told(error: Exception) -> str:
    return f"no DAG can be made of it: {type(error).__name__}: {str(error)[:1000]}"
