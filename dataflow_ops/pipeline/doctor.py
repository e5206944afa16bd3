"""What a machine needs, checked."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.errors import ColdAway, ConfigError, DataFlowError, StorageError
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.relay_desk import standings_of
from dataflow_ops.pipeline.tiers import HOT, Stored, stored
from dataflow_ops.pipeline.webhooks import load_webhooks
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.cold import ColdTier
from dataflow_ops.storage.s3 import S3Root, S3Store


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        what: its name.
        ok: whether it is well.
        detail: for a person.
        stored: bytes of one kind in one tier, where that was looked at.
    """

    what: str
    ok: bool
    detail: str
    stored: Stored | None = None


def check(home_path: Path) -> list[Check]:
    """Python, state, disk, and the stored bytes by tier and kind, as far as they can be looked at."""
    rows = [Check("python", sys.version_info >= (3, 11), sys.version.split()[0])]
    if not home_path.exists():
        return [*rows, _absent(home_path.absolute())]
    try:
        home = open_home(home_path)
        with StateStore(home.state_url) as state:
            runs = state.list_runs(None, 1000)
            told = _webhooks(home, state)
        rows.append(Check("state", True, f"{home.state_url.split('@')[-1]}: {len(runs)} run(s)"))
    except DataFlowError as e:
        return [*rows, Check("state", False, str(e))]
    rows += told
    if isinstance(home.root, S3Root):
        return [*rows, _disk("temporary files", Path(tempfile.gettempdir())), *_bucket(home.root)]
    rows.append(_disk("disk", home.root))
    tier = ColdTier(home.root)
    try:
        has_cold = tier.exists()
        if has_cold:
            rows.append(_disk("cold disk", tier.folder.resolve()))
    except ColdAway as e:
        has_cold = False
        rows.append(Check("cold disk", False, str(e)))
    return [*rows, *(_told(one) for one in stored(home.root, cold=has_cold) if one.files)]


def _webhooks(home: Home, state: StateStore) -> list[Check]:
    """Each endpoint that is named, or that something waits for; nothing where there are none."""
    try:
        webhooks = load_webhooks(home.path, os.environ)
    except ConfigError as e:
        return [Check("webhooks", False, str(e))]
    found = standings_of(state, webhooks)
    return [
        Check(f"webhook {one.backlog.endpoint}", one.is_well, one.told)
        for one in found
        if one.url is not None or one.backlog.waiting or one.backlog.dead
    ]


def _disk(what: str, folder: Path) -> Check:
    usage = shutil.disk_usage(folder)
    free = usage.free / 2**30
    return Check(what, free > 1, f"{free:,.1f} GiB free of {usage.total / 2**30:,.0f} at {folder}")


def _bucket(root: S3Root) -> list[Check]:
    """What its server can do, tried now, and what it holds."""
    where = f"{root} at {root.access.endpoint or 'Amazon S3'}"
    try:
        # Looked at first: some servers make a bucket for whoever writes to one that is not there.
        held = stored(root, cold=False)
        can = S3Store(root).features(afresh=True)
    except StorageError as e:
        return [Check("object store", False, str(e))]
    once = "names are written once" if can.conditional_put else "names are looked at before they are written"
    if can.conditional_put and not can.conditional_parts:
        once += " (large files: looked at before)"
    checked = (
        "bodies are checked on arrival"
        if can.checks_bodies
        else "bodies are not checked on arrival, so everything stored is read back: slower"
    )
    return [
        Check("object store", True, f"{where}: {once}; {checked}"),
        *(_told(one) for one in held if one.files),
    ]


def _told(one: Stored) -> Check:
    # A quarantined file is a copy that did not match its hash: somebody should look at the disk.
    name = one.kind if one.tier == HOT else f"{one.tier} {one.kind}"
    detail = f"{one.files:,} files, {one.bytes / 2**20:,.1f} MiB"
    return Check(name, one.kind != "quarantine", detail, one)


def _absent(home: Path) -> Check:
    above = next(folder for folder in home.parents if folder.exists())
    if os.access(above, os.W_OK | os.X_OK):
        return Check("home", True, f"{home} is not there yet; the first `dataflow run` makes it")
    return Check(
        "home", False, f"{home} can't be made: you may not write in {above}; name another with --home"
    )
