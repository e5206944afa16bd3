"""The report: its numbers, and that the page is whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from dataflow_ops import schema
from dataflow_ops.layers.parse.finish import REPAIR_ORDER
from dataflow_ops.observe import alarms
from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.observe.report import build_report_data
from dataflow_ops.observe.report_html import render
from dataflow_ops.observe.texts import TEXTS
from tests.observe.page import DEAD, STEPS, job, parse_page


def test_numbers_are_those_of_the_run(data):
    assert data["summary"]["records_in"] == 24
    assert (data["basis"], data["summary"]["documents_out"]) == ("exported", 13)
    assert [(f["layer"], f["in"], f["removed"], f["out"]) for f in data["funnel"]] == [
        ("parse", 24, 2, 20), ("filter", 20, 3, 17), ("dedup", 17, 2, 15), ("mix", 15, 2, 13),
        ("export", 13, 0, 13),
    ]  # fmt: skip
    assert {(r["step"], r["rule"], r["hits"]) for r in data["rules"]} == {
        ("filter", "length", 2), ("filter", "zlib_ratio", 1), ("parse", "empty_text", 2),
        ("label", "language", 1),
    }  # fmt: skip
    length = next(r for r in data["rules"] if r["rule"] == "length")
    assert (length["low"], length["high"], length["gate"], length["in"]) == (120.0, None, "L1", 20)
    assert (data["dedup"]["exact"], data["dedup"]["near"], data["dedup"]["unique"]) == (1, 1, 15)
    assert data["dedup"]["groups"] == {"edges": [2.0, 4.0], "counts": [2]}
    assert sum(data["dedup"]["similarity"]) == 1
    domains = {r["name"]: (r["documents"], r["tokens"]) for r in data["shares"]["domain"]}
    assert domains["web"] == (4, 400 + 700 + 800 + 900)
    assert sum(data["lengths"]["chars"]["counts"]) == 13


def test_only_what_differs_from_the_defaults_is_marked(finished):
    sources = [{"path": "a", "source_id": "a"}, {"path": "b", "source_id": "b", "kind": "jsonl"}]
    data = build_report_data(finished, RunMetrics(), {}, job(sources=sources, dedup={"near": False}))
    assert {s["key"] for s in data["settings"] if s["changed"]} == {
        "dataset.id", "dedup.near", "sources.0.path", "sources.0.source_id",
        "sources.1.path", "sources.1.source_id", "sources.1.kind",
    }  # fmt: skip


def test_losses_by_source(data):
    one = next(s for s in data["sources"] if s["source"] == "src1")
    # Parse: 10 texts, a reject, a dead letter. Mixing left one out.
    assert [(s["step"], s["in"], s["lost"]) for s in one["steps"]] == [
        ("parse", 12, 2), ("filter", 10, 2), ("confirm", 8, 2), ("label", 6, 1), ("plan", 5, 1)
    ]  # fmt: skip


def test_failure_rates(data):
    pdf = next(r for r in data["failures"]["parser"] if r["name"] == "pdf")
    assert (pdf["failed"], pdf["total"]) == (2, 2)
    pages = next(r for r in data["failures"]["parser"] if r["name"] == "html")
    assert (pages["failed"], pages["total"]) == (0, 20)
    host = next(r for r in data["failures"]["host"] if r["name"] == "host1.example")
    assert (host["failed"], host["total"]) == (2, 12)


def test_page_is_whole_and_asks_for_nothing(data):
    page = render(data)
    found = parse_page(page)
    for tag, key, value in found.attributes:
        assert key not in ("src", "srcset", "action", "background", "poster", "data"), (tag, key)
        assert not key.startswith("on"), (tag, key)
        if key == "href":
            assert value.startswith("#")
            assert value[1:] in found.ids
        if key == "aria-labelledby":
            assert value in found.ids
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(found.tags)
    assert not re.search(r"(?i)url\(|@import|https?:", re.sub(r"https?://host\d", "", page))
    assert "default-src 'none'" in page


def test_hostile_names_stay_text(data):
    page = render(data)
    found = parse_page(page)
    assert found.tags.count("script") == 1
    assert found.tags.count("style") == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\u202a-\u202e]", page)
    assert page.encode("utf-8")
    assert any("<script>alert(1)</script>" in text for text in found.text)


def intake_metrics(left_out, repaired):
    return RunMetrics.from_rows(
        [
            {"step": "discover", "metrics": {f"left_out.{key}": n for key, n in left_out.items()}},
            {"step": "parse", "documents_in": 8, "kept": 8,
             "metrics": {"other": 5.0, **{f"repaired.{mark}": n for mark, n in repaired.items()}}},
        ]
    )  # fmt: skip


def test_what_was_left_out_and_mended_is_shown_in_both_languages(finished):
    left_out = {"docs.v2.hidden": 3.0, "code.vendored": 120.0, "docs.v2.new_reason": 1.0, "code.special": 0.0}
    data = build_report_data(
        finished, intake_metrics(left_out, {"html": 2.0, "later": 1.0, "nul": 4.0}), {}, job()
    )
    assert [(r["source"], r["reason"], r["entries"]) for r in data["left_out"]] == [
        ("code", "vendored", 120), ("docs.v2", "hidden", 3), ("docs.v2", "new_reason", 1)
    ]  # fmt: skip
    assert [(r["mark"], r["records"]) for r in data["repaired"]] == [("nul", 4), ("html", 2), ("later", 1)]
    page = render(json.loads(json.dumps(data)))
    found = parse_page(page)
    assert {"s_left_out", "s_repaired", "h-s_left_out"} <= set(found.ids)
    words = {"Left out when listing", "列出时略过的条目", "Repaired while parsing", "解析时的修复"}
    words |= {"NUL characters were removed", "移除 NUL 字符", "new_reason", "later", "50.0%", "120"}
    assert words <= set(found.text)


def test_nothing_left_out_or_mended_shows_nothing(data):
    assert (data["left_out"], data["repaired"]) == ([], [])
    del data["left_out"], data["repaired"]  # as in reports that are older
    page = render(data)
    assert "s_left_out" not in page
    assert "s_repaired" not in page


def test_many_reasons_fold_into_one_row(finished):
    left_out = {f"s{i:02}.hidden": float(i + 1) for i in range(40)}
    data = build_report_data(finished, intake_metrics(left_out, {}), {}, job())
    assert len(data["left_out"]) == 25
    assert data["left_out"][-1]["source"] is None
    assert sum(r["entries"] for r in data["left_out"]) == sum(left_out.values())
    parse_page(render(data))


def test_every_repair_has_a_text():
    assert {f"m_{mark}" for mark in REPAIR_ORDER} <= set(TEXTS)


def test_commands_are_quoted_for_the_shell(data):
    text = "".join(parse_page(render(data)).text)
    assert "dataflow audit 'run 1; rm -rf' --rule" in text


def test_every_chart_and_both_languages_are_there(data):
    data["scores"] = {"edges": [1, 2, 4], "counts": [3, 4]}
    page = render(data)
    found = parse_page(page)
    svgs = found.tags.count("svg")
    assert svgs == 6
    assert sum(key == "aria-labelledby" for _, key, _ in found.attributes) == svgs
    assert page.count('class="en"') == page.count('class="zh"') > 50
    assert found.tags.count("figure") == svgs
    assert page.count("</figure>") == len(re.findall(r"</table></div></details></figure>", page))


def test_json_round_trip_renders_the_same(data):
    assert render(json.loads(json.dumps(data, allow_nan=False))) == render(data)


@pytest.mark.parametrize("how", ["nothing", "chunks without rows"])
def test_a_run_of_nothing(reader, how):
    metrics = RunMetrics()
    if how == "chunks without rows":
        for step, kind, columns in (
            ("parse", "text", schema.DOCUMENTS), ("parse", "rejects", schema.PARSE_REJECTS),
            ("parse", "dead", schema.DEAD), ("filter", "rejects", schema.REJECTS),
            ("label", "labels", schema.LABELS), ("score", "scores", schema.SCORES),
            ("scatter", "fates", schema.FATES),
        ):  # fmt: skip
            reader.put(step, kind, "0000000000000001", schema.empty(columns))
        metrics = RunMetrics.from_rows(
            [{"step": s} for s in ("parse", "filter", "confirm", "label", "export")]
        )
    data = build_report_data(reader, metrics, {}, job())
    page = render(data)
    text = "".join(parse_page(page).text)
    assert "The run had no records" in text
    assert data["alarms"] == []
    assert "nan" not in text.lower()


def test_a_run_that_stopped_after_filter(finished):
    for key in [k for k in finished.by_kind if k[0] not in ("parse", "filter")]:
        del finished.by_kind[key]
    data = build_report_data(finished, RunMetrics.from_rows(STEPS[:2]), {}, job())
    assert [f["layer"] for f in data["funnel"]] == ["parse", "filter"]
    assert data["basis"] == "kept"
    parse_page(render(data))


def test_a_run_that_stopped_in_scatter_has_exported_nothing(finished):
    del finished.by_kind["scatter", "fates"]["0000000000000002"]
    data = build_report_data(finished, RunMetrics.from_rows(STEPS[:5]), {}, job())
    assert (data["basis"], data["summary"]["documents_out"]) == ("kept", 14)


def test_duplicates_of_a_chunk_are_read_once(finished):
    build_report_data(finished, RunMetrics.from_rows(STEPS), {}, job())
    reads = [uri for uri, _ in finished.columns_read if uri.startswith("confirm/verdicts")]
    assert len(reads) == 3  # two slices name chunk 1, one chunk 2


def test_many_domains_fold_into_one_row(finished):
    name = "label/labels/0000000000000002"
    table = finished.tables[name]
    n = table.num_rows
    many = pa.concat_tables([table] * 40)
    domains = pa.array([f"d{i:03}" for i in range(n * 40)])
    finished.tables[name] = many.set_column(many.column_names.index("domain"), "domain", domains)
    data = build_report_data(finished, RunMetrics.from_rows(STEPS), {}, job())
    shares = data["shares"]["domain"]
    assert len(shares) == 25
    assert shares[-1]["name"] is None
    assert sum(r["documents"] for r in shares) == data["summary"]["documents_out"]
    parse_page(render(data))


def test_drift_against_the_version_before(finished, data):
    previous = json.loads(json.dumps(data))
    previous["shares"]["domain"] = [{"name": "web", "documents": 13, "tokens": 10}]
    again = build_report_data(finished, RunMetrics.from_rows(STEPS), {}, job(), previous)
    assert any(d["what"] == "domain" and d["beyond"] for d in again["drift"])
    assert "5.00%" in render(again)


def test_alarm_for_a_source_that_lost_nearly_all(finished):
    data = build_report_data(
        finished,
        RunMetrics.from_rows(STEPS, DEAD),
        {},
        job(run={"max_source_loss": 0.1, "max_dead_share": 0.01}),
    )
    kinds = [a["kind"] for a in data["alarms"]]
    assert kinds == ["dead_share"]  # both sources are too small to be news
    assert "2 of 24 records are dead (8.33%)" in alarms.message(data["alarms"][0])


def test_output_does_not_depend_on_the_hash_seed():
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import conftest, test_report as t\n"
        "m = t.RunMetrics.from_rows(t.STEPS, t.DEAD)\n"
        "data = t.build_report_data(conftest.finished_run(), m, {}, t.job())\n"
        "sys.stdout.buffer.write(t.render(data).encode())\n"
    )
    here = Path(__file__).parent
    pages = {
        subprocess.run(
            [sys.executable, "-c", code, str(here), str(here.parents[1])],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(pages) == 1
    assert len(pages.pop()) > 10_000
