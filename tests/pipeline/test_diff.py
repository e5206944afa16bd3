"""Two versions that differ in known ways: every document that moved has its one cause, and the sums agree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dataflow_ops.cli.app import app
from dataflow_ops.errors import ConfigError, ConservationError
from dataflow_ops.observe.diff import check
from dataflow_ops.observe.diff_text import as_text
from dataflow_ops.pipeline.diff import diff_of
from tests.pipeline import inside, prose

NOTES = 12


def base(root: Path) -> Path:
    """Notes, a short note, a note in decomposed letters, rows, and a pool that mixing may cut."""
    pool = prose.sentences()
    (root / "notes").mkdir(parents=True)
    for i in range(NOTES):
        (root / "notes" / f"note-{i:02}.txt").write_text(prose.note(i, pool), encoding="utf-8")
    short = prose.note(500, pool, 2)
    assert 120 < len(short) < 450
    (root / "notes" / "short.txt").write_text(short, encoding="utf-8")
    accent = prose.note(501, pool).replace("e", "e\u0301", 3)
    (root / "notes" / "accent.txt").write_text(accent, encoding="utf-8")
    (root / "pool").mkdir()
    for i in range(8):
        (root / "pool" / f"pool-{i}.txt").write_text(prose.note(100 + i, pool), encoding="utf-8")
    (root / "rows").mkdir()
    rows = [json.dumps({"id": i, "text": prose.note(200 + i, pool)}) for i in range(5)]
    (root / "rows" / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    job = root / "job.yaml"
    job.write_text(
        f"""dataset: {{id: tiny}}
sources:
  - {{source_id: notes, kind: files, path: {root}/notes, domain: notes}}
  - {{source_id: pool, kind: files, path: {root}/pool, domain: pool}}
  - {{source_id: rows, kind: jsonl, path: {root}/rows, domain: rows}}
ingest: {{chunk_mb: 0.02}}
output: {{partition_by: [domain], version: t, shards: 2}}
""",
        encoding="utf-8",
    )
    return job


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with one version of the base sources; copied by each test."""
    root = tmp_path_factory.mktemp("diff")
    job = base(root / "sources")
    return root, inside.run(job, root / "home").version_id


class Case:
    """Sources and home of one test."""

    def __init__(self, root: Path, first: tuple[Path, str]) -> None:
        self.a = first[1]
        self.home, self.sources = root / "home", first[0] / "sources"
        shutil.copytree(first[0] / "home", self.home)
        self.backup = root / "before"
        shutil.copytree(self.sources, self.backup)

    def restore(self) -> None:
        shutil.rmtree(self.sources)
        shutil.copytree(self.backup, self.sources)

    def diff(self, *overrides: str, n: int = 5) -> dict[str, Any]:
        made = inside.run(self.sources / "job.yaml", self.home, set=overrides, promote=False)
        assert made.version_id
        assert made.version_id != self.a
        self.b = made.version_id
        return diff_of(self.home, self.a, self.b, n=n)


@pytest.fixture
def case(tmp_path: Path, first: tuple[Path, str]) -> Any:
    made = Case(tmp_path, first)
    yield made
    made.restore()


