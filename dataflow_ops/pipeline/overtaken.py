"""A version that waits for a person while others become current without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataflow_ops.pipeline.chain import records_behind
from dataflow_ops.state.records import INCREMENTAL, VersionRecord


@dataclass(frozen=True, slots=True)
class Overtaken:
    """What a version would take away if it became current now.

    Attributes:
        version: the one that waits.
        by: the current one, which neither is nor builds on it.
        lost: versions that the current one stands on and this one does not, the lowest first.
    """

    version: VersionRecord
    by: VersionRecord
    lost: tuple[VersionRecord, ...]

    @property
    def told(self) -> str:
        """For people, in a few words."""
        return f"overtaken by {self.by.version_id}, which doesn't hold it"

    @property
    def leaves(self) -> str:
        """What would leave the current version, for people."""
        days = [one.data_date or one.version_id for one in self.lost if one.mode == INCREMENTAL]
        full = [one.version_id for one in self.lost if one.mode != INCREMENTAL]
        return " and ".join([*full, *([f"day(s) {', '.join(days)}"] if days else [])])

    @property
    def instead(self) -> str:
        """The command that brings its documents into the current version."""
        if self.version.is_compact:
            return "dataflow versions compact"
        if self.version.mode == INCREMENTAL:
            return f"dataflow run JOB --mode {INCREMENTAL} --date {self.version.data_date}"
        return "dataflow run JOB"

    @property
    def anyway(self) -> str:
        """The command that makes it current all the same."""
        return f"dataflow versions approve {self.version.version_id} --anyway"


def overtaken(versions: Sequence[VersionRecord], version: VersionRecord) -> Overtaken | None:
    """Whether the current version would lose documents if another took its place.

    A version that holds the current one does not make it lose anything: it was made further up, and somebody
    went back since. Nor does a later full version; what days brought beside it is taken by the next day.

    Args:
        versions: all of the data set.
        version: the one that may become current.

    Raises:
        VersionError: a version below one of the two is not there.
    """
    now = next((one for one in versions if one.is_current), None)
    if now is None or version.is_current or version.is_increment:
        return None
    mine, theirs = records_behind(versions, version.version_id), records_behind(versions, now.version_id)
    if mine[0].version_id != theirs[0].version_id:
        lost = theirs if theirs[0].created_at > mine[0].created_at else []
    else:
        held = {one.version_id for one in mine}
        lost = [one for one in theirs if one.version_id not in held]
    return Overtaken(version, now, tuple(lost)) if lost else None
