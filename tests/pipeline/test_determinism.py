"""The same input gives the same bytes, whatever the workers, the order, the sizes, the hash seed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pipeline import corpus
from tests.pipeline.harness import once, published


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.build(tmp_path_factory.mktemp("sources") / "in")


@pytest.fixture(scope="module")
def reference(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    home = tmp_path_factory.mktemp("reference")
    result = once(sources, home)
    assert result["state"] in ("SUCCEEDED", "SUCCEEDED_WITH_DEAD")
    return home, published(home)


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1, "seed": "1"},
        {"workers": 2},
        {"workers": 4, "tuning": {"batch_rows": 7}},
        {"workers": 0, "tuning": {"batch_rows": 1, "stage_every_s": 0.0}},
        {"workers": 2, "tuning": {"batch_bytes": 20_000}, "seed": "1"},
    ],
    ids=["one-worker", "two", "four-small-batches", "one-row-batches-staged", "small-bytes"],
)
def test_same_bytes(
    sources: Path, reference: tuple[Path, dict[str, str]], tmp_path: Path, options: dict
) -> None:
    once(sources, tmp_path, **options)
    assert published(tmp_path) == reference[1]


def test_files_written_in_another_order_with_other_times(
    sources: Path, reference: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder = sources.parent
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and path != sources:
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)
            os.utime(path, (1_000_000_000, 1_000_000_000))
    once(sources, tmp_path)
    assert published(tmp_path) == reference[1]


def test_a_second_run_skips_everything(sources: Path, reference: tuple[Path, dict[str, str]]) -> None:
    home, before = reference
    again = once(sources, home)
    assert {name: ran for name, (_, ran, _) in again["tasks"].items() if ran} in (
        {},
        {"discover": 1, "fetch": again["tasks"]["fetch"][0]},
    )
    assert again["tasks"]["parse"][1:] == [0, again["tasks"]["parse"][0]]
    assert published(home) == before
