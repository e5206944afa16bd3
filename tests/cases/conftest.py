"""Homes for the tests of this folder, and one run for all files that speak of parse and filter."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cases.product import CASES, Product, Ran

NewFolder = Callable[[str], Path]

SOURCES = [
    {"source_id": "jsonl", "kind": "jsonl", "path": f"{CASES}/jsonl"},
    {"source_id": "html", "path": f"{CASES}/html"},
    {"source_id": "warc", "kind": "warc", "path": f"{CASES}/warc"},
    {"source_id": "md", "path": f"{CASES}/md"},
    {"source_id": "code", "path": f"{CASES}/code", "domain": "code"},
    {"source_id": "text", "path": f"{CASES}/text"},
    {"source_id": "dialogue", "kind": "jsonl", "path": f"{CASES}/dialogue", "domain": "dialogue"},
    {"source_id": "norm", "kind": "jsonl", "path": f"{CASES}/norm"},
]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than ten seconds")


@pytest.fixture(scope="session")
def new_folder() -> Iterator[NewFolder]:
    """Folders in memory where the machine has some: dozens of runs wait for the disk at every fsync."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30 else None
    root = Path(tempfile.mkdtemp(prefix="dataflow-cases-", dir=where))
    yield lambda name: Path(tempfile.mkdtemp(prefix=f"{name}-", dir=root))
    shutil.rmtree(root)


@pytest.fixture
def tmp_path(new_folder: NewFolder) -> Path:
    return new_folder("test")


@pytest.fixture(scope="session")
def ran(new_folder: NewFolder) -> Ran:
    """All of ``data/`` but ``dedup/`` through ``dataflow run`` with the default settings."""
    product = Product(new_folder("all"), SOURCES)
    return Ran(product, product.run())
