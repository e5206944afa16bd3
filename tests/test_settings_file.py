"""What is told of settings that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import parse_job
from dataflow_ops.samples.augment.template_file import parse_template

SECRET = "hunter-2!"


@pytest.mark.parametrize("key", ["password", "token", "url"])
def test_a_login_in_a_source_is_not_repeated(key: str) -> None:
    source: dict[str, Any] = {"kind": "sql", "url": "sqlite:///x", "table": "t", "key": "id", key: [SECRET]}
    with pytest.raises(ConfigError, match=f"source number 1 {key}: ") as e:
        parse_job({"dataset": {"id": "t"}, "sources": [source]})
    assert SECRET not in str(e.value)


@pytest.mark.parametrize("key", ["api_key", "api_key_env", "base_url"])
def test_a_login_in_a_template_is_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match=f"endpoint.{key}: ") as e:
        parse_template({"endpoint": {key: [SECRET]}}, "t.yaml")
    assert SECRET not in str(e.value)


def test_other_values_are_repeated() -> None:
    with pytest.raises(ConfigError, match=r"source number 1 range_rows: .* \(given: 0\)"):
        parse_job({"dataset": {"id": "t"}, "sources": [{"kind": "sql", "range_rows": 0}]})
