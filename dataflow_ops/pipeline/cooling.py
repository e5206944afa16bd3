"""What maintenance moves to the cold tier: raw bytes and finished intermediates that are seldom read again.

A file keeps its name, so state says nothing of tiers, and whoever reads finds it in either.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from dataflow_ops.errors import ColdAway, StorageFull
from dataflow_ops.pipeline.chain import records_behind
from dataflow_ops.pipeline.retention import bases_of
from dataflow_ops.pipeline.version_states import WAITING
from dataflow_ops.state.kept import Movable
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.storage.moving import Mover

AFTER_DAYS = 7
"""Default age in days from which on files are moved."""
FINISHED: tuple[tuple[str, str], ...] = (
    ("match", "buckets"),
    ("match", "wanted"),
    ("match", "recalled"),
    ("gather", "texts"),
    ("recall", "texts"),
    ("verify", "nodes"),
    ("verify", "edges"),
    ("unite", "members"),
    ("unite", "links"),
    ("unite", "asked"),
    ("collect", "texts"),
    ("scatter", "rows"),
)
"""``(step, kind)`` of outputs that only later steps of the same run read. The rest stays: a day above reads
it (keys, bands, filters, removed, fates, lists of files), or a page or a command does, or it is a shard."""
TEXTS: tuple[tuple[str, str], ...] = (("parse", "text"),)
"""Moved too, but only of runs whose texts no day compares with."""
_RAW = re.compile(r"raw/[0-9a-f]{2}/([0-9a-f]{64})")
_TEMPORARY_AGE_S = 24 * 3600.0
_PREFIXES = 256
_LATEST = 50
"""Runs among which the newest of each mode is looked for."""


@dataclass(slots=True)
class Cooled:
    """What was done, or would be.

    Attributes:
        copied: files that were copied to the cold tier.
        copied_bytes: their bytes.
        moved: files that lie there alone now.
        moved_bytes: room that this gave back in the storage root.
        damaged: files that do not hash as recorded, and stay where they are.
    """

    copied: int = 0
    copied_bytes: int = 0
    moved: int = 0
    moved_bytes: int = 0
    damaged: int = 0


def cool(
    state: StateStore,
    blobs: LocalStore,
    after_days: float,
    grace_s: float,
    dry_run: bool = False,
    log: Callable[[str], Any] = print,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> Cooled:
    """Take the next step with every file that may be moved; see :mod:`dataflow_ops.storage.moving`.

    Args:
        state: open state store.
        blobs: the storage root. Its cold tier must be there, unless ``dry_run``.
        after_days: days since the task ended, or since the raw bytes came.
        grace_s: seconds for which both copies are kept.
        dry_run: only count what is not there yet.
        log: told of damaged files.
        progress: told how far it is.

    Raises:
        ColdAway: the cold tier went away.
        StorageFull: no space left in it.
    """
    done = Cooled()
    mover = Mover(blobs.root, grace_s)
    if not dry_run:
        mover.sweep(_TEMPORARY_AGE_S)
    for file in _movable(state, blobs, after_days, progress):
        if dry_run:
            new = blobs.stat(f"cold/{file.uri}") is None
            done.copied += new
            done.copied_bytes += file.size if new else 0
            continue
        try:
            step = mover.move(file.uri, file.sha256, file.mtime_ns)
        except FileNotFoundError:
            # Cleared away by somebody else meanwhile; or the cold tier is away.
            blobs.cold.exists()
            continue
        except StorageFull as e:
            raise StorageFull(f"no space left in the cold tier ({blobs.cold.folder}): free some") from e
        except OSError as e:
            blobs.cold.exists()
            raise ColdAway(f"{file.uri} can't be moved to the cold tier: {e}; mend that, run again") from e
        if step == "damaged":
            done.damaged += 1
            log(f"{file.uri}: its bytes are not those that were recorded; it stays where it is")
        elif step == "copied":
            done.copied, done.copied_bytes = done.copied + 1, done.copied_bytes + file.size
        elif step == "moved":
            done.moved, done.moved_bytes = done.moved + 1, done.moved_bytes + file.size
    return done


def _movable(
    state: StateStore, blobs: LocalStore, after_days: float, progress: Callable[[int, int], Any]
) -> Iterator[Movable]:
    """Files in the root that may be moved, with what they must hash to."""
    age_s = after_days * 86_400.0
    near = near_runs(state)
    steps = sorted({step for step, _ in (*FINISHED, *TEXTS)})
    for number in range(_PREFIXES):
        prefix = f"{number:02x}"
        here = {b.uri: b.size for step in steps for b in blobs.list(f"data/{step}/{prefix}/")}
        if here:
            found = [
                *state.movable_outputs(prefix, FINISHED, age_s),
                *state.movable_outputs(prefix, TEXTS, age_s, sorted(near)),
            ]
            yield from (file for file in found if here.get(file.uri) == file.size)
        oldest_ns = int((time.time() - age_s) * 1e9)
        for blob in blobs.list(f"raw/{prefix}/"):
            named = _RAW.fullmatch(blob.uri)
            if named and blob.mtime_ns < oldest_ns:
                yield Movable(blob.uri, blob.size, blob.mtime_ns, named[1])
        progress(number + 1, _PREFIXES)


def near_runs(state: StateStore) -> Collection[str]:
    """Runs whose texts the next run may read: those behind versions that are current, wait for a person or
    are built on now, and the newest of each data set and mode.
    """
    found: set[str] = set()
    versions = state.versions()
    for dataset in sorted({v.dataset for v in versions}):
        own: list[VersionRecord] = [v for v in versions if v.dataset == dataset]
        names = {v.version_id for v in own if v.is_current or v.state == WAITING}
        names |= {base for run in state.live_runs(dataset) for base in bases_of(run)}
        for name in names:
            found.update(record.run_id for record in records_behind(own, name))
        newest: dict[str, str] = {}
        for run in state.list_runs(dataset, _LATEST):
            newest.setdefault(run.mode, run.run_id)
        found.update(newest.values())
    return found
