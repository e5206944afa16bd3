"""Our side: a run through the engine. ``python -m bench.peers.ours HOME DOCS OUT LAYER`` tells verdicts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.peers.stages import Ours


def prepare(ours: Ours, docs: Path, home: Path) -> Path:
    """Write the job of a stage into its home; returns the job file."""
    import yaml

    source = {"source_id": "corpus", "kind": "parquet", "path": str(docs.absolute()), "domain": "web"}
    job = {"dataset": {"id": "peers"}, "sources": [source], **ours.settings}
    home.mkdir(parents=True)
    path = home / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    return path


def command(job: Path, home: Path, until: str) -> list[str]:
    """One worker process beside the one that hands out tasks, as ``dataflow run`` has it."""
    run = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home)]
    return [*run, "--workers", "1", "--until", until]


def main() -> None:
    home_path, docs, out, layer = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    import pyarrow.parquet as pq

    from bench.main_job import collect
    from dataflow_ops.engine.context import RunContext
    from dataflow_ops.engine.inputs import OutputIndex
    from dataflow_ops.pipeline.build import build_steps
    from dataflow_ops.pipeline.flow import STEPS
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.pipeline.reader import RunReader
    from dataflow_ops.pipeline.session import latest_run, parse_job_text
    from dataflow_ops.state.store import StateStore
    from dataflow_ops.storage.chunk_store import ChunkStore
    from dataflow_ops.storage.local import LocalStore

    ids = {
        (path.name, row): int(i)
        for path in sorted(docs.glob("*.parquet"))
        for row, i in enumerate(pq.read_table(path, columns=["id"])["id"].to_pylist())
    }
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        run_id = latest_run(state)
        row = state.get_run(run_id)
        assert row is not None
        context = RunContext(run_id, parse_job_text(row.settings, run_id), home.root, home.state_url)
        index, store = OutputIndex(state, run_id), ChunkStore(LocalStore(home.root))
        found = collect(RunReader(index, store, build_steps(context)), ids)
        steps = {name for name, of, _ in STEPS if of == layer}
        metrics = state.metrics_of_run(run_id)
        cpu = {s: m.metrics.get("cpu_seconds", 0.0) for s, m in metrics.items() if s in steps}
    gone = found.rejected.keys() | found.removed.keys()
    groups: dict[int, int] | None = None
    if layer == "dedup":
        roots = {root: -1 - n for n, root in enumerate(sorted(set(found.root.values())))}
        groups = {i: roots[root] for i, root in found.root.items()}
        for i, survivor in found.removed.items():
            group = groups.setdefault(survivor, survivor)
            groups.setdefault(i, group)
    kept = sorted(set(ids.values()) - gone)
    decided = {"kept": kept, "groups": groups, "survivors": found.removed, "refused": sorted(found.rejected)}
    (out / "decisions.json").write_text(json.dumps(decided))
    (out / "marks.json").write_text(json.dumps({"work": sum(cpu.values()), "steps": cpu}))


if __name__ == "__main__":
    main()
