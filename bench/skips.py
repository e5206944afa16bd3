"""How long it takes to tell done chunks from open ones: plan, one query, one listing.

    python -m bench.skips [CHUNKS ...] [--done SHARE] [--step STEP] [--profile]

For each number of chunks a home is built as a run leaves it that lost its power: ``discover`` and all
steps before STEP done, of STEP the given share (95 %), its output files on disk (hard links of one small
file: their sizes and times are those recorded). Measured is :meth:`Driver.plan`, the very code that every
run goes through before its first task of a step: in a fresh driver of the same run taken up again, and in
a new run over the same keys, which has to link them first.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import sqlalchemy as sa

from dataflow_ops.cli.console import ConsoleReporter
from dataflow_ops.engine.context import RunContext
from dataflow_ops.engine.pool import Pool
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.ingest.discover import CHUNKS
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.driver import Driver, Planned
from dataflow_ops.pipeline.flow import STEP_NAMES
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.database import dump
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import task, task_output
from dataflow_ops.storage.chunk_store import ChunkStore, data_uri
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.values import Counts, TaskSpec

LINKS = 1_000
"""Names that one file gets: file systems bound them."""
SMALL_CHUNK = 100 << 20
DIGEST = "ab" * 32
BOUNDS = {1_000: 0.2, 100_000: 5.0}
"""Chunks -> seconds that planning may take."""


def settings() -> JobSettings:
    """A job of one source."""
    return parse_job(
        {"dataset": {"id": "skips"}, "sources": [{"source_id": "web", "path": "pages"}]}, "bench"
    )


class Place:
    """A home with a state database, in a folder that is removed afterwards."""

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root = url, root
        self.state = StateStore(url)
        self.chunks = ChunkStore(LocalStore(root))

    def driver(self, run_id: str) -> Driver:
        """A run, seen for the first time."""
        context = RunContext(run_id, settings(), self.root, self.url)
        if self.state.get_run(run_id) is None:
            self.state.create_run(
                run_id, "skips", "skips", "full", settings().model_dump_json(), "2026-01-01"
            )
        pool = Pool(context, build_steps, 0)
        return Driver(
            context, build_steps(context), self.state, self.chunks, pool, ConsoleReporter(quiet=True)
        )

    def build(self, run_id: str, chunks: int, step: str, share: float) -> None:
        """Bring a run up to the middle of a step."""
        driver = self.driver(run_id)
        names = [f"{(i * 0x9E3779B97F4A7C15) % (1 << 64):016x}" for i in range(chunks)]
        self._discover(driver, sorted(names))
        for name in STEP_NAMES[1 : STEP_NAMES.index(step) + 1]:
            before = driver.plan(name).todo
            last = name == step
            self._finish(driver, before[: round(len(before) * share)] if last else before, names, files=last)

    def _discover(self, driver: Driver, names: list[str]) -> None:
        [spec] = driver.plan("discover").todo
        driver.index.forget()
        n = len(names)
        table = pa.table(
            {
                "chunk": names,
                "source_id": ["web"] * n,
                "files": [1] * n,
                "bytes": [SMALL_CHUNK] * n,
                "prefix": [""] * n,
            },
            schema=CHUNKS,
        )
        specs = {o.kind: o for o in driver.steps["discover"].outputs}
        writer = self.chunks.writer("discover", "all", spec.key, 1, {"chunks": specs["chunks"]})
        writer.append("chunks", table)
        [written] = writer.finish()
        parts = [[name, i * 2_000, 2_000, DIGEST, 1] for i, name in enumerate(names)]
        rows = [
            {**_output(spec, "chunks", written.uri), "size": written.size, "mtime_ns": written.mtime_ns},
            {**_output(spec, "files", data_uri("discover", "all", spec.key, "files")), "slices": dump(parts)},
        ]
        rows[0] |= {"sha256": written.sha256, "rows": n}
        self._record([spec], rows)

    def _finish(self, driver: Driver, specs: list[TaskSpec], names: list[str], files: bool) -> None:
        rows = []
        source = self.root / "one"
        for i, spec in enumerate(specs):
            if files and i % LINKS == 0:
                source.unlink(missing_ok=True)
                source.write_bytes(b"x" * 64)
                os.utime(source, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
            for out in driver.steps[spec.step].outputs:
                uri = data_uri(spec.step, spec.partition, spec.key, out.kind)
                if files:
                    path = self.root / uri
                    try:
                        os.link(source, path)
                    except FileNotFoundError:
                        path.parent.mkdir(parents=True, exist_ok=True)
                        os.link(source, path)
                row = _output(spec, out.kind, uri)
                if out.slice_by:
                    to = names[:4] if out.slice_by == "chunk" else ["0", "1", "2", "3"]
                    row["slices"] = dump([[p, 16 * k, 16, DIGEST, 1] for k, p in enumerate(to)])
                rows.append(row)
        self._record(specs, rows)

    def _record(self, specs: list[TaskSpec], outputs: list[dict[str, object]]) -> None:
        counts = Counts(documents_in=100, kept=100, documents_out=100, bytes_in=SMALL_CHUNK)
        values = {
            "state": "SUCCESS",
            "epoch": 1,
            "attempt": 1,
            "seconds": 1.0,
            "documents_in": counts.documents_in,
            "kept": counts.kept,
            "rejected": 0,
            "dead": 0,
            "skipped": '{"rejected_before":3}',
            "documents_out": counts.documents_out,
            "bytes_in": counts.bytes_in,
            "tokens_out": 0,
        }
        with self.state.db.write() as connection:
            connection.execute(
                sa.update(task).where(task.c.key == sa.bindparam("k")).values(values),
                [{"k": spec.key} for spec in specs],
            )
            if outputs:
                blank = {"slices": None, "attributes": None}
                connection.execute(sa.insert(task_output), [blank | row for row in outputs])


def _output(spec: TaskSpec, kind: str, uri: str) -> dict[str, object]:
    return {
        "task_key": spec.key,
        "kind": kind,
        "uri": uri,
        "size": 64,
        "mtime_ns": 1_700_000_000_123_456_789,
        "sha256": DIGEST,
        "rows": 100,
    }


def measure(what: str, plan: Callable[[], Planned], done: int, bound: float | None, profile: bool) -> bool:
    """Time one planning; print it; say whether it kept its bounds and told right."""
    profiler = cProfile.Profile() if profile else None
    wall, cpu = time.perf_counter(), time.process_time()
    if profiler:
        profiler.enable()
    planned = plan()
    if profiler:
        profiler.disable()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    per = wall / max(1, done) * 1000
    right = planned.report.skipped == done and len(planned.todo) == planned.report.tasks - done
    kept = right and (bound is None or (wall <= bound and per <= 0.1))
    print(
        f"  {what:<38} {wall:8.3f} s wall  {cpu:8.3f} s CPU  {per:8.4f} ms a skip"
        f"  {planned.report.skipped} skipped, {len(planned.todo)} to do"
        + ("" if bound is None else f"  bound {bound} s: {'kept' if kept else 'MISSED'}")
        + ("" if right else "  TOLD WRONG")
    )
    if profiler:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(35)
    return kept


def bench(url: str, root: Path, chunks: int, step: str, share: float, profile: bool) -> bool:
    """One home, both measurements."""
    place = Place(url, root)
    try:
        began = time.perf_counter()
        place.build("first", chunks, step, share)
        print(f" {chunks} chunks, {place.state.engine.dialect.name}, step {step}", end="")
        print(f" (built in {time.perf_counter() - began:.1f} s)")
        done = round(chunks * share)
        bound = BOUNDS.get(chunks)
        again = place.driver("first")
        good = measure("the run taken up again", lambda: again.plan(step), done, bound, profile)
        good &= measure("the same, asked twice", lambda: again.plan(step), done, bound, False)
        other = place.driver("second")
        for name in STEP_NAMES[: STEP_NAMES.index(step)]:
            specs = [
                TaskSpec(r.key, r.step, r.layer, r.partition)
                for r in place.state.records_of_step("first", name).values()
            ]
            place.state.enqueue("second", specs)
        good &= measure("a new run over the same keys", lambda: other.plan(step), done, bound, False)
        return good
    finally:
        place.state.close()


def main() -> int:
    """Run; exit 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chunks", nargs="*", type=int, default=[1_000, 100_000])
    parser.add_argument("--done", type=float, default=0.95)
    parser.add_argument("--step", default="parse")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--postgres", default="", help="URL of an empty PostgreSQL database to measure, too")
    options = parser.parse_args()
    good = True
    for chunks in options.chunks:
        for url in ("sqlite", options.postgres):
            if not url:
                continue
            folder = Path(tempfile.mkdtemp(prefix="dataflow-skips-"))
            try:
                where = url if url != "sqlite" else f"sqlite:///{folder / 'state.db'}"
                good &= bench(where, folder, chunks, options.step, options.done, options.profile)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
