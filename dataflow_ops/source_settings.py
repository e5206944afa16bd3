"""One source of a job: where its documents come from, and how they are read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self
from urllib.parse import unquote

from pydantic import Field, field_validator, model_validator

from dataflow_ops.dates import check_template, has_date
from dataflow_ops.section import Section

BY_DAY = ("files", "jsonl", "parquet", "warc", "s3")
"""Kinds of sources that take ``{date}``."""
OF_TABLES = ("url", "table", "query", "key", "columns", "version", "range_rows")
"""Keys of ``kind: sql`` alone."""
_NOT_OF_TABLES = ("path", "include", "exclude", "id_field")
_PLACEHOLDER = re.compile(r"\$\{\w+\}|\$\w+")
_PASSWORD_IN_URL = re.compile(r"://[^:/]*:([^@]+)@")
_SECRET_IN_URL = re.compile(r"(?i)(?:password|passwd|pwd|token|secret)\s*=(?!\s*\$)")


class SourceSettings(Section):
    """One source of raw documents.

    Attributes:
        kind: how its files are read; ``files`` takes any parsable file, one document each.
        path: file, folder or glob; for ``http`` a text file with one URL a line; for ``s3``
            ``s3://BUCKET/PREFIX``. ``~`` and ``$NAME`` are replaced when the job is loaded; an unset name is
            an error.
        source_id: part of every document's identity; must be unique in the job.
        domain: what the mix counts it as.
        include: glob patterns relative to ``path`` (``**`` allowed); empty takes everything parsable.
        exclude: patterns left out.
        text_field: column or JSON key holding the text (``jsonl``, ``parquet``).
        id_field: column or JSON key holding the user's id.
        url_field: column or JSON key holding the URL.
        html_extractor: ``resiliparse`` (fast) or ``trafilatura`` (accurate, about 15 times slower).
        main_content: extract the main content of HTML only, without menus.
        late_days: an incremental run also takes the files of so many days before its own, where ``path`` or
            ``include`` hold ``{date}``.
        url: the database (``sql``), as SQLAlchemy writes it. ``${NAME}`` in it is replaced where the database
            is opened, and nowhere else: a password is never part of the job.
        table: table or view (``sql``), ``SCHEMA.NAME`` where it needs one.
        query: a SELECT instead of a table (``sql``).
        key: columns that tell its rows apart and by which they are read (``sql``).
        columns: what is read of a row beside key, text and version (``sql``); empty: every column.
        version: column that changes whenever its row does (``sql``): saves reading the texts to find out.
        range_rows: rows of one range of keys, on average (``sql``).
    """

    kind: Literal["files", "jsonl", "parquet", "warc", "git", "http", "s3", "sql"] = "files"
    path: str = ""
    source_id: str = Field(default="", pattern=r"^[A-Za-z0-9_.-]*$")
    domain: str = "web"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    text_field: str = "text"
    id_field: str = "id"
    url_field: str = "url"
    html_extractor: Literal["resiliparse", "trafilatura"] = "resiliparse"
    main_content: bool = True
    late_days: Annotated[int, Field(ge=0, le=366)] = 0
    url: str = ""
    table: str = ""
    query: str = ""
    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    version: str = ""
    range_rows: Annotated[int, Field(ge=1, le=1_000_000)] = 200

    @property
    def dated(self) -> bool:
        """Whether it lies in files by day."""
        return has_date(self.path) or any(map(has_date, self.include))

    @field_validator("key", "columns", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_told_where(self) -> Self:
        # By value: a run's own copy of the settings names every key.
        odd = [
            name for name, field in type(self).model_fields.items() if getattr(self, name) != field.default
        ]
        if self.kind == "sql":
            _check_table(self, odd)
        elif wrong := [name for name in odd if name in OF_TABLES]:
            raise ValueError(f"kind {self.kind} takes no {', '.join(wrong)}; kind sql does")
        elif not self.path:
            raise ValueError("path: say where its documents are")
        if self.kind == "s3" and not re.match(r"s3://[^/]", self.path):
            raise ValueError(f"path: kind s3 needs s3://BUCKET/PREFIX, not {self.path!r}")
        return self

    @model_validator(mode="after")
    def _days_can_be_told(self) -> Self:
        for text in (self.path, *self.include):
            check_template(text)
        undated = [pattern for pattern in self.include if not has_date(pattern)]
        if undated and len(undated) < len(self.include) and not has_date(self.path):
            raise ValueError(f"include: {undated[0]!r} has no {{date}}, as the other patterns have")
        if self.dated and self.kind not in BY_DAY:
            raise ValueError(f"kind {self.kind} takes no {{date}}; {', '.join(BY_DAY)} do")
        if self.late_days and not self.dated:
            raise ValueError("late_days says how many earlier days count, but no {date} stands in the path")
        return self

    @field_validator("path")
    @classmethod
    def _expanded(cls, value: str) -> str:
        path = os.path.expanduser(os.path.expandvars(value))
        if unset := re.search(r"\$\{?(\w+)", path):
            raise ValueError(f"the environment variable {unset.group(1)} is not set")
        return path


def _check_table(source: SourceSettings, given: Sequence[str]) -> None:
    """Refuse a source of ``kind: sql`` that lacks something. Never tells the URL: it may hold a password.

    Args:
        source: its settings.
        given: keys that have another value than their default.

    Raises:
        ValueError: says what is missing, or too much.
    """
    if wrong := [name for name in _NOT_OF_TABLES if name in given]:
        raise ValueError(
            f"kind sql takes no {', '.join(wrong)}; it has url, table or query, and key (which gives the id)"
        )
    if not source.url:
        raise ValueError(
            "url: kind sql needs the database: url: postgresql://reader:${PG_PASSWORD}@host/name"
        )
    if bool(source.table) == bool(source.query):
        raise ValueError("kind sql needs either a table or a query")
    if not all(source.key):
        raise ValueError("key: an empty name")
    if not source.key or len(set(source.key)) < len(source.key):
        raise ValueError("key: name the column, or the columns, that tell its rows apart: key: id")
    if any(map(has_date, (source.url, source.table, source.query))):
        raise ValueError("kind sql takes no {date}: a day takes the rows that changed")
    password = _PASSWORD_IN_URL.search(source.url)
    is_plain = password is not None and not _PLACEHOLDER.fullmatch(password[1])
    if is_plain or _SECRET_IN_URL.search(unquote(source.url)):
        raise ValueError(
            "url: a password stands in the job file; write ${NAME} in its place, and set the environment"
            " variable NAME where the job runs"
        )
