"""The peers at pinned versions, each in an environment of its own under ``bench/.cache``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench.peers.places import CACHE

NEWEST = "2026-11-01T00:00:00Z"
"""What a peer depends on without a version is taken as it stood then."""


class Peer(NamedTuple):
    """A tool: the Python it needs, what is installed, and packages whose versions are told."""

    python: str
    requirements: tuple[str, ...]
    told: tuple[str, ...]


PEERS = {
    "datatrove": Peer(
        "3.11",
        ("datatrove[io,processing]==0.10.1", "spacy==3.8.18", "jieba==0.42.1", "orjson"),
        ("datatrove", "spacy", "jieba", "nltk", "numpy", "xxhash"),
    ),
    "data-juicer": Peer(
        "3.11",
        # The last three are what its operators here would install by themselves while they run.
        ("py-data-juicer==1.6.1", "scipy==1.17.0", "ftfy==6.3.1", "ray==2.59.0"),
        ("py-data-juicer", "datasets", "ftfy", "numpy", "pyarrow"),
    ),
    "text-dedup": Peer("3.12", ("text-dedup==0.4.0",), ("text-dedup", "datasets", "numpy", "pyarrow")),
    "rensa": Peer("3.11", ("rensa==0.5.0", "pyarrow==22.0.0"), ("rensa",)),
    "datasketch": Peer("3.11", ("datasketch==2.0.0", "pyarrow==22.0.0"), ("datasketch", "numpy")),
}
LEFT_OUT = {
    "NeMo Curator 1.4.0": "its fuzzy dedup runs on cuDF, so it needs a GPU; here there is none",
    "Spark versions of text-dedup and data-juicer on Ray": "they need a cluster; on one core they only add to"
    " what the plain ones cost",
}
"""Tools that were not run, and why."""


def python_of(peer: str) -> Path:
    """The interpreter of a peer's environment, which is made where it is not there yet.

    Raises:
        RuntimeError: no interpreter of the version that it needs is on this machine, or it can't be
            installed; the message ends with what uv said.

    """
    home = CACHE / "envs" / peer
    python = home / "bin" / "python"
    if (home / "versions.txt").exists():
        return python
    wanted = PEERS[peer]
    shutil.rmtree(home, ignore_errors=True)
    _uv("venv", "--quiet", "--python", str(_interpreter(wanted.python)), str(home))
    _uv("pip", "install", "--quiet", "--python", str(python), "--exclude-newer", NEWEST, *wanted.requirements)
    # Its imports cost seconds more until they are compiled; that is nobody's running time.
    subprocess.run([python, "-m", "compileall", "-q", home / "lib"], check=False, capture_output=True)
    (home / "versions.txt").write_text(_uv("pip", "freeze", "--quiet", "--python", str(python)))
    return python


def versions_of(peer: str) -> list[str]:
    """``package version`` for the packages that a peer's table names."""
    lines = (CACHE / "envs" / peer / "versions.txt").read_text().splitlines()
    found = dict(line.split("==") for line in lines if "==" in line)
    return [f"{name} {found[name]}" for name in PEERS[peer].told if name in found]


def _interpreter(version: str) -> Path:
    on_path = shutil.which(f"python{version}")
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for one in (*([Path(on_path)] if on_path else []), *kept):
        # A pyenv shim exists for versions that can't be started.
        if subprocess.run([one, "-c", "import venv"], check=False, capture_output=True).returncode == 0:
            return one
    raise RuntimeError(f"there is no Python {version} on this machine; install it and run again")


def _uv(*arguments: str) -> str:
    beside = Path(sys.executable).parent / "uv"
    done = subprocess.run(
        [beside if beside.exists() else "uv", *arguments], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"uv {arguments[0]} failed:\n{done.stderr[-2000:]}")
    return done.stdout
