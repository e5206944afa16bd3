"""A corpus that grows by the day, run in this process, and what its versions hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.finish import Finished
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.pipeline.tombstones import without_hidden
from dataflow_ops.pipeline.version_reader import open_version
from dataflow_ops.pipeline.versions import VersionBook
from dataflow_ops.state.store import StateStore
from tests.pipeline.inside import Notes, texts

TEXTS = texts()
JOB = """dataset: {{id: grows}}
sources:
  - {{source_id: docs, kind: files, path: {root}/docs, domain: web}}
ingest: {{chunk_mb: {chunk_mb}}}
drift: {{max_domain_shift: 1, max_language_shift: 1}}
output: {{version: g, shards: 2}}
"""


@dataclass
class Growing:
    """Sources, job and home below one folder."""

    root: Path
    chunk_mb: float = 0.03
    home: Path = field(init=False)
    job: Path = field(init=False)

    def __post_init__(self) -> None:
        (self.root / "docs").mkdir(parents=True, exist_ok=True)
        self.home, self.job = self.root / "home", self.root / "job.yaml"
        self.job.write_text(JOB.format(root=self.root, chunk_mb=self.chunk_mb), encoding="utf-8")

    def put(self, name: str, text: str) -> None:
        """A document."""
        (self.root / "docs" / name).write_text(text, encoding="utf-8")

    def run(
        self, mode: str = "full", date: str = "2026-11-01", notes: Notes | None = None, **more: Any
    ) -> Finished:
        """One run, to its end."""
        overrides: Sequence[str] = more.pop("set", ())
        more.setdefault("workers", 0)
        settings = load_job(self.job, overrides)
        return run_job(settings, self.home, mode=mode, data_date=date, reporter=notes or Notes(), **more)

    def day(self, number: int, **more: Any) -> Finished:
        """The incremental run of a day in November."""
        return self.run("incremental", f"2026-11-{number:02}", **more)

    def state(self) -> StateStore:
        """The state store, to be closed."""
        return StateStore(open_home(self.home, create=False).state_url)

    def fates(self, version: str) -> dict[str, tuple[str, str, str]]:
        """Path -> ``(fate, id of the survivor, id)`` of every document that a version stands for."""
        found: dict[str, tuple[str, str, str]] = {}
        home = open_home(self.home, create=False)
        with StateStore(home.state_url) as state:
            for part in open_version(home, state, version).parts:
                for output in part.lineage.values():
                    table = part.reader.read(output, columns=("doc_id", "path", "fate", "survivor_id"))
                    for row in without_hidden(table, part.hidden).to_pylist():
                        assert row["path"] not in found, f"{row['path']} stands twice in {version}"
                        survivor = row["survivor_id"].hex() if row["survivor_id"] else ""
                        found[row["path"]] = (row["fate"], survivor, row["doc_id"].hex())
        return found

    def kept(self, version: str) -> set[str]:
        """Paths of the documents that a version exports."""
        return {path for path, (fate, _, _) in self.fates(version).items() if fate == "exported"}

    def verify(self, version: str) -> str:
        """What the version's own proof says; it must hold."""
        with VersionBook(open_home(self.home, create=False)) as book:
            code, said = book.verify(version)
        assert code == 0, said
        return said

    def exported_ids(self, version: str) -> list[str]:
        """Ids in the shards of a version and those below it, less what is hidden."""
        import pyarrow.parquet as pq

        ids: list[str] = []
        home = open_home(self.home, create=False)
        with StateStore(home.state_url) as state:
            for part in open_version(home, state, version).parts:
                hidden = {doc.hex() for doc in part.hidden.to_pylist()}
                for shard in part.manifest["shards"]:
                    path = self.home / "versions" / part.record.version_id / shard["path"]
                    column = pq.read_table(path, columns=["id"])["id"]
                    ids += [doc for doc in pc.unique(column).to_pylist() if doc not in hidden]
        return ids


def near(text: str, mark: str) -> str:
    """The same text with a few words more."""
    return f"{text} {mark} and a few words more"


def first_day(made: Growing) -> str:
    """A full version of a dozen documents, one of them a copy."""
    for i in range(12):
        made.put(f"d{i:02}.md", TEXTS[i])
    made.put("copy-of-3.md", TEXTS[3])
    done = made.run()
    assert done.current
    return done.version_id


def second_day(made: Growing) -> None:
    """Copies of both kinds, new documents, changed files, and the old text of a changed file elsewhere."""
    made.put("exact-0.md", TEXTS[0])
    made.put("near-1.md", near(TEXTS[1], "one"))
    made.put("new-a.md", TEXTS[20])
    made.put("new-b.md", TEXTS[21])
    made.put("near-a.md", near(TEXTS[20], "two"))
    made.put("d02.md", TEXTS[22])
    made.put("old-of-2.md", TEXTS[2])
    made.put("d04.md", near(TEXTS[4], "changed"))


__all__ = ["TEXTS", "Growing", "first_day", "near", "second_day"]
