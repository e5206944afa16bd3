"""What a machine needs, checked."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from dataflow_ops.errors import DataFlowError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.store import StateStore


def check(home_path: Path) -> list[tuple[str, bool, str]]:
    """``(what, whether it is well, detail)`` for Python, disk, state and stored bytes by kind."""
    rows = [("python", sys.version_info >= (3, 11), sys.version.split()[0])]
    if not home_path.exists():
        return [*rows, _absent(home_path.absolute())]
    try:
        home = open_home(home_path)
        with StateStore(home.state_url) as state:
            runs = state.list_runs(None, 1000)
        rows.append(("state", True, f"{home.state_url.split('@')[-1]}: {len(runs)} run(s)"))
    except DataFlowError as e:
        return [*rows, ("state", False, str(e))]
    usage = shutil.disk_usage(home.root)
    free = usage.free / 2**30
    rows.append(("disk", free > 1, f"{free:,.1f} GiB free of {usage.total / 2**30:,.0f} at {home.root}"))
    for name in ("data", "raw", "staging", "versions", "quarantine"):
        folder = home.root / name
        if folder.is_dir():
            files = [p.stat() for p in folder.rglob("*") if p.is_file()]
            size = sum(s.st_size for s in files)
            # A quarantined file is a copy that did not match its hash: somebody should look at the disk.
            rows.append(
                (name, name != "quarantine" or not files, f"{len(files):,} files, {size / 2**20:,.1f} MiB")
            )
    return rows


def _absent(home: Path) -> tuple[str, bool, str]:
    above = next(folder for folder in home.parents if folder.exists())
    if os.access(above, os.W_OK | os.X_OK):
        return ("home", True, f"{home} is not there yet; the first `dataflow run` makes it")
    return ("home", False, f"{home} can't be made: you may not write in {above}; name another with --home")
