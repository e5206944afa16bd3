"""The report: what its rows say of rules, commands, and how the version stands."""

from __future__ import annotations

import html
import json
import re
import shlex

import pyarrow as pa
from typer.testing import CliRunner

from dataflow_ops.cli.app import app
from dataflow_ops.layers.filter.presets import PRESETS
from dataflow_ops.layers.filter.rules import RULES
from dataflow_ops.observe import alarms
from dataflow_ops.observe.evidence import RuleNote
from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.observe.report import build_report_data
from dataflow_ops.observe.report_html import render
from dataflow_ops.observe.rule_texts import RULE_TEXTS
from dataflow_ops.observe.texts import TEXTS
from tests.observe.page import HOSTILE, STEPS, job, parse_page


def test_both_languages_of_a_text_take_the_same_facts():
    for key, (english, chinese) in TEXTS.items():
        facts = [set(re.findall(r"\{(\w+)\}", text)) for text in (english, chinese)]
        assert facts[0] == facts[1], key
        assert english
        assert chinese


def test_every_rule_is_explained():
    names = {rule.name for rule in (*RULES, *(r for rules in PRESETS.values() for r in rules))}
    assert names | {"empty_text", "too_long", "language", "language_score"} == set(RULE_TEXTS)


def test_every_rule_row_tells_what_it_measures_its_key_and_all_bounds(finished):
    notes = [
        RuleNote("length", low=120.0, by_kind={"prose": (120.0, None), "code": (64.0, None)}),
        RuleNote("zlib_ratio", low=0.2, by_kind={"prose": (0.2, None), "code": (0.2, None)}),
    ]
    data = build_report_data(finished, RunMetrics.from_rows(STEPS), {}, job(), rules=notes)
    text = parse_page(render(json.loads(json.dumps(data)))).text
    for rule in ("length", "zlib_ratio"):
        assert set(RULE_TEXTS[rule]) <= set(text)
        assert f"clean.quality_rules.rules.{rule}.low / .high" in text
    shown = "".join(text)
    assert "prose普通文本: ≥ 120code代码: ≥ 64" in shown
    assert "clean.language.keep" in text


def test_only_commands_that_exist_are_recommended(data):
    """Every recommended line gets past the parser of the command line."""
    data["current"] = False
    page = parse_page(render(data))
    lines = {
        line
        for block in re.findall(r"<pre>(.*?)</pre>", render(data), re.S)
        for line in html.unescape(block).splitlines()
    }
    assert len(lines) >= 9
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "dataflow"
        # Everything after a known option is parsed first; --help then ends it without running.
        found = CliRunner().invoke(app, [*arguments, "--help"])
        assert (found.exit_code, "Usage" in found.output) == (0, True), line
        given = {a for a in arguments if a.startswith("--")}
        assert all(option in found.output for option in given), line
    assert page.open == []


def test_how_the_version_stands(data):
    assert "NOT current" not in render(data)
    held = render({**data, "current": False, "waits": [f"share moved {HOSTILE}", "dead"]})
    assert "NOT current." in "".join(parse_page(held).text)
    assert held.count("<li>share moved") == 1
    assert "(it was run with --set)" in render({**data, "current": False, "waits": []})
    assert "current version" in render({**data, "current": True})


def test_refused_records_are_told_apart_from_dead_ones(data):
    assert data["failures"]["host"][0] == {
        "name": "host1.example", "failed": 2, "rejected": 1, "total": 12
    }  # fmt: skip
    text = "".join(parse_page(render(data)).text)
    assert "2 of 24 records were parsed and refused by empty_text" in text


def test_numbers_of_the_mixing_plan_are_those_of_its_notes(finished):
    plan = {"domain": ["web"], "ratio": [0.5], "asked_tokens": [9000], "target_tokens": [3400],
            "supply_tokens": [3400], "drawn_tokens": [3400], "shortage_tokens": [5600]}  # fmt: skip
    finished.put("plan", "domains", "all", pa.table(plan))
    data = build_report_data(finished, RunMetrics.from_rows(STEPS), {}, job())
    assert "5,600 tokens: 9,000 asked for, 3,400 there, 3,400 given" in alarms.message(data["alarms"][-1])
    page = render(data)
    assert "9k" in "".join(parse_page(page).text)
    assert '<span class="tag bad">100%</span>' in page  # all of the tokens instead of half of them
