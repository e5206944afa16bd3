"""Job files as DAGs: two of each, and a broken one is named without taking the others with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.errors import ConfigError

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-catalog")]


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    write(tmp_path, "a_web.yaml", "dataset: {id: web, timezone: Asia/Shanghai}\n")
    write(tmp_path, "b_typo.yaml", "dataset: {id: books}\ndedup: {shingel_size: 5}\n")
    write(
        tmp_path, "c_variable.yaml", "dataset: {id: c}\nsources: [{kind: files, path: $NO_SUCH_VARIABLE/x}]\n"
    )
    write(tmp_path, "d_twice.yaml", "dataset: {id: twice}\n")
    write(tmp_path, "d_again.yaml", "dataset: {id: twice}\n")
    write(tmp_path, "e_no_yaml.yaml", "dataset: {id: [\n")
    write(tmp_path, "f_code.yaml", "dataset: {id: code}\nschedule: {full: '5 4 * * 1', incremental: null}\n")
    write(tmp_path, "notes.txt", "no job\n")
    return tmp_path


def dags_of(jobs: Path) -> dict[str, Any]:
    from dataflow_ops.airflow.catalog import corpora

    return corpora(jobs, jobs / "home")


def test_each_job_file_gives_two_dags(jobs: Path) -> None:
    assert sorted(dags_of(jobs)) == ["code__full", "code__incremental", "web__full", "web__incremental"]


def test_a_task_builds_its_own_dag_only(jobs: Path) -> None:
    from dataflow_ops.airflow.catalog import corpora

    assert list(corpora(jobs, jobs / "home", only="web__incremental")) == ["web__incremental"]
    assert corpora(jobs, jobs / "home", only="somebody__full") == {}


def test_the_dag_file_follows_what_airflow_reads_it_for(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy

    monkeypatch.setenv("DATAFLOW_JOBS", str(jobs))
    file = str(Path(__file__).resolve().parents[2] / "dags" / "corpora.py")

    def found() -> list[str]:
        return sorted(name for name in runpy.run_path(file) if name.endswith(("__full", "__incremental")))

    assert len(found()) == 4
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "code__full")  # as Airflow's task runner does
    assert found() == ["code__full"]


def test_each_broken_file_is_named_with_its_reason(jobs: Path) -> None:
    from dataflow_ops.airflow.catalog import broken, tell_broken

    found = broken(jobs)
    assert sorted(found) == [
        "b_typo.yaml",
        "c_variable.yaml",
        "d_again.yaml",
        "d_twice.yaml",
        "e_no_yaml.yaml",
    ]
    assert "shingel_size" in found["b_typo.yaml"]
    assert "NO_SUCH_VARIABLE is not set" in found["c_variable.yaml"]
    for name in ("d_again.yaml", "d_twice.yaml"):
        assert "'twice' is named by jobs/d_again.yaml and jobs/d_twice.yaml: none" in found[name]
    assert "YAML" in found["e_no_yaml.yaml"]
    with pytest.raises(
        ConfigError, match=r"5 job file\(s\) give no DAG; the others are not concerned"
    ) as told:
        tell_broken(jobs)
    assert all(name in str(told.value) for name in found)
    assert "a_web" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("dataset: {id: bad, timezone: Mars/Base}\n", "dataset.timezone: no time zone"),
        ("dataset: {id: bad}\nschedule: {full: '99 9 * * *'}\n", "schedule.full '99 9 * * *'"),
        ("dataset: {id: bad}\nschedule: {incremental: '0 0 31 2 *'}\n", "schedule.incremental '0 0 31 2 *'"),
        ("dataset: " + "[" * 900 + "]" * 900, "levels deep"),
        ('dataset: {id: bad, description: "a\\0b"}\n', "NUL"),
    ],
)
def test_whatever_is_wrong_with_a_job_is_its_own_error(tmp_path: Path, text: str, told: str) -> None:
    from dataflow_ops.airflow.catalog import broken

    write(tmp_path, "bad.yaml", text)
    write(tmp_path, "good.yaml", "dataset: {id: good}\n")
    assert sorted(dags_of(tmp_path)) == ["good__full", "good__incremental"]
    assert list(broken(tmp_path)) == ["bad.yaml"]
    assert told in broken(tmp_path)["bad.yaml"]


def test_an_error_that_nobody_foresaw_leaves_the_others_alone(
    jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever making one DAG may raise one day."""
    from dataflow_ops.airflow import catalog, dag_factory

    def made(job: Path, *arguments: Any, **named: Any) -> Any:
        if job.name == "a_web.yaml":
            raise RecursionError("too deep")
        return dag_factory.corpus_dag(job, *arguments, **named)

    monkeypatch.setattr(catalog, "corpus_dag", made)
    assert sorted(dags_of(jobs)) == ["code__full", "code__incremental"]
    assert "RecursionError: too deep" in catalog.broken(jobs)["a_web.yaml"]


