"""The error tree. Each class says in one line what the caller should do.

::

    DataFlowError
    ├── ConfigError             the job file or the call is wrong: correct it
    │   └── SourceRefused       a source's database says no: correct login, rights or names
    ├── InputError              something in the input is bad: isolate it and go on
    │   ├── DocumentError       this record becomes a dead letter, its neighbours come through
    │   │   ├── MalformedRecord     the record does not have the form its format promises
    │   │   ├── UndecodableText     no encoding gives text
    │   │   ├── ParserFailed        the parser refused the document
    │   │   └── DocumentTooCostly   the document hit its limit of CPU time or memory, twice
    │   └── FileError           the rest of this file becomes one dead letter with its offset
    │       ├── TruncatedFile       compressed or framed data end too early
    │       └── UnreadableFile      the file is not what its name says, or can't be opened
    ├── StateError
    │   ├── LeaseLost           another attempt owns the task now: drop what you hold
    │   ├── CommitUnknown       the database did not say whether it committed: read, don't repeat
    │   ├── DatabaseUnavailable the state database can't be reached: start the run again later
    │   ├── IllegalMove         the state machine has no such move: a fault in our code
    │   ├── MissingPrimaryKey   the payload has no primary key: a fault in the caller
    │   └── EndlessRead         a task reads what it writes: stopped, look before it goes on
    ├── StorageError
    │   ├── OutputConflict      a published name exists with other bytes: look before anything else
    │   ├── CorruptOutput       stored bytes differ from their recorded hash: made again
    │   ├── StorageFull         no space left: free some, then run again
    │   ├── ColdAway            the cold tier is not mounted: mount it, then run again
    │   ├── ObjectStoreAway     the object store does not answer, or not now: run again later
    │   ├── ObjectStoreRefused  the object store says no: correct credentials, rights or the bucket's name
    │   ├── ObjectMissing       there is no such object
    │   └── ObjectChanged       an object was replaced while it was read: read again
    ├── Paused                  somebody asked the task to pause: unwind, the engine gives it back
    ├── SourceChanged           the file changed between listing and reading: fetched again
    ├── FetchFailed             a download failed: tried again
    ├── SourceAway              a source's database does not answer: run again when it is back
    ├── WorkerDied              a worker process was killed: its task is tried again
    ├── ConservationError       a step lost or made up documents: a fault in our code
    │   └── ContentMismatch     compacted shards do not hold the rows of the old ones: nothing was published
    ├── FingerprintMismatch     data made under other settings was about to be compared
    ├── ShortageError           a domain has fewer tokens than the job demands (on_shortage: fail)
    ├── StackError              a server or an Airflow process does not come up: its log says why
    └── VersionError            the version asked for is missing, damaged or not allowed
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class DataFlowError(Exception):
    """Root of all errors raised on purpose."""

    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later without anybody changing anything."""
    systemic: ClassVar[bool] = False
    """Whether the fault concerns the whole run (disk, database), not one task."""
    said: tuple[str, Mapping[str, str | int]] | None = None
    """Code and values of the message, where a page can word it in its reader's language."""


class ConfigError(DataFlowError):
    """The job file or the call is wrong: correct it."""


class SourceRefused(ConfigError):
    """A source's database says no: correct the login, the rights, or what it is called in the job."""

    systemic = True


class InputError(DataFlowError):
    """Something in the input is bad: isolate the smallest unit and go on."""


class DocumentError(InputError):
    """One record is bad: it becomes a dead letter, its neighbours come through."""


class MalformedRecord(DocumentError):
    """The record does not have the form its format promises."""


class UndecodableText(DocumentError):
    """No encoding turns the bytes into text."""


class ParserFailed(DocumentError):
    """The parser refused the document."""


class DocumentTooCostly(DocumentError):
    """The document hit its limit of CPU time or memory, once among others and once alone."""


