"""``kind: sql``: rows of a table, view or query, listed as ranges of their key.

Ranges begin where the hash of a key says so, and are named by that key. So a row that comes, goes or changes
makes one range another one (two, where its own key begins a range) and moves no other, whatever the keys are:
numbers with gaps, texts, several columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from dataflow_ops.errors import ConfigError, SourceChanged, SourceRefused
from dataflow_ops.layers.ingest import rowform
from dataflow_ops.layers.ingest.outside import Key, Outside, Table
from dataflow_ops.layers.ingest.sources.jsonfiles import DIALOGUE_KEYS
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.media import ROWS
from dataflow_ops.source_settings import SourceSettings

ROW_BYTES: Final = 4096
"""Bytes counted for a row whose text is not read: about the mean of a corpus of web pages and handbooks."""
GONE: Final = '{"rows":0}'
"""The mark of a range that a version below had and the table no longer has: it gives no rows."""


@dataclass(frozen=True, slots=True)
class Form:
    """Which columns are read.

    Attributes:
        listed: to find out what changed: key and version, or all.
        read: of each row.
    """

    listed: tuple[str, ...]
    read: tuple[str, ...]


def list_ranges(source: SourceSettings, left_out: LeftOut, outside: Outside) -> Iterator[SourceFile]:
    """Yield one file for each range of keys, up to the highest key that the table has now.

    Rows without a key become one dead letter. A range's ``etag`` tells its keys and a hash: of the rows' keys
    and versions where the source names a ``version`` column, else of all that is read of them.

    Raises:
        ConfigError: two rows have one key, or a key is none that ranges can be made of.
        SourceRefused: the database refuses, or a column is missing.
        SourceAway: the database does not answer.
    """
    del left_out  # every row is either in a range or without a key
    with closing(outside.table(source)) as table:
        form = _form(source, table.names())
        name = source.table or "query"
        highest = table.highest()
        if without := table.without_key():
            columns = ", ".join(source.key)
            message = (
                f"{without} row(s) without a value in {columns}: they can't be told apart; give them one"
            )
            yield SourceFile(f"{name}/{columns} is NULL", -1, problem=message)
        if highest is None:
            return
        yield from _ranges(source, table, form, highest, name)
        if (repeated := table.repeated_key(highest)) is not None:
            raise ConfigError(
                f"source '{source.source_id}': two rows have the key {rowform.key_text(repeated)}; name"
                " columns as key that tell all rows apart"
            )


def read_range(source: SourceSettings, etag: str, table: Table) -> Iterator[bytes]:
    """Yield the lines of a listed range; see :mod:`~dataflow_ops.layers.ingest.rowform`.

    Raises:
        SourceChanged: its rows are not those that were listed; raised behind the last line.
        SourceRefused: the database refuses, or a column is missing.
        SourceAway: it does not answer.
    """
    if etag == GONE:
        return
    listed = json.loads(etag)
    form = _form(source, table.names())
    mark = _Mark(source, form)
    places = [form.read.index(name) for name in source.key]
    versioned = [form.read.index(name) for name in form.listed]
    first, last = rowform.key_of(listed["from"]), rowform.key_of(listed["to"])
    for row in table.rows(form.read, first, last):
        key = tuple(row[i] for i in places)
        line = rowform.line_of(form.read, row, key, source.text_field)
        mark.add(line if not source.version else rowform.mark_of([row[i] for i in versioned]))
        yield line
    if (mark.rows, mark.digest()) != (listed["rows"], listed["hash"]):
        raise SourceChanged(
            f"its rows changed after they were listed ({listed['rows']} then, {mark.rows} now); the next run"
            " reads them"
        )


def _ranges(
    source: SourceSettings, table: Table, form: Form, highest: Key, name: str
) -> Iterator[SourceFile]:
    where = f"source '{source.source_id}'"
    places = [form.listed.index(column) for column in source.key]
    label = ",".join(source.key)
    start = f"{name}/lowest/rows"
    mark = _Mark(source, form)
    first: Key | None = None
    last: Key = highest
    for row in table.rows(form.listed, None, highest):
        key = tuple(row[i] for i in places)
        if rowform.key_hash(key, where) % source.range_rows == 0:
            if first is not None:
                yield _range(start, mark, first, last, where)
            # The last part of the name has no ending that would say something about the format.
            start = f"{name}/{label}>={rowform.key_name(key)}/rows"
            mark, first = _Mark(source, form), None
        first, last = first or key, key
        if source.version:
            mark.add(rowform.mark_of(row), ROW_BYTES)
        else:
            mark.add(rowform.line_of(form.read, row, key, source.text_field))
    if first is not None:
        yield _range(start, mark, first, last, where)


def _range(path: str, mark: _Mark, first: Key, last: Key, where: str) -> SourceFile:
    told = {
        "from": rowform.key_json(first, where),
        "to": rowform.key_json(last, where),
        "rows": mark.rows,
        "hash": mark.digest(),
    }
    etag = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return SourceFile(path, mark.size, etag=etag, media_type=ROWS)


class _Mark:
    """What tells that a range is what it was.

    Args:
        source: where it is read from, and how.
        form: which columns.
    """

    def __init__(self, source: SourceSettings, form: Form) -> None:
        shape = [rowform.VERSION, source.query or source.table, source.version, source.text_field, *form.read]
        self._hash = hashlib.sha256(json.dumps(shape).encode())
        self.rows = 0
        self.size = 0

    def add(self, data: bytes, size: int | None = None) -> None:
        """One more row; ``size``: bytes that it counts for, where these are not its own."""
        self._hash.update(data)
        self.rows += 1
        self.size += len(data) if size is None else size

    def digest(self) -> str:
        """32 hex digits."""
        return self._hash.hexdigest()[:32]


def _form(source: SourceSettings, names: Sequence[str]) -> Form:
    """Which columns are read, each once.

    Raises:
        SourceRefused: a column that the job names is not there, or two have one name.
    """
    where = f"source '{source.source_id}'"
    if doubled := sorted({name for name in names if list(names).count(name) > 1}):
        raise SourceRefused(
            f"{where}: two columns are called {doubled[0]}; give one another name in the query"
        )
    text = () if any(name in names for name in DIALOGUE_KEYS) else (source.text_field,)
    version = (source.version,) if source.version else ()
    for keyword, wanted in (
        ("key", source.key),
        ("version", version),
        ("columns", source.columns),
        ("text_field", text),
    ):
        if missing := [name for name in wanted if name not in names]:
            raise SourceRefused(
                f"{where}: {keyword}: there is no column '{missing[0]}'; there are {', '.join(names)}"
            )
    if source.columns:
        beside = (source.text_field, source.url_field, *(() if text else DIALOGUE_KEYS))
        chosen = (*source.key, *(n for n in beside if n in names), *version, *source.columns)
        read = tuple(dict.fromkeys(chosen))
    else:
        read = tuple(names)
    return Form(tuple(dict.fromkeys((*source.key, *version))) if version else read, read)
