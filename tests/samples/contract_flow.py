"""What clean-ups and exports must do as tasks, on every database. Subclasses supply ``url``."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.cleaning.settings import SampleCleanSettings
from dataflow_ops.samples.cleaning.task import CleanStep
from dataflow_ops.samples.export.settings import SampleExportSettings
from dataflow_ops.samples.export.task import ExportStep
from dataflow_ops.samples.running import run_task
from dataflow_ops.state.sample_tables import generation, sample
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.storage.local import LocalStore
from tests.samples.cleaning.table import fill, history, rows, verdicts
from tests.samples.cleaning.test_clean import corpus
from tests.state.samples.sample_case import SampleCase

FILES = {"a": corpus(11, 40), "b": corpus(12, 30)}
MOMENTS = ("before", "written", "committed")


def ask_clean(store: SampleStore, task_id: str = "c", files: tuple[str, ...] = ("a", "b")) -> None:
    settings = SampleCleanSettings.model_validate(
        {"clean": {"quality_rules": {"enabled": False}}, "batch_rows": 24}
    )
    store.create_task(task_id, "d", "clean", settings.model_dump(mode="json"), files, "ann")


def ask_export(store: SampleStore, task_id: str = "e", **given: Any) -> None:
    settings = SampleExportSettings.model_validate({"shard_records": 9, "compression": "gz", **given})
    store.create_task(task_id, "d", "export", settings.model_dump(mode="json"), ["a", "b"], "ann")


def export(store: SampleStore, root: Path, task_id: str = "e") -> SampleTask:
    return run_task(store, task_id, ExportStep(store, LocalStore(root), lambda: False))


def outcome(store: SampleStore) -> tuple[Any, ...]:
    told = store.sample_task("c")
    return verdicts(store), history(store), told.counts, [r["data_content"] for r in rows(store)]


def exported(root: Path) -> dict[str, str]:
    folder = root / "exports" / "d" / "e"
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def die(kind: str, store: SampleStore, root: Path, moment: str, number: int) -> None:
    """Run a task in a process that kills itself."""
    command = [sys.executable, "-m", "tests.samples.doomed_flow", kind, store.url, str(root)]
    done = subprocess.run(
        [*command, {"clean": "c", "export": "e"}[kind], moment, str(number)], cwd=Path(__file__).parents[2]
    )
    assert done.returncode == -signal.SIGKILL


class FlowContract(SampleCase):
    def test_killed_three_times_they_end_as_if_nothing_had_been(
        self, store: SampleStore, tmp_path: Path
    ) -> None:
        with SampleStore(f"sqlite:///{tmp_path / 'twin.db'}") as twin:
            fill(twin, FILES)
            ask_clean(twin)
            run_task(twin, "c", CleanStep(twin))
            ask_export(twin)
            export(twin, tmp_path / "twin")
            wanted, bytes_wanted = outcome(twin), exported(tmp_path / "twin")
        fill(store, FILES)
        ask_clean(store)
        for number, moment in enumerate(MOMENTS, 1):
            die("clean", store, tmp_path, moment, number)
        run_task(store, "c", CleanStep(store))
        assert outcome(store) == wanted
        ask_export(store)
        for number, moment in enumerate(MOMENTS, 1):
            die("export", store, tmp_path, moment, number)
        task = export(store, tmp_path)
        assert (task.state, task.attempt) == ("SUCCESS", 4)
        assert exported(tmp_path) == bytes_wanted

    def test_a_pause_is_no_failure_and_costs_no_attempt(self, store: SampleStore, tmp_path: Path) -> None:
        fill(store, FILES)
        ask_clean(store)
        store.set_pause("dataset", "d", "ann")
        task = run_task(store, "c", CleanStep(store), PauseWatch(store, "c", "d", interval_s=1e-9))
        assert (task.state, store.sample_cursor("c")) == ("PAUSED", None)
        store.clear_pause("dataset", "d", "ann")
        task = run_task(store, "c", CleanStep(store))
        assert (task.state, task.attempt, task.error_type) == ("SUCCESS", 1, None)

    def test_an_export_gives_up_a_shard_to_pause(self, store: SampleStore, tmp_path: Path) -> None:
        fill(store, FILES)
        ask_export(store, status=["NEW"])
        looks = iter([False, False, True])
        task = run_task(store, "e", ExportStep(store, LocalStore(tmp_path), lambda: next(looks)))
        assert task.state == "PAUSED"
        at = store.sample_cursor("e")
        assert at is not None
        assert (at.file_id, at.offset, task.counts["records"]) == ("a", 18, 18)
        assert export(store, tmp_path).counts["records"] == 70

    def test_the_manifest_tells_all(self, store: SampleStore, tmp_path: Path) -> None:
        fill(store, FILES)
        ask_clean(store)
        run_task(store, "c", CleanStep(store))
        ask_export(store, form="instruction")
        export(store, tmp_path)
        folder = tmp_path / "exports" / "d" / "e"
        told = json.loads((folder / "manifest.json").read_text())
        kept = sum(status == "KEPT" for status, _ in verdicts(store).values())
        assert told["counts"]["dialogues"] == kept
        assert sum(s["records"] for s in told["shards"]) + sum(told["left_out"].values()) == kept
        assert [f["id"] for f in told["files"]] == ["a", "b"]
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)

    def test_answers_go_along_whoever_asked(self, store: SampleStore, tmp_path: Path) -> None:
        fill(store, {"a": FILES["a"][:3], "b": FILES["b"][:1]})
        settings = {"template": {}, "prompt_version": "v1"}
        store.create_task("aug", "d", "augment", settings, ["a"], "ann")
        ask_export(store, status=["NEW"], answers_of=["aug"], originals=False)
        with pytest.raises(ConfigError, match="PENDING"):
            export(store, tmp_path)
        store.finish_task(store.claim_task("aug", "me"))
        self._answer(store, "k1", "v1", 1, "first")
        self._answer(store, "k2", "v2", 1, "of another prompt")
        task = export(store, tmp_path)
        assert task.state == "SUCCESS"
        assert task.counts["records"] == 1
        assert task.counts["left_out.no answer of a model"] == 3

    def test_rows_that_vanish_stop_the_task_and_nothing_is_kept(
        self, store: SampleStore, tmp_path: Path
    ) -> None:
        fill(store, FILES)
        ask_clean(store)
        step = CleanStep(store)
        claim = store.claim_task("c", "me")
        batch = next(step.batches(claim))
        with store.write() as connection:
            connection.execute(sa.delete(sample).where(sample.c.id == 1))
        with pytest.raises(Exception, match="gone"), store.write() as connection:
            step.keep(connection, claim, batch)
        assert history(store) == []

    def _answer(self, store: SampleStore, key: str, version: str, row: int, text: str) -> None:
        values = {
            "request_key": key, "task_id": "earlier", "sample_id": row * 2 + 1, "dataset_file_id": "a",
            "row_identifier": row, "turn_taking": 0, "draw": 1, "prompt_name": "p", "prompt_version": version,
            "model": "m", "parameters": "{}", "result_as": "next_turn", "answer": text, "prompt_tokens": 1,
            "completion_tokens": 1, "cost": 0.0, "lost_tokens": 0, "lost_cost": 0.0, "seconds": 1.0,
            "created_at": 0.0,
        }  # fmt: skip
        with store.write() as connection:
            connection.execute(sa.insert(generation).values(**values))
