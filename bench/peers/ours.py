"""Our side: a run through the engine. ``python -m bench.peers.ours HOME DOCS OUT LAYER`` tells verdicts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.peers.stages import Ours

DATASET = "peers"


def prepare(ours: Ours, docs: Path, home: Path) -> Path:
    """Write the job of a stage into its home; returns the job file."""
    import yaml

    source = {"source_id": "corpus", "kind": "parquet", "path": str(docs.absolute()), "domain": "web"}
    job = {"dataset": {"id": DATASET}, "sources": [source], **ours.settings}
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
    from dataflow_ops.pipeline.flow import STEPS
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.pipeline.opened import open_run
    from dataflow_ops.state.store import StateStore

    ids = {
        (path.name, row): int(i)
        for path in sorted(docs.glob("*.parquet"))
        for row, i in enumerate(pq.read_table(path, columns=["id"])["id"].to_pylist())
    }
    steps = [name for name, of, _ in STEPS if of == layer]
    with open_run(home_path, DATASET, None, steps[-1]) as run:
        found = collect(run.reader, ids)
    with StateStore(open_home(home_path, create=False).state_url) as state:
        metrics = state.metrics_of_run(run.row.run_id)
    cpu = {s: metrics[s].metrics.get("cpu_seconds", 0.0) for s in steps if s in metrics}
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
