from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.webhooks import load_webhooks

_GOOD = """
webhooks:
  - name: desk
    url: https://desk.example.org/dataflow
    topics: ["run.*", version.current]
    secret_env: DESK_SECRET
"""


def _load(home: Path, text: str) -> object:
    (home / "webhooks.yaml").write_text(text, encoding="utf-8")
    return load_webhooks(home, {})


def test_a_file_in_the_home_or_one_that_is_named(tmp_path: Path) -> None:
    assert load_webhooks(tmp_path, {}) == ()
    other = tmp_path / "other.yaml"
    other.write_text(_GOOD + "    since: 2026-11-30T00:00:00\n", encoding="utf-8")
    (one,) = load_webhooks(tmp_path, {"DATAFLOW_WEBHOOKS": str(other)})
    assert (one.interest.endpoint, one.interest.topics) == ("desk", ("run.*", "version.current"))
    assert one.interest.since == 1_795_996_800.0
    with pytest.raises(ConfigError, match="no such file"):
        load_webhooks(tmp_path, {"DATAFLOW_WEBHOOKS": str(tmp_path / "nowhere")})
    assert _load(tmp_path, "webhooks: []") == ()


def test_the_secret_comes_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "webhooks.yaml").write_text(_GOOD, encoding="utf-8")
    (one,) = load_webhooks(tmp_path, {})
    assert one.secret({"DESK_SECRET": "0123456789abcdef"}) == b"0123456789abcdef"
    with pytest.raises(ConfigError, match="DESK_SECRET is not set"):
        one.secret({})
    with pytest.raises(ConfigError, match="shorter than 16 bytes") as refused:
        one.secret({"DESK_SECRET": "shortish"})
    assert "shortish" not in str(refused.value)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("name: desk", "name: The Desk", "webhooks.0.name"),
        ("https://desk.example.org/dataflow", "ftp://desk/", "must be an address"),
        ("https://desk.example.org/dataflow", "https:///dataflow", "must be an address"),
        ("https://desk.example.org/dataflow", "http://h:99999/", "must be an address"),
        ("https://desk.example.org/dataflow", "https://ann:hunter2@h/", "holds a password"),
        ('["run.*", version.current]', "[]", "webhooks.0.topics"),
        ('["run.*", version.current]', '["Run.%"]', "webhooks.0.topics.0"),
        ("secret_env: DESK_SECRET", "secret: abc", "unknown key"),
        ("    secret_env: DESK_SECRET", "", "secret_env: Field required"),
        ("webhooks:", "hooks:", "unknown key"),
        ("webhooks:\n", "- x\n", "not valid YAML|expected"),
        ("secret_env: DESK_SECRET", "secret_env: DESK_SECRET\n    timeout_s: 0", "timeout_s"),
        (
            "secret_env: DESK_SECRET",
            "secret_env: S\n" + _GOOD.split("webhooks:\n")[1].rstrip(),
            "two webhooks",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, before: str, after: str, told: str) -> None:
    assert before in _GOOD
    with pytest.raises(ConfigError, match=told) as refused:
        _load(tmp_path, _GOOD.replace(before, after))
    assert "hunter2" not in str(refused.value)
