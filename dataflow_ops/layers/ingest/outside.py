"""What listing and fetching reach outside of local folders, as they see it. ``pipeline`` hands it in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from dataflow_ops.errors import ConfigError
from dataflow_ops.source_settings import SourceSettings

Key = tuple[object, ...]
"""Values of a row's key columns, in their order."""


class Table(Protocol):
    """Rows of a database, in ascending order of their key. Rows without a key are in none of its answers.

    All methods raise :class:`~dataflow_ops.errors.SourceAway` where the database does not answer, and
    :class:`~dataflow_ops.errors.SourceRefused` where it refuses what is asked.
    """

    def names(self) -> Sequence[str]:
        """Its columns, as they were when this was first asked."""

    def highest(self) -> Key | None:
        """The highest key of all; None where there are no rows."""

    def without_key(self) -> int:
        """Rows that have NULL in a key column."""

    def repeated_key(self, last: Key) -> Key | None:
        """A key up to ``last`` that two rows have; None where each row has its own."""

    def rows(self, columns: Sequence[str], first: Key | None, last: Key) -> Iterator[Sequence[object]]:
        """Some columns of the rows from ``first`` (None: from the lowest) to ``last``, both with them."""

    def close(self) -> None:
        """Give the connection back."""


class Entry(Protocol):
    """An object as a bucket lists it."""

    @property
    def key(self) -> str:
        """Its full name in the bucket."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def etag(self) -> str:
        """Changes when the bytes do."""


class Bucket(Protocol):
    """Objects of a bucket.

    All methods raise :class:`~dataflow_ops.errors.ObjectStoreAway` where the store does not answer, and
    :class:`~dataflow_ops.errors.ObjectStoreRefused` where it lets nobody in, or has no such bucket.
    """

    def listed(self, prefix: str) -> Iterator[Entry]:
        """Every object whose key begins so, ascending by key."""

    def blocks(self, key: str, size: int, etag: str) -> Iterator[bytes]:
        """The bytes of an object that was listed; taken up where a connection breaks.

        Raises:
            ObjectMissing: it is gone.
            ObjectChanged: it is another one now.
        """


@dataclass(frozen=True, slots=True)
class Outside:
    """Ways out of this machine.

    Attributes:
        table: opens the table of a source of ``kind: sql``; the caller closes it.
        bucket: opens a bucket by its name.
    """

    table: Callable[[SourceSettings], Table]
    bucket: Callable[[str], Bucket]


def _no_table(source: SourceSettings) -> Table:
    raise ConfigError(f"source '{source.source_id}': no database can be reached from here")


def _no_bucket(name: str) -> Bucket:
    raise ConfigError(f"s3://{name}: no object store can be reached from here")


NOTHING = Outside(_no_table, _no_bucket)
"""No way out: for jobs whose sources are local."""