def test_folders_without_broken_files_say_nothing(tmp_path: Path) -> None:
    from dataflow_ops.airflow.catalog import tell_broken

    write(tmp_path, "web.yaml", "dataset: {id: web}\n")
    tell_broken(tmp_path)
    tell_broken(tmp_path / "no such folder")


def test_airflow_shows_the_broken_ones_and_keeps_the_others(
    jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("DATAFLOW_JOBS", str(jobs))
    monkeypatch.setenv("DATAFLOW_HOME", str(jobs / "home"))
    bag = DagBag(str(Path(__file__).resolve().parents[2] / "dags"))
    assert {"code__full", "web__full", "web__incremental", "dataflow_maintenance"} <= set(bag.dags)
    [(place, message)] = bag.import_errors.items()
    assert place.endswith("job_errors.py"), "a file with DAGs would lose them to its import error"
    assert "jobs/b_typo.yaml: no DAG" in message


def test_schedules_are_the_jobs_own_in_the_data_sets_time_zone(jobs: Path) -> None:
    dags = dags_of(jobs)
    weekly, daily = dags["web__full"].timetable, dags["web__incremental"].timetable
    assert (weekly.expression, str(weekly.timezone)) == ("0 3 * * 0", "Asia/Shanghai")
    assert (daily.expression, str(daily.timezone)) == ("0 2 * * *", "Asia/Shanghai")
    assert dags["code__full"].timetable.expression == "5 4 * * 1"
    assert dags["code__incremental"].schedule is None
    # What runs by itself is switched on by a person; a trigger of the rest works at once.
    assert dags["web__full"].is_paused_upon_creation is True
    assert dags["code__incremental"].is_paused_upon_creation is False
    assert (dags["web__full"].max_active_runs, dags["web__incremental"].max_active_runs) == (1, 4)


def test_the_form_is_typed_and_explained_in_both_languages(jobs: Path) -> None:
    params = dags_of(jobs)["web__incremental"].params
    assert list(params) == ["until", "priority", "dry_run", "overrides", "promote"]
    for name in params:
        param = params.get_param(name)
        assert {"title", "type"} <= set(param.schema), name
        assert ("section" in param.schema) == (name in ("overrides", "promote")), "others are in sight"
        for text in (param.schema["title"], param.schema.get("section", "a 一"), param.description):
            assert any("一" <= c <= "鿿" for c in text), f"{name}: {text}"
            assert any("a" <= c <= "z" for c in text), f"{name}: {text}"
    until = params.get_param("until").schema
    assert set(until["values_display"]) == {str(value) for value in until["enum"]}, "shown as they are stored"


def test_a_field_that_was_emptied_is_no_fault(jobs: Path) -> None:
    """Airflow's form makes null of it."""
    params = dags_of(jobs)["web__full"].params
    params["overrides"] = None
    assert params.get_param("overrides").value is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("until", "cleaning"), ("overrides", ["no equals sign"]), ("priority", "asap"), ("dry_run", "maybe")],
)
def test_the_form_refuses_nonsense(jobs: Path, name: str, value: Any) -> None:
    from airflow.sdk.exceptions import AirflowException

    params = dags_of(jobs)["web__full"].params
    with pytest.raises((AirflowException, ValueError)):
        params[name] = value


def test_names_say_what_a_task_does(jobs: Path) -> None:
    dag = dags_of(jobs)["web__full"]
    parse, match = dag.get_task("parse.parse"), dag.get_task("dedup.match")
    assert parse.task_display_name == "Parse to text"
    assert (parse.partial_kwargs["queue"], match.partial_kwargs["queue"]) == ("cpu", "memory")
    assert dag.doc_md is not None
    assert "dataflow run a_web.yaml --mode full" in dag.doc_md
