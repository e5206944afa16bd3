"""Which version an incremental run looks for duplicates in, and builds on: settled when its turn comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dataflow_ops.engine.base_records import BasePart
from dataflow_ops.errors import SourceChanged, VersionError
from dataflow_ops.pipeline.chain import Link, chain_of, check_index, index_of, signed_by
from dataflow_ops.pipeline.tombstones import check_tombstones
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.timing import IntervalSettings, ParentSettings

Note = Callable[[str], Any]


def ranges_of(state: StateStore, blobs: BlobStore, settings: JobSettings) -> Mapping[str, int]:
    """Into how many ranges a run must be cut so that the current version's index fits; empty: as it likes."""
    current = state.current(settings.dataset.id)
    if current is None:
        return {}
    last = index_of(state, blobs, settings.dataset.id, current.version_id)[-1].manifest
    return dict(last["index"]["ranges"]) if "index" in last else {}


def settle(state: StateStore, blobs: BlobStore, settings: JobSettings, note: Note) -> IntervalSettings:
    """The interval of a run whose turn has come, with the version that it builds on from now on.

    Args:
        state: open state store.
        blobs: where versions are.
        settings: of the run.
        note: told where there is a current version that can't be built on.

    Raises:
        VersionError: the current version's index is gone, or was made with other settings of dedup.
    """
    interval = settings.interval
    assert interval is not None, "only incremental runs build on versions"
    current, dataset = state.current(settings.dataset.id), settings.dataset.id
    done = {"settled": True}
    if current is None:
        return interval.model_copy(update=done)
    name = current.version_id
    links, index = chain_of(state, blobs, dataset, name), index_of(state, blobs, dataset, name)
    if any("index" not in link.manifest for link in index):
        note(
            f"version {name} has no index, as versions had none when it was made: duplicates of its documents"
            " are found by the next full run"
        )
        return interval.model_copy(update=done)
    _comparable(settings, index[-1])
    check_index(state, index)
    check_tombstones(links, blobs)
    parent = ParentSettings(version=name, manifest_sha256=current.manifest_sha256)
    ranges = dict(index[-1].manifest["index"]["ranges"])
    return interval.model_copy(update={**done, "parent": parent, "ranges": ranges})


def refuse_other_ranges(before: IntervalSettings, after: IntervalSettings) -> None:
    """What is signed already must be cut as the index is.

    Raises:
        SourceChanged: it is not: another full version became current meanwhile.
    """
    if after.parent is not None and dict(before.ranges) != dict(after.ranges):
        raise SourceChanged(
            f"version {after.parent.version} became current meanwhile, and its index is cut otherwise than"
            " what this run has signed"
        )


def base_parts(state: StateStore, blobs: BlobStore, settings: JobSettings) -> tuple[BasePart, ...]:
    """The versions that a run builds on, the lowest first; none where it builds on nothing.

    Their outputs are not gone through: :func:`check_base` does that where a run begins and ends, since it
    costs a look at every chunk of the whole corpus, which no bundle of a small day should pay.

    Raises:
        VersionError: one of them is gone, or no longer what the run was told to build on.
    """
    links = _below(state, blobs, settings)
    return tuple(link.part for link in _index(state, blobs, links))


def check_base(state: StateStore, blobs: BlobStore, settings: JobSettings) -> None:
    """Whether what a run builds on is still what was published.

    Raises:
        VersionError: it is not.
    """
    links = _below(state, blobs, settings)
    check_index(state, _index(state, blobs, links))
    check_tombstones(links, blobs)


def _index(state: StateStore, blobs: BlobStore, links: list[Link]) -> list[Link]:
    if not any(link.record.is_compact for link in links):
        return links
    return index_of(state, blobs, links[-1].record.dataset, links[-1].record.version_id)


def _below(state: StateStore, blobs: BlobStore, settings: JobSettings) -> list[Link]:
    interval = settings.interval
    if interval is None or interval.parent is None:
        return []
    links = chain_of(state, blobs, settings.dataset.id, interval.parent.version)
    if links[-1].record.manifest_sha256 != interval.parent.manifest_sha256:
        raise VersionError(
            f"version {interval.parent.version} is not the one that this run began to build on"
        )
    return links


def _comparable(settings: JobSettings, last: Link) -> None:
    made = last.manifest["index"]["signed_by"]
    if made != signed_by(settings):
        raise VersionError(
            f"version {last.record.version_id} was signed with other settings of dedup (or another version of"
            " the program), so duplicates of its documents could not be found; run the job in full mode first"
        )
