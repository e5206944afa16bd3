"""Runs over a bucket: the same documents as from a folder, its days, and a store that goes away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.clients import s3, s3_read
from dataflow_ops.errors import ObjectStoreAway
from tests.pipeline.compacting import rows
from tests.pipeline.growing import Growing
from tests.pipeline.inside import Notes
from tests.pipeline.prose import note, sentences
from tests.storage.s3_server import KEY, SECRET, S3Server, Weed, moto, moto_url, weed, weed_url  # noqa: F401

TEXTS = [note(number, sentences()) for number in range(30)]
NAMES = [f"{'sub/' if i % 3 else ''}d{i:02}.md" for i in range(16)]


class InBucket(Growing):
    """Documents in a bucket instead of a folder."""

    def __init__(self, root: Path, server: S3Server, url: str) -> None:
        super().__init__(root)
        self.server = server
        self.bucket = url.removeprefix("s3://").partition("/")[0]
        text = self.job.read_text().replace("kind: files", "kind: s3")
        self.job.write_text(text.replace(f"{root}/docs", f"s3://{self.bucket}/docs"))

    def put(self, name: str, text: str) -> None:
        self.server.client.put_object(Bucket=self.bucket, Key=f"docs/{name}", Body=text.encode())

    def fill(self) -> None:
        for name, text in zip(NAMES, TEXTS, strict=False):
            self.put(name, text)


def told(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return sorted((row["id"], row["path"], row["text"]) for row in found)


def test_a_bucket_gives_what_a_folder_gives(
    tmp_path: Path,
    moto: S3Server,  # noqa: F811
    moto_url: str,  # noqa: F811
) -> None:
    remote, local = InBucket(tmp_path / "remote", moto, moto_url), Growing(tmp_path / "local")
    remote.fill()
    for name, text in zip(NAMES, TEXTS, strict=False):
        (local.root / "docs" / name).parent.mkdir(exist_ok=True)
        local.put(name, text)
    full, other = remote.run(workers=2), local.run()
    assert told(rows(remote, full.version_id)) == told(rows(local, other.version_id))
    assert len(rows(remote, full.version_id)) == len(NAMES)

    remote.put(NAMES[2], TEXTS[20])
    remote.put("new.md", TEXTS[21])
    remote.server.client.delete_object(Bucket=remote.bucket, Key=f"docs/{NAMES[5]}")
    notes = Notes()
    day = remote.day(2, notes=notes)
    texts = {row["path"]: row["text"].strip() for row in rows(remote, day.version_id)}
    assert (texts[NAMES[2]], texts["new.md"]) == (TEXTS[20].strip(), TEXTS[21].strip())
    assert NAMES[5] in texts, "what is gone is noticed by the next full run, as for files"
    assert any("14 file(s)" in one and "2 are taken" in one for one in notes.notes), notes.notes
    whole = remote.run(date="2026-11-03")
    assert NAMES[5] not in {row["path"] for row in rows(remote, whole.version_id)}
    remote.verify(whole.version_id)
    held = [p for p in remote.root.rglob("*") if p.is_file()]
    assert not [p for p in held if KEY.encode() in p.read_bytes() or SECRET.encode() in p.read_bytes()]


@pytest.mark.s3
@pytest.mark.xdist_group("s3")
def test_a_store_that_goes_away_stops_the_run_which_goes_on_when_it_is_back(
    tmp_path: Path,
    weed: Weed,  # noqa: F811
    weed_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = InBucket(tmp_path, weed, weed_url)
    made.fill()
    # Patience of a minute is no part of this.
    monkeypatch.setattr(s3, "TRIES", 1)
    monkeypatch.setattr(s3_read, "BODY_TRIES", 1)
    s3._client.cache_clear()
    notes = Notes()

    def on_task(step: str, outcome: object) -> None:
        if step == "fetch":
            weed.stop()

    notes.on_task = on_task
    try:
        with pytest.raises(ObjectStoreAway, match="the object store does not answer"):
            made.run(notes=notes)
    finally:
        weed.start()
        s3._client.cache_clear()
    monkeypatch.undo()
    for name, value in weed.variables().items():
        monkeypatch.setenv(name, value)
    notes = Notes()
    done = made.run(notes=notes)
    assert done.current
    assert {row["path"]: row["text"].strip() for row in rows(made, done.version_id)} == {
        name: text.strip() for name, text in zip(NAMES, TEXTS, strict=False)
    }
    assert notes.reports["fetch"].skipped, "what was fetched before is not fetched again"
