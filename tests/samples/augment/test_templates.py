from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.augment.template_file import load_template
from tests.samples.augment.augment_case import RAW, template


def test_defaults() -> None:
    found = template()
    assert (found.target.turns, found.target.roles, found.target.status) == (
        "each",
        ("assistant",),
        ("NEW", "KEPT"),
    )
    assert (found.result_as, found.draws, found.check.min_chars, found.check.refusals) == (
        "replacement",
        1,
        1,
        "reject",
    )
    assert found.most_completion_tokens == 50


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kind": "rewriting"}, "kind: "),
        ({"nmae": "x"}, "nmae: unknown key; did you mean name? known here: check, description"),
        ({"target": {"role": ["user"]}}, "target.role: unknown key; did you mean roles?"),
        ({"target": {"roles": ["bot"]}}, "no role 'bot'; known: user, assistant"),
        ({"messages": []}, "messages: "),
        ({"messages": [{"role": "user", "content": "Hello"}]}, "nothing of the sample is in them"),
        (
            {"messages": [{"role": "user", "content": "{{answer}}"}]},
            "no placeholder {{answer}}; known: turn, role",
        ),
        ({"messages": [{"role": "user"}]}, "needs role and content"),
        ({"messages": [{"dialogue": "whole", "role": "user"}]}, "either dialogue, or role and content"),
        ({"parameters": {"max_tokens": 0}}, "needs max_tokens"),
        ({"parameters": {"stream": True}}, "'stream' does not belong here"),
        ({"parameters": {"n": 2}}, "say it by draws"),
        ({"parameters": {"seed": 2}}, "say it by the template's own seed"),
        ({"parameters": {"stop": float("nan")}}, "can't be sent as JSON"),
        ({"result": "score"}, "of kind rewrite comes replacement, not score"),
        ({"kind": "scoring"}, "check.score: needed"),
        ({"check": {"score": {"low": 1, "high": 5}}}, "only for kind scoring"),
        ({"kind": "scoring", "check": {"score": {"low": 5, "high": 5}}}, "low (5) must be below high (5)"),
        ({"check": {"min_chars": 5, "max_chars": 4}}, "max_chars (4) is below min_chars (5)"),
        ({"check": {"min_chars": 0}}, "check.min_chars: "),
        ({"check": {"json_schema": {"type": "objekt"}}}, "no JSON Schema: "),
        ({"check": {"json_schema": {"$ref": "http://h/s.json"}}}, "only references within the schema"),
        ({"endpoint": {"base_url": "https://ann:pw@h/v1"}}, "leave out login"),
        ({"endpoint": {"api_key_env": "sk-abc"}}, "endpoint.api_key_env: "),
        ({"limits": {"concurrency": 0}}, "limits.concurrency: "),
        ({"limits": {"budget_cost": 0}}, "limits.budget_cost: "),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        template(**changes)
    assert told in str(caught.value)
    assert "pw" not in str(caught.value)


def test_the_version_is_what_decides(tmp_path: Path) -> None:
    version = template().prompt_version
    for same in (
        {"description": "words"},
        {"endpoint": {"base_url": "http://h/v1"}},
        {"limits": {"concurrency": 9, "budget_tokens": 5}},
        {"prices": {"prompt": 1.0}},
        {"result": "replacement"},
        {"draws": 1},
    ):
        assert template(**same).prompt_version == version, same
    for other in (
        {"name": "b"},
        {"model": "b"},
        {"draws": 2},
        {"seed": 1},
        {"parameters": {"top_p": 0.5}},
        {"check": {"max_chars": 100}},
        {"target": {"turns": "last"}},
        {"messages": [{"role": "user", "content": "{{turn}}"}]},
        {"kind": "response"},
    ):
        assert template(**other).prompt_version != version, other


def test_the_version_of_this_template_stays() -> None:
    """A change here asks every request of every user again: do it on purpose, with RENDER_VERSION."""
    assert template().prompt_version == "697ab22e730448ec02705023de040762b2273dab82cd8416bc2dee4b0694c6e8"


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    with pytest.raises(ConfigError, match="can't be read"):
        load_template(path)
    path.write_bytes(b"name: \xff")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_template(path)
    path.write_text("- 1", encoding="utf-8")
    with pytest.raises(ConfigError, match="a template is a mapping"):
        load_template(path)
    path.write_text(yaml.safe_dump(dict(RAW)), encoding="utf-8")
    assert load_template(path) == template()
    changed = load_template(path, {"limits": {"concurrency": 2}, "endpoint": {"base_url": "http://h/v1/"}})
    assert (changed.limits.concurrency, changed.endpoint.base_url) == (2, "http://h/v1")
    assert changed.endpoint.tries == 6
    assert changed.prompt_version == template().prompt_version