class FileError(InputError):
    """A file is bad from ``offset`` on: one file-level dead letter; the whole rows before it stay.

    Args:
        message: what is wrong, for a person.
        offset: byte offset in the decompressed stream from which nothing could be read.
    """

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message, offset)
        self.message = message
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.message} (at byte {self.offset})"


class TruncatedFile(FileError):
    """Compressed or framed data end too early."""


class UnreadableFile(FileError):
    """The file is not what its name says, or can't be opened."""


class StateError(DataFlowError):
    """Something about run or task state."""


class LeaseLost(StateError):
    """Another attempt owns the task now: drop what you hold, write nothing more."""


class CommitUnknown(StateError):
    """The database did not say whether it committed: read the row again, never repeat blindly."""

    retryable = True


class DatabaseUnavailable(StateError):
    """The state database can't be reached or stays locked: the run stops; start it again later."""

    retryable = True
    systemic = True


class IllegalMove(StateError):
    """The state machine has no such move: a fault in our code."""


class MissingPrimaryKey(StateError):
    """An upsert payload lacks its primary key: a fault in the caller; nothing was written."""


class EndlessRead(StateError):
    """A task processed more rows than there were, or its table grew: it reads what it writes. Look first."""


class StorageError(DataFlowError):
    """Something about stored bytes."""


class OutputConflict(StorageError):
    """A published name exists with other bytes: two different results for one key. Look first."""

    systemic = True


class CorruptOutput(StorageError):
    """Stored bytes differ from their recorded hash: the output is quarantined and made again.

    Attributes:
        producer_key: key of the task that made the bytes, where it is known.
    """

    retryable = True
    producer_key: str = ""


class StorageFull(StorageError):
    """No space left on the device: free some, then run again; finished tasks are skipped."""

    systemic = True


class ColdAway(StorageError):
    """The cold tier can't be reached: mount it, then run again. What lies there is never taken for lost."""

    retryable = True
    systemic = True


class ObjectStoreAway(StorageError):
    """The object store does not answer, or asks to come later, after all repeats: run again later."""

    retryable = True
    systemic = True


class ObjectStoreRefused(StorageError):
    """The object store says no: credentials, rights, or a bucket that is not there; correct them."""

    systemic = True


class ObjectMissing(StorageError):
    """There is no such object."""


class ObjectChanged(StorageError):
    """An object was replaced while it was read: read it again."""

    retryable = True


class Paused(DataFlowError):
    """Somebody asked for a pause: unwind; the engine gives the task back where its cursor stands.

    Nothing failed: whoever catches errors on the way lets this one pass.
    """


class SourceChanged(DataFlowError):
    """A source file changed between listing and reading: it is listed and fetched again."""

    retryable = True


class FetchFailed(DataFlowError):
    """A download failed: tried again later."""

    retryable = True


class SourceAway(DataFlowError):
    """A source's database does not answer, after all repeats: run again when it is back."""

    retryable = True
    systemic = True


class WorkerDied(DataFlowError):
    """A worker process ended without an answer (killed, out of memory): its task is tried again."""

    retryable = True


class ConservationError(DataFlowError):
    """A step lost or made up documents: a fault in our code; nothing was committed."""


class ContentMismatch(ConservationError):
    """Compacted shards do not hold the same rows in the same order as the old ones; nothing was published."""


class FingerprintMismatch(DataFlowError):
    """Data made under two different settings was about to be compared; both are named."""


class ShortageError(DataFlowError):
    """A domain has fewer tokens than the job asks for, and the job says ``on_shortage: fail``."""


class StackError(DataFlowError):
    """A component of the stack does not start, answer or end: the message shows its log."""

    retryable = True


class VersionError(DataFlowError):
    """The version asked for is missing, damaged or not allowed to become current."""


class BaseDamaged(VersionError):
    """What the versions below an incremental run left is damaged or gone; only a full run makes it anew."""

    systemic = True
