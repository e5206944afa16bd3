"""What could not be read: told, counted, shown, and tried again."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cases.product import CASES, Product, Ran, dataflow

BAD = ("bad_byte_in_middle.jsonl", "broken_line.jsonl", "missing_text.jsonl", "truncated.jsonl.gz")


def test_the_run_ends_with_something_waiting(ran: Ran) -> None:
    assert ran.said.code == 4
    assert ran.said.data["state"] == "AWAITING_APPROVAL"
    assert not ran.said.data["current"]


def test_every_isolated_record_is_listed_with_its_place(ran: Ran) -> None:
    listed = ran.product.ask("dead-letters", "list")
    keys = ("level", "source_id", "path", "position", "error", "message", "media_type", "host")
    found = [{**row, "source_id": row["source"]} for row in listed["letters"]]
    assert {tuple(row[k] for k in keys) for row in found} == {tuple(row[k] for k in keys) for row in ran.dead}
    assert listed["groups"] == {"MalformedRecord": 5, "TruncatedFile": 1, "UndecodableText": 1}


def test_records_in_are_records_accounted_for(ran: Ran) -> None:
    for step, metric in ran.product.metrics().items():
        metric.counts.check(step)
    parse = ran.product.metrics()["parse"].counts
    assert parse.dead == len(ran.dead) == 7
    assert parse.kept == len(ran.texts)  # no record of these files gives several
    assert parse.rejected == len(ran.parse_rejects)
    assert len(ran.fates) == len(ran.texts) + len(ran.parse_rejects)
    fates = ran.count()
    assert fates["exported"] == len(ran.product.exported())
    assert sum(fates.values()) == fates["exported"] + fates["rejected"] + fates["duplicate"]
    ran.product.verify()


def test_the_manifest_counts_them(ran: Ran) -> None:
    assert ran.product.manifest()["dead_letters"] == 7


def test_the_report_shows_them(ran: Ran) -> None:
    report = ran.product.report()
    assert sum(group["count"] for group in report["dead_letters"]) == 7
    assert report["summary"]["dead"] == 7
    page = html.unescape((ran.product.version() / "report.html").read_text("utf-8"))
    for group in report["dead_letters"]:
        assert group["error"] in page
        assert group["example"] in page
    assert any(alarm["kind"] == "dead_share" for alarm in report["alarms"])


def test_lineage_tells_each_fate(ran: Ran) -> None:
    told = {}
    for row in [*ran.fates, *(d for d in ran.dead if d["doc_id"])]:
        fate = row.get("fate", "dead")
        key = (fate, row.get("rule") or row.get("error") or "")
        if key not in told:
            told[key] = ran.product.ask("lineage", row["doc_id"].hex())
            assert told[key]["fate"] == fate
            assert (told[key]["path"], told[key]["position"]) == (row["path"], row["position"])
            assert key[1] in (told[key].get("rule", ""), told[key].get("error", ""))
    assert {fate for fate, _ in told} == {"exported", "rejected", "duplicate", "dead"}
    assert {rule for fate, rule in told if fate == "rejected"} >= {"empty_text", "length", "zlib_ratio"}


def test_an_unknown_id_is_told_with_where_ids_stand(ran: Ran) -> None:
    said = dataflow("lineage", "00" * 16, "--home", ran.product.home)
    assert said.code == 2
    (column,) = re.findall(r"column '(\w+)'", said.err)
    assert column in ran.product.exported()[0]


def test_approval_makes_the_version_current(tmp_path: Path) -> None:
    shutil.copyfile(CASES / "jsonl/broken_line.jsonl", tmp_path / "a.jsonl")
    product = Product(tmp_path, [{"source_id": "a", "kind": "jsonl", "path": f"{tmp_path}/a.jsonl"}])
    said = product.run()
    assert (said.code, said.data["current"]) == (4, False)
    product.ask("versions", "approve")
    (row,) = product.ask("versions", "list")
    assert row["current"]


def test_a_cut_file_alone_is_no_short_success(tmp_path: Path) -> None:
    """One of 151 records is dead: below the bound, so the version is current, and still exit code 4."""
    product = Product(
        tmp_path,
        [{"source_id": "a", "kind": "jsonl", "path": f"{CASES}/jsonl/truncated.jsonl.gz"}],
        {"run": {"max_dead_share": 0.05}},
    )
    said = product.run()
    assert said.code == 4
    assert (said.data["state"], said.data["current"]) == ("SUCCEEDED_WITH_DEAD", True)
    assert "dead-letters list" in said.data["message"]
    ((letter),) = product.ask("dead-letters", "list")["letters"]
    assert (letter["level"], letter["error"]) == ("file", "TruncatedFile")
    assert letter["position"] > 0


@pytest.fixture
def four_bad_files(tmp_path: Path) -> tuple[Product, Path]:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in BAD:
        shutil.copyfile(CASES / "jsonl" / name, folder / name)
    source = {"source_id": "a", "kind": "jsonl", "path": str(folder)}
    product = Product(tmp_path, [source], {"run": {"max_dead_share": 0.5}})
    assert product.run().code == 4
    return product, folder


def test_retried_letters_are_tried_again(four_bad_files: tuple[Product, Path]) -> None:
    product, _ = four_bad_files
    before = product.ask("dead-letters", "list")
    assert product.ask("dead-letters", "retry", "--all")["letters"] == 6
    assert product.ask("dead-letters", "list")["groups"] == {}
    steps = product.run_steps()
    assert steps["parse"].ran == steps["parse"].tasks  # one chunk: all its letters were put back
    assert steps["fetch"].ran == 0
    # Nothing was mended, so the same records wait again; nothing of what was good is there twice.
    after = product.ask("dead-letters", "list")
    assert after["groups"] == before["groups"]
    assert {r["doc_id"] for r in after["letters"]} == {r["doc_id"] for r in before["letters"]}
    product.verify()


def test_mended_files_leave_no_letter(four_bad_files: tuple[Product, Path]) -> None:
    product, folder = four_bad_files
    for name in BAD:
        (folder / name).unlink()
    rows = [json.dumps({"text": line["text"]}) for line in _plain()]
    (folder / "mended.jsonl").write_text("\n".join(rows), encoding="utf-8")
    said = product.run()
    assert said.code == 0
    assert said.data["current"]
    assert product.manifest()["dead_letters"] == 0
    assert product.ask("dead-letters", "list") == {"groups": {}, "total": 0, "letters": []}
    product.verify()


def test_one_retried_letter_doubles_no_other(four_bad_files: tuple[Product, Path]) -> None:
    product, _ = four_bad_files
    before = product.ask("dead-letters", "list")
    assert product.ask("dead-letters", "retry", before["letters"][0]["id"])["letters"] == 1
    assert product.run().code == 4
    after = product.ask("dead-letters", "list")
    assert after["groups"] == before["groups"]
    assert [r["position"] for r in after["letters"]] == [r["position"] for r in before["letters"]]


def test_dropped_letters_are_shown_no_more_and_stay_counted(four_bad_files: tuple[Product, Path]) -> None:
    product, _ = four_bad_files
    assert product.ask("dead-letters", "drop", "--error", "MalformedRecord")["letters"] == 4
    assert product.ask("dead-letters", "list")["groups"] == {"TruncatedFile": 1, "UndecodableText": 1}
    assert product.manifest()["dead_letters"] == 6


def _plain() -> list[dict[str, str]]:
    return [json.loads(line) for line in (CASES / "jsonl/plain.jsonl").read_text("utf-8").splitlines()]
