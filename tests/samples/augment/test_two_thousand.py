"""2,000 rows, an endpoint with every fault, pauses, kills, a database that restarts: nothing is lost."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from dataflow_ops.state.samples.store import SampleStore
from tests.samples.augment.model_server import model_server, seeded
from tests.samples.augment.trial import Trial
from tests.state.postgres_server import find_binaries, restart_server, shared_server, stop_server

ROWS = 2000
EVENTS = ["kill"] * 5 + ["pause"] * 3 + ["database"]


@pytest.mark.crash
@pytest.mark.postgres
def test_two_thousand_rows(tmp_path_factory: pytest.TempPathFactory) -> None:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed")
    home = tmp_path_factory.mktemp("home")
    # Not below pytest's own folder: the server runs as somebody else, who must reach its data.
    folder = Path(tempfile.mkdtemp(prefix="dataflow-pg-"))
    server = shared_server(folder, binaries)
    try:
        with server.database(migrated=True) as url:
            _trial(home, url, folder, binaries)
    finally:
        stop_server(folder)


def _trial(home: Path, url: str, folder: Path, binaries: Path) -> None:
    events = random.Random(5).sample(EVENTS, len(EVENTS))
    with SampleStore(url, 30.0) as store, model_server(seeded(5), slow_s=0.3, delay_s=0.01) as endpoint:
        trial = Trial(home, url, endpoint, lambda: restart_server(folder, binaries))
        trial.prepare(store, ROWS)
        assert trial.run(store, events) == 4, (home / "log").read_text()
        task = store.sample_task(trial.task_id)
        # A pause costs no attempt, a kill costs one.
        assert (task.state, task.attempt) == ("SUCCESS", 6)
        trial.check_cursor(store)
        answered, failed = trial.check_each_has_one(store)
        trial.check_counts(store)
        trial.check_calls()
    assert answered > 0.85 * ROWS
    assert failed > 0.02 * ROWS
    faults = {call.what for call in endpoint.calls}
    assert faults >= {"slow", "empty", "limit", "broken", "json", "cut", "cut_early", "encoding", "gzip_lie"}
    assert 0 < sum(trial.lost.values()), "no kill met an answer under way: the trial shows nothing"
