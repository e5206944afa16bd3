"""What the pages say, by rendering their components."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.static.rendering import render

RUN: dict[str, Any] = {
    "run": "airflow-web__full-r1",
    "dataset": "web",
    "mode": "full",
    "state": "RUNNING",
    "detail": "",
    "layer": "dedup",
    "progress": 56 / 80,
    "run_progress": 0.5,
    "layer_tasks": 80,
    "layer_done": 56,
    "started_at": 1.0,
    "ended_at": None,
    "eta": None,
    "decisions": [],
    "pause": None,
    "workers": 2,
    "version": None,
    "current": False,
    "until": None,
}
MAY = {"known": True, "act": True, "text": True, "whyAct": "", "whyText": ""}
MAY_NOT = {
    "known": True,
    "act": False,
    "text": False,
    "whyAct": "You may look, but not act.",
    "whyText": "The text is withheld.",
}


def test_the_sentence_counts_what_its_share_is_of() -> None:
    assert (
        "Dedup 70%, 56 of 80 tasks; nothing needs you"
        in render("run/sentence.js", "Sentence", {"run": RUN, "rights": MAY}).text
    )
    assert (
        "去重 70%，任务 56/80"
        in render("run/sentence.js", "Sentence", {"run": RUN, "rights": MAY}, language="zh").text
    )


def test_a_pause_waits_for_nobodys_decision_but_does_not_end_by_itself() -> None:
    run = {**RUN, "state": "PAUSED", "pause": {"who": "Li", "why": "", "tasks_paused": 1, "tasks_open": 1}}
    text = render("run/sentence.js", "Sentence", {"run": run, "rights": MAY}).text
    assert "it goes on when somebody resumes it" in text
    assert "nothing needs you" not in text


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "It waits because it was run with overrides and Promote was off."),
        ("zh", "运行时有临时改动的设置"),
    ],
)
def test_a_version_that_waits_says_why_in_the_words_of_the_form(language: str, words: str) -> None:
    waits = {"kind": "approve", "count": 1, "version": "v1-full", "reasons": ["it was run with --set"]}
    run = {
        **RUN,
        "state": "SUCCEEDED",
        "version": "v1-full",
        "ended_at": 9.0,
        "layer": None,
        "decisions": [waits],
    }
    text = render("run/sentence.js", "Sentence", {"run": run, "rights": MAY}, language=language).text
    assert words in text
    assert "--set" not in text


def test_a_run_that_never_began_says_why() -> None:
    error = {
        "status": 404,
        "code": "not_begun",
        "values": {"why": "dedup.shingle_size: there is no such setting"},
    }
    props = {"dagId": "web__full", "runId": "r1", "error": error}
    text = render("run/not_started.js", "NotStarted", props).text
    assert "Failed before it began.dedup.shingle_size: there is no such setting" in text
    waiting = {**props, "error": {"status": 404, "code": "not_started", "values": {}}}
    assert "Not started yet." in render("run/not_started.js", "NotStarted", waiting).text
    behind = {"status": 404, "code": "queued_approval", "values": {"run": "airflow-web__full-r0"}}
    told = render("run/not_started.js", "NotStarted", {**props, "error": behind}).text
    assert "the version of airflow-web__full-r0 waits for approval" in told


VERSION: dict[str, Any] = {
    "version": "v2",
    "state": "PUBLISHED",
    "current": True,
    "mode": "full",
    "left": None,
    "report": "there",
    "cli": {"rollback": "dataflow versions rollback v2"},
}


def actions(version: dict[str, Any], before: dict[str, Any] | None, rights: dict[str, Any] = MAY) -> Any:
    props = {"version": version, "dataset": "web", "rights": rights, "consumers": [], "onDone": None}
    return render(
        "product/version_actions.js", "VersionActions", {**props, **({"before": before} if before else {})}
    )


def test_the_way_back_leads_to_what_was_current_before_and_to_nothing_where_nothing_was() -> None:
    with_one = actions(VERSION, {"version": "v1", "cli": {"rollback": "dataflow versions rollback v1"}})
    assert "Roll back to the one before" in with_one.text
    assert "dataflow versions rollback v1" in with_one.text
    without = actions(VERSION, None)
    assert "Roll back" not in without.text
    assert "Compare" not in without.text


def test_whoever_may_not_act_or_read_is_told_so_in_words() -> None:
    found = actions({**VERSION, "state": "WAITING", "current": False}, None, MAY_NOT)
    assert "You may look, but not act." in found.text
    assert "The text is withheld." in found.text
    assert all(
        e["disabled"] for e in found.elements if e["type"] == "Button" and e["text"] in ("Approve", "Report")
    )
    assert not [e for e in found.elements if e["type"] == "a"], "the report is no link"
    allowed = actions(VERSION, None)
    assert "versions/report" in allowed.one(type="a")["href"]
    assert "withheld" not in allowed.text


def test_a_document_whose_text_is_withheld_says_so() -> None:
    rights = {"act": False, "text": False, "user": "viewer"}
    document = {
        **dict.fromkeys(("survivor", "text", "url")),
        "source": "docs", "file": "a.md", "record": 0, "duplicates": 0, "steps": [],
    }  # fmt: skip
    props = {"dataset": "web", "version": "v1", "doc_id": "ab"}
    text = render("product/lineage.js", "Lineage", props, answers={"me": rights, "document": document}).text
    assert "reading documents of web takes the right to create runs of its DAGs" in text
    told = render(
        "product/lineage.js",
        "Lineage",
        props,
        answers={"me": {**rights, "text": True}, "document": {**document, "text": "words"}},
    )
    assert "withheld" not in told.text
    assert told.text.endswith("words")


@pytest.mark.parametrize(("rights", "palette"), [(MAY, "warning"), (MAY_NOT, None)])
def test_decisions_are_orange_only_for_those_who_decide(rights: dict[str, Any], palette: str | None) -> None:
    decision = {"kind": "dead_letters", "count": 3, "version": None, "reasons": ["FileError: 3"]}
    props = {"run": {**RUN, "decisions": [decision]}, "rights": rights}
    found = render("run/sentence.js", "Sentence", props)
    assert found.one(type="Button", text="3 dead letters").get("colorPalette") == palette


REMOVED: dict[str, Any] = {
    "rules": [{"rule": "near", "layer": "dedup", "hits": 2}],
    "complete": True,
    "cli": "dataflow audit r1",
    "documents": [
        {
            "doc_id": name * 16,
            "source": "docs",
            "path": f"{name}.md",
            "url": None,
            "rule": "near",
            "rule_text": {"en": "near", "zh": "近似"},
            "value": 0.841,
            "low": 0.8,
            "high": None,
            "snippet": "words",
            "match": None,
            "length": 5,
            "survivor": "cc" * 16,
            "survivor_path": "first.md",
            "similarity": 0.841,
            "enough": 0.8,
            "review": None,
        }
        for name in ("aa", "bb")
    ],
}


def test_what_was_removed_is_listed_with_its_keys() -> None:
    props = {"run": RUN, "layer": "", "every": 2000, "rights": {**MAY, "user": "ann"}}
    found = render("run/removed.js", "Removed", props, answers={"run/removed": REMOVED})
    entries = [e for e in found.elements if e.get("role") == "option"]
    assert [e["aria-selected"] for e in entries] == [True, False]
    assert f"Near copy offirst.md(84.1% alike; 80% is enough){'cc' * 16}" in found.text
    assert {e.get("aria-keyshortcuts") for e in found.elements} >= {"k", "d"}
    withheld = render(
        "run/removed.js", "Removed", {**props, "rights": MAY_NOT}, answers={"run/removed": REMOVED}
    )
    assert withheld.text == "Just removedThe text is withheld."


def test_dead_letters_on_today_lead_to_the_letters() -> None:
    decision = {"kind": "dead_letters", "count": 3, "version": None, "reasons": [], "run": "r"}
    entry = {
        **dict.fromkeys(("current", "last", "age_s")),
        "dataset": "web",
        "description": "",
        "act": True,
        "dags": [],
        "live": [],
        "decisions": [{**decision, "dag_id": "web__full", "dag_run_id": "manual__1"}],
    }
    found = render("product/today.js", "Today", {"datasets": [entry]})
    to = found.one(type="Router.Link", text="3 dead letters")["to"]
    assert to == "/dags/web__full/runs/manual__1/plugin/dataflow-run#dataflow-letters"


FUNNEL_LAYER: dict[str, Any] = {
    **dict.fromkeys(("documents_per_s", "tokens_per_s")),
    "layer": "filter",
    "state": "done",
    "tasks": 4,
    "done": 4,
    "in": 100,
    "kept": 90,
    "removed": 10,
    "removed_share": 0.1,
    "parts": 0,
    "previous": {"in": 100, "kept": 70, "removed_share": 0.3},
}


@pytest.mark.parametrize(("change", "tone"), [(0.2, None), (-0.02, "warning"), (-0.2, "danger")])
def test_a_change_says_against_what_and_warns_only_where_less_is_kept(
    change: float, tone: str | None
) -> None:
    data = {
        "layers": [{**FUNNEL_LAYER, "change": change}],
        "complete": True,
        "previous_run": "run-before",
        "at": 1.0,
    }
    props = {"run": RUN, "layer": "", "every": 2000}
    found = render("run/funnel.js", "Funnel", props, answers={"run/layers": data})
    assert "less that of the last full run, run-before." in found.text
    cell = found.one(title="Kept now 90%, in the last full run 70%")
    assert cell.get("colorPalette") == tone


def test_a_run_can_be_cancelled_beside_its_command() -> None:
    run = {**RUN, "cli": {"cancel": "dataflow cancel r1"}}
    text = render("run/control.js", "Control", {"run": run, "rights": MAY}).text
    assert "Cancel run" in text
    assert "dataflow cancel r1" in text
    ended = {**run, "state": "CANCELLED"}
    assert "Cancel run" not in render("run/control.js", "Control", {"run": ended, "rights": MAY}).text


@pytest.mark.parametrize(("language", "told"), [("en", "Its job file is gone"), ("zh", "任务文件已不在")])
def test_a_run_whose_job_file_is_gone_says_so(language: str, told: str) -> None:
    props = {"run": {**RUN, "dag_gone": True}, "rights": MAY}
    text = render("run/sentence.js", "Sentence", props, language=language).text
    assert told in text
    assert "dataflow cancel airflow-web__full-r1" in text
    assert (
        told not in render("run/sentence.js", "Sentence", {"run": RUN, "rights": MAY}, language=language).text
    )
