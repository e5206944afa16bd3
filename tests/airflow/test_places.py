"""What the DAGs take from the environment."""

from __future__ import annotations

import pytest

from dataflow_ops.airflow import places
from dataflow_ops.errors import ConfigError


def test_the_age_from_which_files_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATAFLOW_COLD_AFTER_DAYS", raising=False)
    assert places.cold_after_days() == 7
    monkeypatch.setenv("DATAFLOW_COLD_AFTER_DAYS", "30")
    assert places.cold_after_days() == 30
    monkeypatch.setenv("DATAFLOW_COLD_AFTER_DAYS", "soon")
    with pytest.raises(ConfigError, match="DATAFLOW_COLD_AFTER_DAYS='soon'"):
        places.cold_after_days()
