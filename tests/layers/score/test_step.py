from __future__ import annotations

from pathlib import Path

from tests.layers.export.flow import job, make_chunks, run_flow


def test_survivors_pass_unscored_and_the_others_are_counted(tmp_path: Path) -> None:
    chunks = make_chunks()
    flow = run_flow(job(), chunks, tmp_path, size=13)
    for chunk, (_, table) in zip(chunks, flow.stored[("score", "scores")], strict=True):
        removed = {r["row"] for r in chunk.duplicates.to_pylist() if r["verdict"] != "survivor"}
        kept = chunk.verdicts["kept"].to_pylist()
        assert table["row"].to_pylist() == [i for i, k in enumerate(kept) if k and i not in removed]
        assert set(table["scored_by"].to_pylist()) <= {"not scored"}
        assert table["score"].null_count == table.num_rows
    counts = flow.counts["score"]
    assert counts.skipped["rejected_before"] == sum(c.rejects.num_rows for c in chunks)
    assert counts.skipped["duplicate"] > 0
