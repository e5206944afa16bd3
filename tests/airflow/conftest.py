"""Airflow keeps its settings and its database in a folder of this session's own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before the first import of Airflow, which reads it.
_FOLDER = Path(tempfile.mkdtemp(prefix="dataflow-airflow-"))
os.environ["AIRFLOW_HOME"] = str(_FOLDER)
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{_FOLDER / 'airflow.db'}"


@pytest.fixture(scope="session", autouse=True)
def _airflow_folder() -> Iterator[None]:
    yield
    shutil.rmtree(_FOLDER, ignore_errors=True)
