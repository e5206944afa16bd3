"""All job files of a folder as DAGs. One broken file takes nothing with it: it is told elsewhere, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from airflow.sdk import DAG, get_parsing_context  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.dag_factory import Mode, corpus_dag
from dataflow_ops.airflow.places import RETRIES
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job

MODES: Final[tuple[Mode, ...]] = ("full", "incremental")


def corpora(
    jobs: Path, home: Path, *, cores: int = 1, retries: int = RETRIES, only: str | None = None
) -> dict[str, DAG]:
    """DAGs by id, two of each job file that can be read.

    Args:
        jobs: folder of job files (``*.yaml``).
        home: DataFlow's home folder.
        cores: worker processes inside one task.
        retries: of each Airflow task.
        only: id of the only DAG that is wanted; None: all.
    """
    made = [
        corpus_dag(job, home, mode=mode, cores=cores, retries=retries)
        for job, dataset, problem in _read(jobs)
        if problem is None
        for mode in MODES
        if only in (None, f"{dataset}__{mode}")
    ]
    return {dag.dag_id: dag for dag in made}


def wanted() -> str | None:
    """The only DAG that a DAG file is read for: each task reads the file again, for the one it is of."""
    found: str | None = get_parsing_context().dag_id
    return found


def broken(jobs: Path) -> dict[str, str]:
    """Job files that give no DAG: name -> what is wrong with it."""
    return {job.name: problem for job, _, problem in _read(jobs) if problem is not None}


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


def _read(jobs: Path) -> Iterator[tuple[Path, str, str | None]]:
    """Each job file, its data set, and what is wrong with it."""
    known: dict[str, str] = {}
    for job in sorted(jobs.glob("*.yaml")):
        try:
            dataset = load_job(job).dataset.id
        except ConfigError as e:
            yield job, "", str(e)
            continue
        if dataset in known:
            yield (
                job,
                dataset,
                f"data set '{dataset}' is that of jobs/{known[dataset]} already; give it another id",
            )
            continue
        known[dataset] = job.name
        yield job, dataset, None
