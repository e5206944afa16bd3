from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.conftest import Dataflow


def test_a_verdict_on_a_removed_document_is_taken_shown_and_changed(
    dataflow: Dataflow, home: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "home"
    shutil.copytree(home, mine)
    rows = dataflow("audit", "--rule", "exact", "--home", mine, "--json").json
    one, two = rows[0], rows[1]
    assert one["review"] is None
    said = dataflow("audit", "--keep", one["doc_id"][:12], "--drop", two["doc_id"], "--home", mine)
    assert said.code == 0, said.err
    assert "wrongly removed by 'exact'" in said.out
    assert "rightly removed by 'exact'" in said.out
    shown = {
        r["doc_id"]: r["review"] for r in dataflow("audit", "--rule", "exact", "--home", mine, "--json").json
    }
    assert (shown[one["doc_id"]]["verdict"], shown[two["doc_id"]]["verdict"]) == ("keep", "drop")
    assert "keep (" in dataflow("audit", "--rule", "exact", "--home", mine).out
    given = dataflow("audit", "--drop", one["doc_id"], "--home", mine, "--json").json
    assert given == [{"doc_id": one["doc_id"], "rule": "exact", "verdict": "drop"}]
    kept = dataflow("audit", "--keep", one["survivor_id"], "--home", mine)
    assert kept.code != 0
    assert "was not removed" in kept.err
