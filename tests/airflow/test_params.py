"""The trigger form: what most people need is in sight."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dataflow_ops.airflow.params import form
from dataflow_ops.job_file import load_job

pytestmark = pytest.mark.airflow


def test_only_what_few_people_need_is_folded() -> None:
    sections = {name: param.schema.get("section") for name, param in form().items()}
    in_sight = [name for name, section in sections.items() if section is None]
    assert in_sight == ["until", "priority", "dry_run"]
    assert list(sections)[: len(in_sight)] == in_sight, "what is in sight comes first"
    assert {sections["overrides"], sections["promote"]} == {"For this run only · 仅限本次运行"}
    titles = {param.schema["title"].split(" · ")[0] for param in form().values()}
    assert "For this run only" not in titles, "a section and a field of one name are told apart by nobody"


def test_every_field_speaks_both_languages_and_has_a_default_that_it_takes() -> None:
    for name, param in form().items():
        param.resolve()
        for text in (param.schema["title"], param.description or ""):
            assert any("\u4e00" <= letter <= "\u9fff" for letter in text), name
            assert any("a" <= letter <= "z" for letter in text), name


def test_the_override_that_the_form_shows_is_one(tmp_path: Path) -> None:
    told = str(form()["overrides"].description)
    [example] = re.findall(r"e\.g\. (\S+=\S+)\.", told)
    job = tmp_path / "job.yaml"
    job.write_text("dataset: {id: web}\nsources: [{kind: jsonl, path: x, source_id: x}]\n", encoding="utf-8")
    assert load_job(job) != load_job(job, [example])
