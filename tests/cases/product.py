"""The product as a user has it: a home, the command line, and what the runs in the home wrote."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from dataflow_ops.cli.console import ConsoleReporter
from dataflow_ops.cli.main import main
from dataflow_ops.engine.context import RunContext
from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.reader import RunReader
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.pipeline.session import latest_run, parse_job_text
from dataflow_ops.pipeline.tally import StepReport
from dataflow_ops.schema import doc_id
from dataflow_ops.state.records import StepMetrics
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.local import LocalStore

CASES = Path(__file__).parent / "data"
CONFIG = Path(__file__).parent / "config"

Row = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What a command ended with."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output of a command that was given ``--json``."""
        return json.loads(self.out)


def dataflow(*args: object) -> Said:
    """Run one command as the console script does, in this process: what is compiled stays compiled."""
    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["dataflow", *map(str, args)]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as e:
        code = e.code or 0
    finally:
        sys.argv = argv
    return Said(code, out.getvalue(), err.getvalue())


class Product:
    """A home in a folder of its own, with one job.

    Args:
        folder: where the job file and the home are put.
        sources: of the job, as in a job file.
        settings: its other sections.
    """

    def __init__(self, folder: Path, sources: Sequence[Row], settings: Row | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.home = folder / "home"
        self.job = folder / "job.yaml"
        whole = {"dataset": {"id": "cases"}, "sources": list(sources), **(settings or {})}
        self.job.write_text(yaml.safe_dump(whole, allow_unicode=True), encoding="utf-8")

    def run(self, *options: object) -> Said:
        """``dataflow run``, in this process alone."""
        return dataflow("run", self.job, "--home", self.home, "--workers", 0, "--json", *options)

    def run_steps(self, *overrides: str) -> dict[str, StepReport]:
        """Run the job to its version; what each step had to do."""
        reporter = ConsoleReporter(quiet=True)
        run_job(
            load_job(self.job, overrides), self.home, workers=0, reporter=reporter, data_date="2026-01-01"
        )
        return reporter.reports

    def ask(self, *args: object) -> Any:
        """Another command with ``--json``, which must succeed."""
        said = dataflow(*args, "--home", self.home, "--json")
        assert said.code == 0, said.err
        return said.data

    @property
    def state_url(self) -> str:
        return f"sqlite:///{self.home / 'state.db'}"

    def state(self) -> StateStore:
        return StateStore(self.state_url)

    def metrics(self) -> dict[str, StepMetrics]:
        """Sums of the newest run by step."""
        with self.state() as state:
            return dict(state.metrics_of_run(latest_run(state)))

    def rows(self, step: str, kind: str) -> list[Row]:
        """All rows of one output of the newest run, with the chunk or prefix they came from."""
        with self.state() as state:
            run_id = latest_run(state)
            record = state.get_run(run_id)
            assert record is not None
            context = RunContext(run_id, parse_job_text(record.settings, run_id), self.home, self.state_url)
            steps = build_steps(context)
            reader = RunReader(OutputIndex(state, run_id), ChunkStore(LocalStore(self.home)), steps)
            return [
                {"partition": partition, **row}
                for partition, output in reader.outputs(step, kind)
                for row in reader.read(output).to_pylist()
            ]

    def version(self) -> Path:
        """Folder of the newest version."""
        with self.state() as state:
            return self.home / "versions" / state.versions()[0].version_id

    def manifest(self) -> Row:
        found: Row = json.loads((self.version() / "manifest.json").read_text("utf-8"))
        return found

    def report(self) -> Row:
        found: Row = json.loads((self.version() / "report.json").read_text("utf-8"))
        return found

    def exported(self) -> list[Row]:
        """Every row of every shard of the newest version."""
        return [
            row
            for shard in self.manifest()["shards"]
            for row in pq.ParquetFile(self.version() / shard["path"]).read().to_pylist()
        ]

    def verify(self) -> str:
        """What the version's own verify.py says; it must be content."""
        said = dataflow("versions", "verify", self.version().name, "--home", self.home, "--json")
        assert said.code == 0, said.out
        found: Row = said.data
        assert found["output"].endswith("All is well.")
        return str(found["output"])


class Ran:
    """One run's outputs, read once: documents with their fates, found by source and path."""

    def __init__(self, product: Product, said: Said) -> None:
        self.product, self.said = product, said
        self.texts = product.rows("parse", "text")
        self.parse_rejects = product.rows("parse", "rejects")
        self.dead = product.rows("parse", "dead")
        self.fates = product.rows("scatter", "fates")
        self.rules = {row["doc_id"]: row for row in product.rows("filter", "rejects")}

    def docs(self, source: str, path: str) -> list[Row]:
        """Documents that parse made of a file, in their order in it."""
        return sorted(_of(self.texts, source, path), key=lambda row: (row["position"], row["part"]))

    def doc(self, source: str, path: str) -> Row:
        """The only document of a file, of which nothing died."""
        (one,) = self.docs(source, path)
        assert not self.letters(source, path)
        return one

    def letters(self, source: str, path: str) -> list[Row]:
        return sorted(_of(self.dead, source, path), key=lambda row: row["position"])

    def refused(self, source: str, path: str) -> list[Row]:
        """Records that parse itself refused."""
        return _of(self.parse_rejects, source, path)

    def rule(self, source: str, path: str) -> str:
        """The rule of the filter that refused a file's only document; "" where none did."""
        found = self.rules.get(self.doc(source, path)["doc_id"])
        return "" if found is None else str(found["rule"])

    def count(self) -> Counter[str]:
        """Fates of all documents."""
        return Counter(row["fate"] for row in self.fates)


def _of(rows: Sequence[Row], source: str, path: str) -> list[Row]:
    return [row for row in rows if (row["source_id"], row["path"]) == (source, path)]


def hex_id(source: str, path: str, position: int = 0) -> str:
    return doc_id(source, path, position).hex()