def moves(found: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Cause -> (added, removed, changed), where any."""
    return {row["cause"]: (row["added"], row["removed"], row["changed"]) for row in found["causes"]}


def shown(found: dict[str, Any], cause: str) -> dict[tuple[str, str], str]:
    """(change, path) -> why."""
    row = next(row for row in found["causes"] if row["cause"] == cause)
    return {(e["change"], e["path"]): e["why"] for e in row["examples"]}


def test_files_that_come_go_and_change_are_sources(case: Case) -> None:
    pool = prose.sentences()
    (case.sources / "notes" / "new.txt").write_text(prose.note(900, pool), encoding="utf-8")
    (case.sources / "notes" / "note-03.txt").unlink()
    changed = case.sources / "notes" / "note-05.txt"
    changed.write_text(changed.read_text(encoding="utf-8") + "One more sentence.\n", encoding="utf-8")
    found = case.diff()
    assert moves(found) == {"sources": (1, 1, 1)}
    assert shown(found, "sources") == {
        ("added", "new.txt"): "its file is not among those that A read",
        ("removed", "note-03.txt"): "its file is not among those that B read",
        ("changed", "note-05.txt"): "its file holds other bytes in B",
    }
    d = found["documents"]
    assert (d["added"], d["removed"], d["changed"], d["uncompared"]) == (1, 1, 1, 0)
    assert d["a"] == d["same"] + 1
    assert d["b"] == d["same"] + 1
    assert not found["settings"]
    assert not found["notes"]


def test_a_bound_is_rules_both_ways(case: Case) -> None:
    found = case.diff("clean.boilerplate_filter.min_text_len=450")
    assert moves(found) == {"rules": (0, 1, 0)}
    assert found["causes"][0]["by"] == [{"name": "length", "added": 0, "removed": 1, "changed": 0}]
    assert "short.txt: refused in B by length" in as_text(found)
    why = shown(found, "rules")[("removed", "short.txt")]
    assert why.startswith("refused in B by length: ")
    assert why.endswith("is below 450")
    keys = {"key": "clean.boilerplate_filter.min_text_len", "a": 120, "b": 450}
    assert found["settings"] == [keys]
    command = ["diff", case.a, case.b, "--home", str(case.home)]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    assert "rules: 1 removed" in told.output
    assert "clean.boilerplate_filter.min_text_len: 120 -> 450" in told.output
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).output) == found
    back = diff_of(case.home, case.b, case.a)
    assert moves(back) == {"rules": (1, 0, 0)}
    assert shown(back, "rules")[("added", "short.txt")] == why.replace("in B", "in A")


def test_other_text_from_the_same_bytes_is_the_parser(case: Case) -> None:
    found = case.diff("clean.stored_text.unicode=none")
    assert moves(found) == {"parser": (0, 0, 1)}
    assert list(shown(found, "parser")) == [("changed", "accent.txt")]


def test_a_record_that_a_parser_setting_refuses_is_the_parser(case: Case) -> None:
    found = case.diff("clean.boilerplate_filter.max_text_len=1200", "clean.on_too_long=reject")
    gone = found["documents"]["removed"]
    assert gone > 0
    assert moves(found) == {"parser": (0, gone, 0)}
    assert all("too_long" in why for why in shown(found, "parser").values())


def test_a_longer_copy_makes_an_old_document_a_duplicate(case: Case) -> None:
    old = (case.sources / "notes" / "note-07.txt").read_text(encoding="utf-8")
    (case.sources / "notes" / "zz-copy.txt").write_text(old + "And so on, and so forth.\n", encoding="utf-8")
    found = case.diff()
    assert moves(found) == {"sources": (1, 0, 0), "dedup": (0, 1, 0)}
    assert found["causes"][1]["by"] == [{"name": "near", "added": 0, "removed": 1, "changed": 0}]
    copy = found["causes"][0]["examples"][0]["doc_id"]
    assert (
        f"near duplicate of {copy} in B, similarity 0.9" in shown(found, "dedup")[("removed", "note-07.txt")]
    )


def test_what_the_mix_leaves_out_is_mixing(case: Case) -> None:
    found = case.diff("mixing.caps={pool: 900}")
    drawn = {row["domain"]: row for row in found["domains"]}
    lost = drawn["pool"]["a"] - drawn["pool"]["b"]
    assert 0 < lost < 8
    assert moves(found) == {"mixing": (0, lost, 0)}
    assert found["causes"][0]["by"] == [{"name": "pool", "added": 0, "removed": lost, "changed": 0}]
    assert drawn["notes"]["a"] == drawn["notes"]["b"]


def test_everything_at_once_and_chunks_cut_otherwise(case: Case) -> None:
    pool = prose.sentences()
    (case.sources / "notes" / "new.txt").write_text(prose.note(900, pool), encoding="utf-8")
    (case.sources / "notes" / "note-03.txt").unlink()
    old = (case.sources / "notes" / "note-07.txt").read_text(encoding="utf-8")
    (case.sources / "notes" / "zz-copy.txt").write_text(old + "And so on, and so forth.\n", encoding="utf-8")
    with open(case.sources / "rows" / "rows.jsonl", "a", encoding="utf-8") as out:
        out.write(json.dumps({"id": 77, "text": prose.note(277, pool)}) + "\n")
    found = case.diff(
        "ingest.chunk_mb=0.005",
        "clean.boilerplate_filter.min_text_len=450",
        "clean.stored_text.unicode=none",
        "mixing.caps={pool: 900}",
        n=2,
    )
    lost = next(row["a"] - row["b"] for row in found["domains"] if row["domain"] == "pool")
    assert moves(found) == {
        "sources": (3, 1, 0),
        "parser": (0, 0, 1),
        "rules": (0, 1, 0),
        "dedup": (0, 1, 0),
        "mixing": (0, lost, 0),
    }
    assert max(len(row["examples"]) for row in found["causes"]) == 3  # two added, one removed
    assert {s["key"] for s in found["settings"]} >= {"ingest.chunk_mb", "mixing.caps.pool"}


def test_without_the_runs_outputs_lineage_and_manifests_tell_what_they_can(case: Case) -> None:
    (case.sources / "notes" / "note-03.txt").unlink()
    full = case.diff("clean.boilerplate_filter.min_text_len=450")
    assert moves(full) == {"sources": (0, 1, 0), "rules": (0, 1, 0)}
    shutil.rmtree(case.home / "data")
    found = diff_of(case.home, case.a, case.b)
    # The same parser in both: what is missing can only be missing at the source.
    assert moves(found) == moves(full)
    assert "no longer kept" in shown(found, "sources")[("removed", "note-03.txt")]
    assert len(found["notes"]) == 1
    assert found["notes"][0].startswith("the lists of files")
    # Recorded hashes still tell which chunks have the same text.
    assert found["documents"]["uncompared"] == 0


def test_without_outputs_two_possible_causes_stay_unknown(case: Case) -> None:
    (case.sources / "notes" / "note-03.txt").unlink()
    case.diff("clean.stored_text.unicode=none")
    shutil.rmtree(case.home / "data")
    found = diff_of(case.home, case.a, case.b)
    assert moves(found) == {"unknown": (0, 1, 0)}
    assert found["documents"]["uncompared"] > 0
    assert "without comparing" in found["notes"][1]


def test_the_same_version_twice_is_refused(first: tuple[Path, str]) -> None:
    with pytest.raises(ConfigError, match="named twice"):
        diff_of(first[0] / "home", first[1], first[1])


def test_a_sum_that_does_not_add_up_is_an_error() -> None:
    documents = {"a": 3, "b": 3, "same": 2, "added": 1, "removed": 1, "changed": 0}
    causes = [{"cause": "rules", "added": 1, "removed": 1, "changed": 0}]
    check(documents, causes, {"a": 3, "b": 3})
    with pytest.raises(ConservationError, match="removed documents"):
        check(documents, [{**causes[0], "removed": 0}], {"a": 3, "b": 3})
    with pytest.raises(ConservationError, match="manifest"):
        check(documents, causes, {"a": 4, "b": 3})
