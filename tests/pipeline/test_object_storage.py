"""The corpus flow with its storage root in a bucket: the same versions, whatever happens on the way."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.doctor import check
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.storage.opening import open_store, root_of
from dataflow_ops.storage.s3 import S3Root
from tests.cases.product import dataflow
from tests.pipeline import corpus
from tests.pipeline.growing import TEXTS, Growing
from tests.pipeline.harness import finish, once, published, start
from tests.storage.s3_server import Weed, pointed, weed, weed_url  # noqa: F401

pytestmark = [pytest.mark.s3, pytest.mark.xdist_group("s3")]
TUNING = {"stage_every_s": 0.0, "batch_rows": 40}
KILLS = ("after publish parse", "after stage filter", "before commit sign", "after publish export")


def in_bucket(url: str) -> dict[str, str]:
    """What :func:`published` tells of a folder."""
    blobs = open_store(root_of(url))
    uris = [blob.uri for blob in blobs.list("versions/") if "/report." not in blob.uri]
    return {uri.removeprefix("versions/"): hashlib.sha256(blobs.read(uri)).hexdigest() for uri in uris}


@pytest.mark.crash
@pytest.mark.timeout(600)
def test_the_same_bytes_as_on_local_files_also_when_killed(
    weed: Weed,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = corpus.build(tmp_path / "in", code=8, docs=16)
    points = tmp_path / "points"
    once(job, tmp_path / "reference", record=str(points), tuning=TUNING)
    wanted = published(tmp_path / "reference")
    reached = set(points.read_text().splitlines())

    whole = pointed(weed, monkeypatch, "whole")
    monkeypatch.setenv("DATAFLOW_ROOT", whole)
    once(job, tmp_path / "whole", workers=2)
    assert in_bucket(whole) == wanted

    broken = pointed(weed, monkeypatch, "broken/root")
    monkeypatch.setenv("DATAFLOW_ROOT", broken)
    for number, point in enumerate(KILLS):
        assert point in reached
        process = start(
            job, tmp_path / "broken", kill=point, marker=str(tmp_path / f"killed-{number}"), tuning=TUNING
        )
        finish(process, expect=None)
        assert process.returncode == -signal.SIGKILL, f"{point} was never reached"
    once(job, tmp_path / "broken", tuning=TUNING)
    assert in_bucket(broken) == wanted
    again = once(job, tmp_path / "broken", tuning=TUNING)
    assert [ran for _, ran, _ in again["tasks"].values()] == [0] * len(again["tasks"])
    # Nothing of the data lies beside the state.
    assert sorted(p.name for p in (tmp_path / "broken").iterdir() if not p.name.startswith("state.db")) == []


def test_commands_work_on_it(weed_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("DATAFLOW_ROOT", weed_url)
    job, home = corpus.build(tmp_path / "in", code=6, docs=12), tmp_path / "home"

    def ask(*words: object) -> object:
        said = dataflow(*words, "--home", home)
        assert said.code in (0, 4), said.err
        return said

    made = ask("run", job, "--workers", 0)
    assert f"{weed_url}/versions/" in made.out
    (version,) = json.loads(ask("versions", "list", "--json").out)
    name = version["version"]
    assert json.loads(ask("versions", "show", name, "--json").out)["folder"] == f"{weed_url}/versions/{name}"
    assert "All is well" in ask("versions", "verify", name).out
    assert ask("report").out.strip() == f"{weed_url}/versions/{name}/report.html"
    removed = json.loads(ask("audit", "--json").out)
    assert removed
    assert json.loads(ask("lineage", removed[0]["doc_id"], "--json").out)
    shard = next(b for b in open_store(root_of(weed_url)).list("versions/") if b.uri.endswith(".parquet"))
    open_store(root_of(weed_url)).put(shard.uri, b"spoiled", replace=True)
    assert dataflow("versions", "verify", name, "--home", home).code == 1
    told = {row["check"]: row for row in json.loads(ask("doctor", "--json").out)}
    assert "written once" in told["object store"]["detail"]
    assert told["versions"]["files"] > 3


def test_days_compaction_and_maintenance(
    weed_url: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Days that build on each other and are put together: the same as in a folder."""

    def history(folder: Path) -> Growing:
        made = Growing(folder)
        for number in range(8):
            made.put(f"a{number}.md", TEXTS[number])
        made.run()
        made.put("a3.md", TEXTS[20])
        made.put("b.md", TEXTS[21])
        made.day(2)
        said = dataflow("versions", "compact", "--home", made.home, "--json")
        assert said.code == 0, said.err
        return made

    def all_of(made: Growing) -> list[dict[str, object]]:
        with made.state() as state:
            return [made.fates(one.version_id) for one in state.versions("grows")]

    monkeypatch.delenv("DATAFLOW_ROOT", raising=False)
    wanted = all_of(history(tmp_path / "local"))
    monkeypatch.setenv("DATAFLOW_ROOT", weed_url)
    made = history(tmp_path / "away")
    assert len(wanted) == 3
    assert all_of(made) == wanted
    assert "All is well" in dataflow("versions", "verify", "--home", made.home).out

    home = open_home(made.home)
    blobs = open_store(home.root)
    assert isinstance(home.root, S3Root)
    left = "data/parse/ab/part_cd_0123456789abcdef.text.parquet"
    blobs.put(left, b"left by a kill")
    blobs.put(f"staging/{'ab' * 32}/1/rows_0_1_0123456789abcdef.arrow", b"left, too")
    before = {blob.uri for blob in blobs.list()}
    time.sleep(1.1)  # the fraction of an object's second is made up
    cleared = maintain(home, grace_hours=0, keep_versions=1, log=str)
    assert (cleared["orphans"], cleared["staged"]) == (1, 1)
    gone = before - {blob.uri for blob in blobs.list()}
    assert left in gone
    assert cleared["files"] == len(gone)
    assert "All is well" in dataflow("versions", "verify", "--home", made.home).out
    assert all_of(made)[0] == wanted[0]
    said = dataflow("maintenance", "--cold", tmp_path, "--home", made.home)
    assert (said.code, "in object storage" in said.err) == (2, True), said.err


def test_a_bucket_that_is_not_there_is_told(
    weed: Weed,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pointed(weed, monkeypatch)
    monkeypatch.setenv("DATAFLOW_ROOT", "s3://no-such-bucket-at-all/x")
    job = corpus.build(tmp_path / "in", code=2, docs=2)
    said = dataflow("run", job, "--home", tmp_path / "home", "--workers", 0)
    assert said.code == 1
    assert "make the bucket first" in said.err
    rows = {row.what: row for row in check(tmp_path / "home")}
    assert not rows["object store"].ok


@pytest.mark.parametrize("address", ["gs://bucket/x", "s3://", "s3://b/../c"])
def test_other_addresses_are_refused(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATAFLOW_ROOT", address)
    with pytest.raises(ConfigError, match="s3://"):
        open_home(tmp_path)
