"""Rows a second of import, clean-up and export: ``python -m bench.samples.flow --turns 1000000``.

PostgreSQL with its usual durability, started here; each stage is a process of its own, whose clock, CPU time
and peak memory are measured. Of the turns 20 % are changed by the clean-up (line ends, blanks, and so on); of
the dialogues 2 % are copies and 3 % copies with a word changed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.samples.make import dialogues
from bench.samples.server import durable_database
from dataflow_ops.samples.cleaning.settings import SampleCleanSettings
from dataflow_ops.samples.cleaning.task import CleanStep
from dataflow_ops.samples.export.settings import SampleExportSettings
from dataflow_ops.samples.export.task import ExportStep
from dataflow_ops.samples.importing import ImportStep, plan_import
from dataflow_ops.samples.running import run_task
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.storage.local import LocalStore

DATASET = "bench"


def write(path: Path, turns: int, seed: int) -> tuple[int, int]:
    """Write the file; how many turns, and how many of them a clean-up changes."""
    draw = random.Random(seed)
    made = worn = 0
    with path.open("w", encoding="utf-8") as out:
        for record in dialogues(turns, seed):
            for copy in range(1 + (draw.random() < 0.05)):
                messages = [dict(turn) for turn in record["messages"]]
                if copy and draw.random() < 0.6:
                    words = messages[-1]["content"] or ""
                    messages[-1]["content"] = words[:-3] + "?!"
                for turn in messages:
                    if turn["content"] and draw.random() < 0.2:
                        worn += 1
                        turn["content"] = draw.choice(["{} ", "\r\n{}", "{}\x07", "{}e\u0301"]).format(
                            turn["content"].encode("utf-8", "replace").decode()
                        )
                made += len(messages)
                out.write(json.dumps({**record, "messages": messages}) + "\n")
                if made >= turns:
                    return made, worn
    return made, worn


def work(stage: str, url: str, path: str, root: str) -> None:
    """One stage, in this process; print what it took."""
    began = time.monotonic()
    with SampleStore(url) as store:
        if stage == "import":
            task = run_task(store, str(plan_import(store, DATASET, [path], "me").task_id), ImportStep(store))
        else:
            files = [file.id for file in store.sample_files(DATASET)]
            settings: dict[str, Any] = {}
            if stage == "clean":
                settings = SampleCleanSettings().model_dump(mode="json")
            if stage == "export":
                settings = SampleExportSettings(compression="zst").model_dump(mode="json")
            store.create_task(stage, DATASET, stage, settings, files, "me")
            step = CleanStep(store) if stage == "clean" else ExportStep(store, LocalStore(Path(root)), _never)
            task = run_task(store, stage, step)  # type: ignore[arg-type]
    took = time.monotonic() - began
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([task.counts, took, own.ru_utime + own.ru_stime, own.ru_maxrss / 1024]))


def _never() -> bool:
    return False


def main() -> None:
    """Make the file and run the three stages."""
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-flow-") as folder:
        path = Path(folder, "dialogues.jsonl")
        turns, worn = write(path, given.turns, given.seed)
        print(f"{turns:,} turns, {worn:,} of them worn, {path.stat().st_size / 1e6:.0f} MB")
        print("stage    rows/s  clock s  CPU s (worker)  peak MB  load", flush=True)
        with durable_database() as url:
            for stage in ("import", "clean", "export"):
                load = os.getloadavg()[0]
                command = [sys.executable, "-m", "bench.samples.flow", "work", stage, url, str(path), folder]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                counts, took, cpu, peak = json.loads(done.stdout)
                print(f"{stage:7} {turns / took:7,.0f} {took:8.1f} {cpu:15.1f} {peak:8.0f}  {load:.1f}")
                print(f"        { ({k: int(v) for k, v in counts.items()}) }", flush=True)


if __name__ == "__main__":
    main()
