"""The trigger form of the samples DAG: in both languages, with defaults that it takes, and templates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from airflow.sdk.exceptions import ParamValidationError  # noqa: TID253 - what a form raises

from dataflow_ops.airflow.samples_form import EXPORTS, FORMATS, samples_form
from dataflow_ops.samples import formats
from dataflow_ops.samples.asking import load_settings
from dataflow_ops.samples.export.forms import FORMS

pytestmark = pytest.mark.airflow


def test_every_field_speaks_both_languages_and_has_a_default_that_it_takes(tmp_path: Path) -> None:
    for name, param in samples_form(tmp_path).items():
        if name != "dataset":
            param.resolve()
        for text in (param.schema["title"], param.description or ""):
            assert any("\u4e00" <= letter <= "\u9fff" for letter in text), name
            assert any("a" <= letter <= "z" for letter in text), name


def test_a_data_set_must_be_named_and_have_a_name(tmp_path: Path) -> None:
    dataset = samples_form(tmp_path)["dataset"]
    with pytest.raises(ParamValidationError):
        dataset.resolve()
    assert dataset.resolve("chat-2") == "chat-2"
    for wrong in ("", "a/b", "-x", "a b"):
        with pytest.raises(ParamValidationError):
            dataset.resolve(wrong)


def test_templates_can_be_chosen_by_name_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "better.yaml").write_text("not read: [", encoding="utf-8")
    template = samples_form(tmp_path)["template"]
    assert template.schema["enum"] == [None, "better"]
    with pytest.raises(ParamValidationError):
        template.resolve("../better")
    assert samples_form(tmp_path / "none")["template"].schema["enum"] == [None]


def test_the_choices_are_those_that_there_are(tmp_path: Path) -> None:
    assert set(FORMATS) == set(formats.FORMATS)
    assert set(EXPORTS) == set(FORMS)


def test_the_settings_that_the_form_shows_are_some(tmp_path: Path) -> None:
    form = samples_form(tmp_path)
    for kind in ("clean", "export"):
        [shown] = re.findall(r"e\.g\. (\S+=\S+) or (\S+=\S+)\.", str(form[f"{kind}_settings"].description))
        for line in shown:
            form[f"{kind}_settings"].resolve([line])
            assert load_settings(kind, None, [line]) != load_settings(kind, None)
