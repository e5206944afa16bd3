from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.settings import REPOSITORY, StackSettings, load_settings


def _write(folder: Path, text: str) -> Path:
    path = folder / "stack.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_file_of_the_repository_says_what_the_code_takes_where_a_key_is_left_out() -> None:
    written = load_settings(REPOSITORY / "stack.yaml")
    defaults = StackSettings()
    places = {"home", "jobs", "dags", "plugins", "containers"}
    assert written.model_dump(exclude=places) == defaults.model_dump(exclude=places)
    assert written.containers.model_dump(exclude={"limits"}) == defaults.containers.model_dump(
        exclude={"limits"}
    )


def test_relative_paths_count_from_the_file(tmp_path: Path) -> None:
    settings = load_settings(_write(tmp_path, "home: here\njobs: ../jobs\n"))
    assert settings.home == tmp_path / "here"
    assert settings.jobs == tmp_path.parent / "jobs"


def test_arguments_win_over_the_file(tmp_path: Path) -> None:
    path = _write(tmp_path, "home: a\nports: {web: 1111, redis: 2222}\nworkers: {count: 5, concurrency: 3}\n")
    settings = load_settings(path, workers=1, port=3333, home=tmp_path / "b")
    assert (settings.workers.count, settings.workers.concurrency) == (1, 3)
    assert (settings.ports.web, settings.ports.redis) == (3333, 2222)
    assert settings.home == tmp_path / "b"


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load_settings(_write(tmp_path, "")).workers == StackSettings().workers


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ports: {wbe: 1}", "ports.wbe: unknown key"),
        ("prots: {}", "prots: unknown key"),
        ("ports: {web: 0}", "ports.web"),
        ("ports: {web: 5790}", "each server needs a port of its own"),
        ("workers: {count: -1}", "workers.count"),
        ("workers: {queues: [CPU]}", "workers.queues"),
        ("workers: 3", "workers"),
        ("host: a b", "host"),
        ("environment: {A B: c}", "environment"),
        ("containers: {limits: {redsi: {cpus: 1, memory: 1g}}}", "containers.limits.redsi"),
        ("- a", "expected sections"),
        ("a: [", "can't be read as YAML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace("[", r"\[")):
        load_settings(_write(tmp_path, text))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such settings file"):
        load_settings(tmp_path / "nothing.yaml")
