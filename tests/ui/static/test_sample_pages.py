"""What the pages about samples say, by rendering their components."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.ui.static.rendering import STATIC, render
from tests.ui.static.test_pages import MAY, MAY_NOT

TASK: dict[str, Any] = {
    "task": "clean-chat-ab12",
    "dataset": "chat",
    "kind": "clean",
    "state": "RUNNING",
    "silent": False,
    "who": "ann",
    "attempt": 1,
    "created_at": 1.0,
    "started_at": 1.0,
    "ended_at": None,
    "updated_at": 1.0,
    "error": None,
    "note": None,
    "pause": None,
    "at": {"file": "f1", "path": "one.jsonl", "number": 2, "of": 3, "offset": 1234},
    "rows": 5000,
    "total": 20000,
    "progress": 0.25,
    "rate": 250.0,
    "eta": 60.0,
    "counts": {"kept": 3000, "rejected": 400, "duplicate": 12},
    "rules": [{"name": "no_answer", "count": 400}],
    "changes": [],
    "repaired": [],
    "left_out": [],
    "model": None,
    "failures": None,
    "cli": {"pause": "dataflow samples pause clean-chat-ab12", "resume": "dataflow samples resume x"},
}
AUGMENT = {
    **TASK,
    "kind": "augment",
    "counts": {"answered": 90},
    "rules": [],
    "budget": {"budget_tokens": 5000, "budget_cost": None, "currency": "EUR"},
    "model": {
        "template": "better",
        "model": "test-model",
        "answered": 90,
        "failed": 3,
        "reused": 0,
        "tokens": 1500,
        "prompt_tokens": 1000,
        "completion_tokens": 500,
        "cost": 1.25,
    },
    "failures": {"OPEN": 3},
}
QUEUE = {
    "groups": [{"error": "EmptyAnswer", "state": "OPEN", "failures": 3}],
    "failures": [
        {
            "key": "ab" * 32,
            "state": "OPEN",
            "error": "EmptyAnswer",
            "message": "the answer is empty",
            "sample_id": 7,
            "draw": 0,
            "attempts": 2,
            "edited": False,
        }
    ],
    "next": None,
}


def task(one: dict[str, Any], rights: dict[str, Any] = MAY, **more: Any) -> Any:
    return render("samples/task.js", "Task", {"task": one, "rights": rights}, **more)


def test_a_task_says_where_it_is_how_fast_and_until_when() -> None:
    text = task(TASK).text
    assert "Clean5,000 of 20,000 turns, 25%, 250 turns a second, 1 min left" in text
    assert "File 2 of 3:one.jsonlat record 1,234" in text
    assert "Kept3,000Rejected400Duplicates12" in text
    assert "Rejected byno_answer: 400" in text
    chinese = task(TASK, language="zh").text
    assert "5,000/20,000 轮，25%，每秒 250 轮，剩余 1分钟" in chinese
    assert "第 2/3 个文件" in chinese


def test_a_paused_task_is_not_failed_and_can_go_on() -> None:
    pause = {"scope": "run", "who": "budget", "why": "the budget is reached", "since": 1.0}
    found = task({**TASK, "state": "PAUSED", "pause": pause})
    assert "PausedClean5,000 of 20,000" in found.text
    assert "It has stopped; nothing is lost." in found.text
    assert "Paused by budget" in found.text
    assert "the budget is reached" in found.text
    assert "a second" not in found.text
    assert found.one(type="Button", text="Resume").get("disabled") is not True
    stopping = task({**TASK, "pause": pause}).text
    assert "It stops at the end of its batch." in stopping


def test_an_augmentation_tells_tokens_money_and_budget() -> None:
    text = task(AUGMENT, answers={"samples/failures": QUEUE}).text
    assert "Tokens1,500 of 5,0001,000 asked, 500 answered" in text
    assert "Cost1.25 EUR" in text
    assert "In the failure queue3" in text
    assert "EmptyAnswer3 open" in text


def test_who_may_only_look_is_told_so_and_presses_nothing() -> None:
    found = task(AUGMENT, MAY_NOT, answers={"samples/failures": QUEUE})
    assert MAY_NOT["whyAct"] in found.text
    assert MAY_NOT["whyText"] in found.text
    pressed = ("Pause", "Cancel", "Ask again", "Drop")
    buttons = [e for e in found.elements if e["type"] == "Button" and e["text"] in pressed]
    assert len(buttons) == 4
    assert all(button["disabled"] for button in buttons)


@pytest.mark.parametrize(("state", "button"), [("DROPPED", "Ask again"), ("REQUEUED", "Drop")])
def test_only_the_answer_that_changes_something_can_be_given(state: str, button: str) -> None:
    queue = {**QUEUE, "groups": [{"error": "EmptyAnswer", "state": state, "failures": 2}]}
    found = task(AUGMENT, answers={"samples/failures": queue})
    answers = {
        e["text"]: e.get("disabled")
        for e in found.elements
        if e["type"] == "Button" and e["text"] in ("Ask again", "Drop")
    }
    assert [words for words, disabled in answers.items() if disabled is not True] == [button]


@pytest.mark.parametrize("state", ["SUCCESS", "CANCELLED"])
def test_what_has_ended_is_one_line_without_buttons(state: str) -> None:
    found = task({**TASK, "state": state, "ended_at": 61.0})
    assert "clean-chat-ab12" not in found.text
    assert not [e for e in found.elements if e["type"] == "Button"]


def test_what_nobody_works_on_says_how_it_goes_on() -> None:
    for state, note in (("PAUSED", "interrupted"), ("FAILED", None)):
        found = task({**TASK, "state": state, "note": note})
        assert "It goes on within seconds where a run waits for it" in found.text
        assert "dataflow samples resume x" in found.text
        assert ("It stopped: interrupted" in found.text) == (note is not None)
        assert not [e for e in found.elements if e["type"] == "Button" and e["text"] == "Pause"]


def test_a_failed_task_says_why_and_a_silent_one_that_it_is() -> None:
    error = {"type": "BatchFailed", "message": "no answer in a batch of 10"}
    assert "BatchFailed: no answer in a batch of 10" in task({**TASK, "state": "FAILED", "error": error}).text
    assert "no sign of life" in task({**TASK, "silent": True}).text


def test_an_entry_of_the_queue_shows_its_message_or_its_error() -> None:
    props = {"task": AUGMENT, "rights": MAY, "entry": QUEUE["failures"][0], "tones": {}}
    assert (
        "the answer is emptysample 7, draw 1, tries: 2" in render("samples/failure.js", "Failure", props).text
    )
    hidden = {**QUEUE["failures"][0], "message": None}
    text = render("samples/failure.js", "Failure", {**props, "entry": hidden, "rights": MAY_NOT}).text
    assert "EmptyAnswersample 7" in text


def test_the_tab_of_a_run_shows_its_tasks_or_that_none_has_begun() -> None:
    props = {"runId": "manual__1"}
    told = render("samples/run.js", "SamplesRun", props, answers={"samples/run": {"tasks": []}})
    assert "Nothing has begun yet." in told.text
    answers = {"samples/run": {"tasks": [TASK]}, "me": {"act": True, "text": True, "user": "ann"}}
    found = render("samples/run.js", "SamplesRun", props, answers=answers)
    assert "5,000 of 20,000 turns" in found.text
    assert found.one(type="Router.Link")["to"] == "/plugin/dataflow?view=samples&dataset=chat"


FILES = {"files": [{"id": "f1", "path": "in/one.jsonl"}]}
TURN = {
    "id": 5,
    "file": "f1",
    "record": 2,
    "turn": 1,
    "role": "assistant",
    "length": 4,
    "status": "REJECTED",
    "rule": "no_answer",
    "deleted_at": None,
}
SUMS = {
    "turns": 1,
    "dialogues": 0,
    "characters": 4,
    "by_file": {"f1": 1},
    "by_role": {"assistant": 1},
    "by_status": {"REJECTED": 1},
    "by_length": [
        {"from": 0, "to": 1, "turns": 0},
        {"from": 1, "to": 20, "turns": 1},
        {"from": 20, "to": None, "turns": 0},
    ],
}


def browser(turn: dict[str, Any], rights: dict[str, Any], search: str = "", **more: Any) -> Any:
    answers = {
        "samples/files": FILES,
        "samples/stats": SUMS,
        "samples/turns": {"turns": [turn], "next": 5},
        **more,
    }
    props = {"dataset": "chat", "rights": rights}
    return render("samples/browser.js", "Browser", props, answers=answers, search=search)


def test_turns_are_listed_with_sums_and_a_way_on() -> None:
    found = browser({**TURN, "content": "<b>four</b>"}, MAY)
    assert "Turns1Dialogues that begin in them0Characters4" in found.text
    assert "rejected: 1" in found.text
    assert "one.jsonl: 1" in found.text
    assert "1 to 19: 1" in found.text
    assert "rejectedassistantrecord 2, turn 14 charactersno_answer<b>four</b>" in found.text
    assert found.one(type="Button", text="More")


def test_without_the_right_to_texts_there_are_none_and_no_search() -> None:
    found = browser(TURN, MAY_NOT)
    assert MAY_NOT["whyText"] in found.text
    [field] = [e for e in found.elements if e.get("aria-label") == "Text" and e["type"] == "Input"]
    assert field["disabled"] is True


def test_a_dialogue_is_shown_whole_and_can_be_deleted_or_restored() -> None:
    whole = {
        "file": "f1",
        "path": "in/one.jsonl",
        "record": 2,
        "own": {"user_id": 7},
        "turns": [
            {**TURN, "turn": 0, "role": "user", "content": "why?", "meta": {}},
            {**TURN, "id": 6, "content": "", "meta": {"tool_calls": [1]}},
        ],
    }
    shown = {"samples/dialogue": whole}
    found = browser(TURN, MAY, "record=f1:2", **shown)
    assert "Dialogue of record 2" in found.text
    assert "why?" in found.text
    assert '"tool_calls"' in found.text
    assert '"user_id": 7' in found.text
    assert found.one(type="Button", text="Delete").get("disabled") is not True
    whole["turns"][0]["deleted_at"] = 5.0
    gone = browser(TURN, MAY_NOT, "record=f1:2", **shown)
    assert gone.one(type="Button", text="Restore")["disabled"] is True


def sent(size: int, faults: list[int], received: int = 0, stop_after: int = 10**9) -> dict[str, Any]:
    """Send a file in parts of 4 MB; each fault is the status of a try, of which -1 arrives all the same."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = f"""
