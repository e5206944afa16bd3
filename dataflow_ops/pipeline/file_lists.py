"""Which files runs have listed: of one run, and of a version with those below it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.errors import CorruptOutput, StateError, VersionError
from dataflow_ops.layers.ingest.listing import SAME_FILE
from dataflow_ops.pipeline.chain import UNFINISHED, records_behind
from dataflow_ops.pipeline.session import Session
from dataflow_ops.schema import FILES
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore

NAME = ("source_id", "path")
"""Columns that tell which file it is, whatever it holds."""
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class PutBack:
    """Files whose dead letters wait for another try.

    Attributes:
        day: of the run that could not read them; None: of a full one.
        files: with the columns of :data:`NAME`.
    """

    day: str | None
    files: pa.Table


@dataclass(frozen=True, slots=True)
class Below:
    """Files of a version and of those below it.

    Attributes:
        known: with the columns of :data:`SAME_FILE`; each as the uppermost has it that read it, but for those
            to be read again.
        put_back: those to be read again.
    """

    known: pa.Table
    put_back: tuple[PutBack, ...]


def files_below(version: str, dataset: str, state: StateStore, chunks: ChunkStore) -> Below:
    """Files of a version and of those below it.

    Raises:
        VersionError: a version or its list of files is gone, or a run of them has not ended again.
    """
    known = FILES.empty_table().select(SAME_FILE)
    seen = known.select(NAME)
    put_back = []
    try:
        records = records_behind(state.versions(dataset), version)
    except VersionError as e:
        raise VersionError(f"{e}; start a new run") from e
    for record in records[::-1]:
        own = _listed_by(record, state, chunks).combine_chunks()
        own = own.join(seen, list(NAME), join_type="left anti").select(SAME_FILE)
        again = _put_back(record.run_id, state, chunks)
        if again.num_rows:
            again = own.join(again, list(NAME), join_type="left semi").select(NAME)
            put_back.append(PutBack(record.data_date if record.base is not None else None, again))
            known = pa.concat_tables(
                [known, own.join(again, list(NAME), join_type="left anti").select(SAME_FILE)]
            )
        else:
            known = pa.concat_tables([known, own])
        seen = pa.concat_tables([seen, own.select(NAME)])
    return Below(known.combine_chunks(), tuple(one for one in put_back if one.files.num_rows))


def files_of_run(run_id: str, state: StateStore, chunks: ChunkStore) -> pa.Table:
    """Files that a run has listed, with the columns of :data:`SAME_FILE`; a file that was cut stands once.

    Raises:
        VersionError: the list is gone or damaged.
    """
    try:
        output = OutputIndex(state, run_id).output("discover", "files", "all")
        files: pa.Table = chunks.read(output, "", SAME_FILE, verify=True, schema=FILES)
    except (StateError, CorruptOutput) as e:
        raise VersionError(
            f"the list of the files of run {run_id} is gone ({e}); run the job in full mode first"
        ) from e
    return files.group_by(list(SAME_FILE)).aggregate([]).select(SAME_FILE)


def close_read_anew(session: Session) -> None:
    """Letters of the versions below about files that this run has read are no longer open: it has its own."""
    if session.parent is None:
        return
    records = records_behind(session.state.versions(session.settings.dataset.id), session.parent.version)
    runs = [record.run_id for record in records if record.run_id != session.context.run_id]
    own = files_of_run(session.context.run_id, session.state, session.chunks)
    if own.num_rows:
        files = set(zip(own["source_id"].to_pylist(), own["path"].to_pylist(), strict=True))
        session.state.letters_read_anew(runs, files)


def _listed_by(record: VersionRecord, state: StateStore, chunks: ChunkStore) -> pa.Table:
    run = state.get_run(record.run_id)
    assert run is not None, "a version's run is a foreign key"
    if run.state in UNFINISHED:
        raise VersionError(
            f"run {run.run_id}, which made version {record.version_id}, is {run.state} again; let it end,"
            " then go on"
        )
    return files_of_run(run.run_id, state, chunks)


def _put_back(run_id: str, state: StateStore, chunks: ChunkStore) -> pa.Table:
    """Files of a run's letters that were put back; of a chunk that was given up, all its files."""
    letters = [one.letter for one in state.dead_letters(run_id=run_id, state="retried", limit=_ALL)]
    tables = [named((one.source_id, one.path) for one in letters if one.level != "chunk" and one.path)]
    if given_up := sorted({one.path for one in letters if one.level == "chunk"}):
        output = OutputIndex(state, run_id).output("discover", "files", "all")
        slices = {part.name for part in output.slices}
        tables += [chunks.read(output, name, NAME, schema=FILES) for name in given_up if name in slices]
    return pa.concat_tables(tables).group_by(list(NAME)).aggregate([]).select(NAME)


def named(pairs: Iterable[tuple[str, str]]) -> pa.Table:
    """A table of :data:`NAME`."""
    rows = list(pairs)
    return pa.table(
        {
            "source_id": pa.array([s for s, _ in rows], FILES.field("source_id").type),
            "path": pa.array([p for _, p in rows], FILES.field("path").type),
        }
    )
