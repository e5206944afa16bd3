"""Augmentation against a real endpoint on this machine: what it costs, and what survives.

    python -m bench.samples.augment speed --rows 5000        CPU and answers a second, no faults
    python -m bench.samples.augment trial --rows 20000       faults, kills, pauses, restarts of the database

PostgreSQL is started here. ``trial`` ends with an error where a row has none or two results, an answer was
asked for again that was not under way at a kill, or a cursor was wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx
import psutil

from dataflow_ops.clients.openai_api import OpenAiApi
from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.samples.augment.run import ask_for_task, run_augment
from dataflow_ops.state.samples.store import SampleStore
from tests.samples.augment.augment_case import Heard, put_samples, template
from tests.samples.augment.model_server import model_server, seeded
from tests.samples.augment.trial import CONCURRENCY, Trial
from tests.state.postgres_server import find_binaries, restart_server, shared_server, stop_server


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def speed(url: str, rows: int, concurrency: int) -> None:
    """One process asks, another answers at once: the CPU is that of asking and storing."""
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "url"
        child = os.fork()
        if child == 0:
            with model_server() as server:
                note.with_suffix(".tmp").write_text(server.url)
                note.with_suffix(".tmp").rename(note)
                time.sleep(3600)
        try:
            while not note.exists():
                time.sleep(0.05)
            wanted = template(limits={"concurrency": concurrency})
            with SampleStore(url) as store, httpx.Client(limits=httpx.Limits(max_connections=256)) as http:
                put_samples(store, rows)
                task = ask_for_task(store, wanted, "chat", "bench")
                api = OpenAiApi(http, note.read_text(), "", wanted.endpoint.patience)
                began, cpu = time.monotonic(), time.process_time()
                watch = PauseWatch(store, task.task_id, "chat")
                ended = run_augment(store, task, wanted, api, watch, Heard())
                wall, cpu = time.monotonic() - began, time.process_time() - cpu
        finally:
            psutil.Process(child).kill()
            os.waitpid(child, 0)
    print(f"{ended.state}: {ended.message}")
    print(f"{concurrency} at once: {rows / wall:,.0f} answers/s, {1e3 * cpu / rows:.2f} ms CPU each")


def trial(url: str, folder: Path, binaries: Path, arguments: argparse.Namespace) -> None:
    """The trial of the tests, longer."""
    events = ["kill"] * arguments.kills + ["pause"] * arguments.pauses + ["database"] * arguments.restarts
    random.Random(arguments.seed).shuffle(events)
    with (
        tempfile.TemporaryDirectory() as home,
        SampleStore(url, 30.0) as store,
        model_server(seeded(arguments.seed), slow_s=0.3, delay_s=0.01) as endpoint,
    ):
        found = Trial(Path(home), url, endpoint, lambda: restart_server(folder, binaries), say)
        found.prepare(store, arguments.rows)
        began = time.monotonic()
        code = found.run(store, events)
        wall = time.monotonic() - began
        found.check_cursor(store)
        answered, failed = found.check_each_has_one(store)
        found.check_counts(store)
        found.check_calls()
    kinds = ", ".join(f"{what} {n:,}" for what, n in Counter(c.what for c in endpoint.calls).most_common())
    print(f"exit {code} after {wall:,.0f} s; {answered:,} answers, {failed:,} in the failure queue")
    print(f"{len(endpoint.calls):,} calls: {kinds}")
    lost, most = sum(found.lost.values()), max(found.lost.values(), default=0)
    print(
        f"{arguments.kills} kills lost {lost} answers that were under way, at most {most} each"
        f" ({CONCURRENCY} are asked at once); {arguments.pauses} pauses and {arguments.restarts} restarts of"
        " the database lost none"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("speed", "trial"))
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pauses", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    binaries = find_binaries()
    if binaries is None:
        sys.exit("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="dataflow-augment-"))
    server = shared_server(folder, binaries)
    try:
        with server.database(migrated=True) as url:
            if arguments.what == "speed":
                speed(url, arguments.rows, arguments.concurrency)
            else:
                trial(url, folder, binaries, arguments)
    finally:
        stop_server(folder)


if __name__ == "__main__":
    main()
