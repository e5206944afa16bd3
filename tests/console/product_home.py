"""A small data set with a version of every kind of fate, for the tests of the product page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.console.dags import Consumer, DagFact
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.state.store import StateStore
from tests.pipeline import inside, prose

CHINESE = "数据平台把原始文档变成带版本的训练集。" * 3
LOOP = "again and again and again, " * 40


@dataclass(frozen=True)
class Product:
    """A home with one version, and what its sources hold."""

    root: Path
    version: str
    texts: Mapping[str, str]

    @property
    def job(self) -> Path:
        return self.root / "sources" / "job.yaml"

    @property
    def home(self) -> Home:
        return open_home(self.root / "home", create=False)

    @contextmanager
    def state(self) -> Iterator[StateStore]:
        with StateStore(self.home.state_url) as state:
            yield state


class Dags:
    """An orchestrator's facts."""

    def __init__(self, consumers: Mapping[str, Sequence[Consumer]] | None = None) -> None:
        self._consumers = consumers or {}

    def dags(self) -> Sequence[DagFact]:
        return [
            DagFact("tiny__full", "tiny", "full", "of the DAG", "0 4 * * 0", 2e9),
            DagFact("tiny__incremental", "tiny", "incremental", is_paused=True),
            DagFact("new__full", "new", "full", "never run"),
        ]

    def consumers(self, dataset: str) -> Mapping[str, Sequence[Consumer]]:
        assert dataset == "tiny"
        return self._consumers


def build(root: Path) -> Product:
    """Sources with an exact and a near copy, a refused text, a broken record, and a pool that mixing cuts."""
    pool = prose.sentences()
    sources = root / "sources"
    (sources / "notes").mkdir(parents=True)
    texts = {f"note-{i}.txt": prose.note(i, pool) for i in range(6)}
    texts["copy.txt"] = "\n\n" + texts["note-1.txt"].upper()
    texts["near.txt"] = texts["note-2.txt"].replace(" the ", " a ", 2)
    texts["loop.txt"] = LOOP
    for name, text in texts.items():
        (sources / "notes" / name).write_text(text, encoding="utf-8")
    (sources / "pool").mkdir()
    for i in range(6):
        (sources / "pool" / f"pool-{i}.txt").write_text(prose.note(100 + i, pool), encoding="utf-8")
    (sources / "rows").mkdir()
    rows = [
        json.dumps({"id": str(i), "url": f"https://example.org/p/{i}", "text": prose.note(200 + i, pool)})
        for i in range(4)
    ]
    lines = [*rows, "{broken", ""]
    (sources / "rows" / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    job = sources / "job.yaml"
    job.write_text(
        f"""dataset: {{id: tiny, description: "a small one"}}
sources:
  - {{source_id: notes, kind: files, path: {sources}/notes, domain: notes}}
  - {{source_id: pool, kind: files, path: {sources}/pool, domain: pool}}
  - {{source_id: rows, kind: jsonl, path: {sources}/rows, domain: rows}}
ingest: {{chunk_mb: 0.01}}
mixing: {{caps: {{pool: 900}}}}
run: {{max_dead_share: 0.5}}
output: {{partition_by: [domain], version: t, shards: 2}}
""",
        encoding="utf-8",
    )
    made = inside.run(job, root / "home")
    assert made.current, made.message
    return Product(root, made.version_id, texts)
