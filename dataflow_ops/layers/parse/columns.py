"""Structured records column by column: what needs no repair is never taken apart into Python values.

A batch of rows is looked at as a whole. The rows whose text is stored just as it lies are made here, all at
once; the others go the way of single records. Which way a row goes never shows in what is stored.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops import schema
from dataflow_ops.kernels import stored
from dataflow_ops.kernels.arrow import I64, U8, is_text, string_buffers
from dataflow_ops.layers.parse.finish import Limits
from dataflow_ops.layers.parse.jsontext import to_json
from dataflow_ops.layers.parse.normalise import TextRules
from dataflow_ops.layers.parse.parsers import record as records_parser
from dataflow_ops.layers.parse.records import RowBatch, SourceFile

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Made:
    """Documents of a batch.

    Attributes:
        whole: which rows are made.
        documents: ``schema.DOCUMENTS``, one row for each row of the batch; only the whole ones count.
        chars: characters of each text.
    """

    whole: Bools
    documents: pa.Table
    chars: I64


def documents(batch: RowBatch, file: SourceFile, rules: TextRules, limits: Limits) -> Made | None:
    """Make what can be made of a batch; None where most records must be looked at by themselves."""
    rows, options = batch.rows, file.options
    if rules.lower_case:
        return None
    text = rows.column(options.text_field).cast(pa.large_string())
    data, offsets = string_buffers(pc.fill_null(text, ""))
    flags, chars = stored.scan(data, offsets)
    whole = _is_stored_as_is(data, offsets, flags, chars, rules, limits)
    if 2 * int(whole.sum()) < len(whole):
        return None
    names = set(rows.schema.names)
    used = {options.text_field, options.id_field, options.url_field}
    try:
        metadata = _metadata(rows, sorted(names - used))
        record_ids = _as_text(rows, options.id_field)
        urls = _clean(_constant(file.url, rows.num_rows)) if file.url else _as_text(rows, options.url_field)
        title = _title(rows, used)
    except _NeedsRepairError:
        return None
    positions = np.arange(rows.num_rows, dtype=np.int64) + batch.position
    identities = [schema.doc_id(file.source_id, file.path, p) for p in positions.tolist()]
    given: dict[str, Any] = {
        "doc_id": pa.array(identities, schema.DOC_ID),
        "text": text,
        "source_id": file.source_id,
        "path": file.path,
        "position": pa.array(positions),
        "url": urls,
        "source_record_id": record_ids,
        "title": title,
        "media_type": file.media_type,
        "parser": f"{records_parser.NAME}@{records_parser.VERSION}",
        "raw_chars": pa.array(np.minimum(chars, np.iinfo(np.int32).max).astype(np.int32)),
        "metadata": metadata,
    }
    columns = []
    for field in schema.DOCUMENTS:
        value = given.get(field.name, "" if is_text(field.type) else 0)
        is_column = isinstance(value, pa.Array)
        columns.append(value if is_column else pa.repeat(pa.scalar(value, field.type), rows.num_rows))
    return Made(whole, pa.Table.from_arrays(columns, schema=schema.DOCUMENTS), chars)


class _NeedsRepairError(Exception):
    """A value beside the text is stored otherwise than it lies."""


def _is_stored_as_is(
    data: U8, offsets: I64, flags: U8, chars: I64, rules: TextRules, limits: Limits
) -> Bools:
    """Rows whose text :func:`~dataflow_ops.layers.parse.normalise.normalise` would leave as it is."""
    whole: Bools = (chars > 0) & (chars <= limits.max_text_len) & (flags & stored.ODD == 0)
    first = np.zeros(len(chars), np.uint8)
    first[whole] = data[offsets[:-1][whole]]
    # No white space begins so: the text is not blank.
    graphic = ((first > 0x20) & (first < 0x7F)) | (first >= 0xE4)
    loose = (flags & stored.LOOSE > 0) & rules.nfc
    for i in np.flatnonzero(whole & (~graphic | loose)).tolist():
        value = data[offsets[i] : offsets[i + 1]].tobytes().decode("utf-8")
        normal = not loose[i] or unicodedata.is_normalized("NFC", value)
        whole[i] = normal and not value.isspace()
    return whole


def _metadata(rows: Any, names: list[str]) -> Any:
    """The JSON object of each row's other columns, as :func:`~.jsontext.to_json` writes it."""
    if not names:
        return _constant("", rows.num_rows)
    parts: list[Any] = []
    for i, name in enumerate(names):
        parts += [("," if i else "{") + _json(name) + ":", _json_column(rows.column(name))]
    return pc.binary_join_element_wise(*parts, "}", "")


def _json_column(column: Any) -> Any:
    if pa.types.is_null(column.type):
        return _constant("null", len(column))
    if pa.types.is_integer(column.type):
        return pc.fill_null(column.cast(pa.string()), "null")
    coded = column.dictionary_encode(null_encoding="encode")
    written = pa.array([_json(value) for value in coded.dictionary.to_pylist()], pa.string())
    return written.take(coded.indices)


def _json(value: object) -> str:
    text, marks = to_json(value)
    if marks:
        raise _NeedsRepairError
    return text


def _as_text(rows: Any, name: str) -> Any:
    """A column of ids or URLs, as :func:`~.record.as_text` gives them; ``""`` where there is none."""
    if name not in rows.schema.names:
        return _constant("", rows.num_rows)
    column = rows.column(name)
    if not is_text(column.type):
        return _without_null(_json_column(column), column)
    return _clean(column)


def _title(rows: Any, used: set[str]) -> Any:
    name = "title"
    if name in used or name not in rows.schema.names or not is_text(rows.schema.field(name).type):
        return _constant("", rows.num_rows)
    return _clean(rows.column(name))


def _clean(column: Any) -> Any:
    if pc.any(pc.match_substring(column, "\x00")).as_py():
        raise _NeedsRepairError
    return pc.fill_null(column.cast(pa.string()), "")


def _without_null(texts: Any, column: Any) -> Any:
    return pc.if_else(column.is_valid(), texts, "")


def _constant(text: str, n: int) -> Any:
    return pa.repeat(pa.scalar(text, pa.string()), n)