import {{ sendParts, PART }} from {json.dumps((STATIC / "samples" / "sending.js").as_uri())};
const faults = {json.dumps(faults)};
const server = {{ received: {received}, tries: 0, waited: [], told: [] }};
const file = {{ size: {size}, slice: (from, to) => ({{ from, to }}) }};
const put = async (offset, bytes) => {{
  server.tries += 1;
  const fault = faults.shift() ?? 200;
  if (offset !== server.received) throw {{ status: 409 }};
  if (fault === 200 || fault === -1) server.received = bytes.to;
  if (fault !== 200) throw {{ status: Math.max(0, fault) }};
  return {{ received: server.received }};
}};
let end;
try {{
  end = await sendParts(file, {received}, {{
    put,
    where: async () => ({{ received: server.received }}),
    told: (at) => server.told.push(at),
    wait: async (ms) => server.waited.push(ms),
    stopped: () => server.tries >= {stop_after},
  }});
}} catch (error) {{
  end = `failed with ${{error.status}}`;
}}
process.stdout.write(JSON.stringify({{ ...server, end, PART }}));
"""
    done = subprocess.run(
        [node, "--input-type=module"], input=script, capture_output=True, text=True, check=True, timeout=60
    )
    return dict(json.loads(done.stdout))


def test_a_file_is_sent_in_parts_each_once() -> None:
    size = 10 * 2**20
    found = sent(size, [])
    assert (found["received"], found["end"], found["tries"]) == (size, size, 3)
    assert found["told"] == [found["PART"], 2 * found["PART"], size]
    assert sent(0, [])["tries"] == 0


@pytest.mark.parametrize("fault", [0, 503, 429, -1])
def test_a_part_that_was_cut_goes_on_from_what_is_durable(fault: int) -> None:
    size = 10 * 2**20
    found = sent(size, [200, fault, fault])
    assert (found["received"], found["end"]) == (size, size)
    assert found["waited"][:2] == [500, 1000] if fault != -1 else found["waited"][:1] == [500]
    later = sent(size, [], received=size - 5)
    assert (later["tries"], later["end"]) == (1, size)


def test_what_another_try_can_not_help_ends_it() -> None:
    assert sent(10, [403])["end"] == "failed with 403"
    given_up = sent(10, [500] * 20)
    assert (given_up["end"], len(given_up["waited"])) == ("failed with 500", 6)
    stopped = sent(10 * 2**20, [], stop_after=1)
    assert (stopped["tries"], stopped["end"]) == (1, stopped["PART"])


def test_a_file_that_was_written_anew_goes_on_with_no_upload_of_the_old_bytes() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = f"""
import {{ goesOn }} from {json.dumps((STATIC / "samples" / "sending.js").as_uri())};
const one = {{ upload_id: "u", name: "a.jsonl", size: 9, created_at: 100.5 }};
const file = {{ name: "a.jsonl", size: 9, lastModified: 99000 }};
const of = (change) => goesOn({{ ...file, ...change }}, [one])?.upload_id ?? "";
const found = [{{}}, {{ lastModified: 101000 }}, {{ size: 8 }}, {{ name: "b.jsonl" }}].map(of);
process.stdout.write(JSON.stringify(found));
"""
    done = subprocess.run(
        [node, "--input-type=module"], input=script, capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == ["u", "", "", ""]


def test_an_upload_that_was_cut_is_offered_to_go_on() -> None:
    uploads = {"uploads": [{"upload_id": "u", "name": "big.jsonl", "size": 200, "received": 50}]}
    props = {"dataset": "chat", "rights": MAY}
    found = render("samples/upload.js", "Upload", props, answers={"samples/uploads": uploads})
    assert "Cut off; choose the same file again to go on: big.jsonl (25%)" in found.text
    denied = render(
        "samples/upload.js", "Upload", {**props, "rights": MAY_NOT}, answers={"samples/uploads": uploads}
    )
    [field] = [e for e in denied.elements if e["type"] == "file"]
    assert field["disabled"] is True


def test_the_section_offers_its_own_data_sets() -> None:
    answers = {
        "samples/datasets": {"datasets": [{"dataset": "chat", "files": 2, "rows": 40}]},
        "samples/tasks": {"tasks": [TASK], "more": False},
        "me": {"act": True, "text": True, "user": "ann"},
    }
    found = render("samples/page.js", "Samples", {}, answers=answers, search="view=samples")
    assert "files: 2, turns: 40" in found.text
    assert "5,000 of 20,000 turns" in found.text
    none = render("samples/page.js", "Samples", {}, answers={"samples/datasets": {"datasets": []}})
    assert "No samples yet." in none.text
