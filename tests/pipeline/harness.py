"""Starts runs as processes, and reduces what they published to hashes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def start(job: Path, home: Path, *, seed: str = "0", **options: Any) -> subprocess.Popen[str]:
    """Begin a run in a process (and process group) of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.pipeline.run_once", str(job), str(home), json.dumps(options)]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], expect: int | None = 0) -> dict[str, Any]:
    """Wait for a run; its last line as JSON (empty where it was killed)."""
    out, err = process.communicate(timeout=280)
    if expect is not None:
        assert process.returncode == expect, f"exit {process.returncode}\n{err[-4000:]}"
    lines = out.strip().splitlines()
    return json.loads(lines[-1]) if lines and process.returncode == 0 else {}


def once(job: Path, home: Path, **options: Any) -> dict[str, Any]:
    """Run to the end."""
    return finish(start(job, home, **options))


def published(home: Path) -> dict[str, str]:
    """Path below ``versions/`` -> SHA-256 of everything that a version is made of; the report holds times."""
    found = {}
    for path in sorted((home / "versions").rglob("*")):
        if path.is_file() and not path.name.startswith("report."):
            found[str(path.relative_to(home / "versions"))] = hashlib.sha256(path.read_bytes()).hexdigest()
    assert any(name.endswith("manifest.json") for name in found)
    return found
