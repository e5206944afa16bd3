"""An audit of a version draws from all that its runs removed, whether it is a chain or was compacted."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.pipeline.audited import audit_of, run_named
from tests.pipeline.compacting import chain, compacted, current
from tests.pipeline.growing import Growing

pytestmark = pytest.mark.xdist_group("compact")


def drawn(made: Growing, of: str, rule: str | None = None) -> dict[str, str]:
    """Path -> path of the survivor."""
    return {row.path: row.survivor_path for row in audit_of(made.home, of, rule, 1000, 0)}


def test_a_version_is_audited_as_a_whole_and_compacted_the_same(tmp_path: Path) -> None:
    made = chain(tmp_path)
    top = current(made)
    fates = made.fates(top)
    removed = {path for path, (fate, _, _) in fates.items() if fate in ("duplicate", "rejected")}
    found = drawn(made, top)
    assert set(found) == removed != set()
    paths = {doc: path for path, (_, _, doc) in fates.items()}
    survivors = {path: paths.get(fates[path][1]) for path in removed if fates[path][1]}
    assert {path: found[path] for path in survivors if survivors[path]} == {
        path: survivor for path, survivor in survivors.items() if survivor
    }
    with made.state() as state:
        versions = state.versions("grows")
        first = versions[-1]
        last = next(v for v in versions if v.version_id == top)
    assert "copy-of-3.md" in drawn(made, first.run_id)
    assert set(drawn(made, first.run_id)) < removed
    assert set(drawn(made, last.run_id)) < removed
    done = compacted(made)
    assert drawn(made, done.version_id) == found
    assert drawn(made, "g-compact") == found
    twins = {path for path, (fate, _, _) in fates.items() if fate == "duplicate"}
    assert set(drawn(made, done.version_id, "exact")) | set(drawn(made, done.version_id, "near")) == twins
    assert run_named(made.home, done.version_id) == done.run_id
    with pytest.raises(VersionError, match="fits several versions"):
        drawn(made, "g-incremental-2026")
    with pytest.raises(ConfigError, match="no run and no version 'v9'"):
        drawn(made, "v9")
    with pytest.raises(ConfigError, match="no such rule"):
        drawn(made, done.version_id, "nonsense")

    with made.state() as state:
        outputs = [output for _, output in OutputIndex(state, first.run_id).outputs("confirm", "verdicts")]
    for output in outputs:
        (made.home / output.uri).unlink()
    with pytest.raises(VersionError, match=f"what step 'confirm' removed in run {first.run_id}"):
        drawn(made, done.version_id)
