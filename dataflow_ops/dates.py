"""``{date}`` in the paths of sources: one day's name, or a pattern that takes every day's."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from dataflow_ops.errors import ConfigError

_FIELD = re.compile(r"\{date(?::([^{}]*))?\}")
_DEFAULT = "%Y-%m-%d"
_DIGITS = {"%Y": 4, "%m": 2, "%d": 2}
_DIRECTIVE = re.compile(r"%.?")
_WILD = frozenset("*?[]\\")


def has_date(text: str) -> bool:
    """Whether a path or pattern holds ``{date}``."""
    return "{date" in text


def check_template(text: str) -> None:
    """Refuse a ``{date}`` that can't be filled in.

    Raises:
        ValueError: its form isn't ``{date}`` or ``{date:FORMAT}`` with ``%Y``, ``%m`` and ``%d``.
    """
    if _FIELD.sub("", text).find("{date") >= 0:
        raise ValueError(f"{text!r}: write the day as {{date}}, or as {{date:%Y/%m/%d}} with your own format")
    for form in (found or _DEFAULT for found in _FIELD.findall(text)):
        if sorted(set(_DIRECTIVE.findall(form))) != sorted(_DIGITS) or _WILD & set(form):
            raise ValueError(f"{{date:{form}}}: the format holds %Y, %m and %d, and no pattern characters")


def root_and_template(path: str) -> tuple[str, str]:
    """Cut a path with ``{date}`` behind the last folder that names no day: ``("/data", "{date}/*.jsonl")``.

    The first part is the same for every day, and so is what lies behind the root of a file's identity.
    """
    before = path[: path.index("{date")]
    folder, _, _ = before.rpartition("/")
    rest = path[len(folder) :].removeprefix("/")
    if not folder:
        folder = "/" if path.startswith("/") else "."
    return folder, rest


def of_day(text: str, day: dt.date) -> str:
    """The text with one day filled in."""
    return _filled(text, lambda directive: day.strftime(directive) if directive != "%Y" else f"{day.year:04}")


def of_any_day(text: str) -> str:
    """The text as a pattern that takes every day: digits where the year, the month and the day stand."""
    return _filled(text, lambda directive: "[0-9]" * _DIGITS[directive])


def parse_day(text: str, where: str) -> dt.date:
    """An ISO date.

    Args:
        text: ``2026-11-30``.
        where: what to blame: ``--date``.

    Raises:
        ConfigError: it is none.
    """
    try:
        return dt.date.fromisoformat(text)
    except ValueError as e:
        raise ConfigError(f"{where} {text}: not a date; write it as 2026-11-30") from e


def days_until(last: dt.date, earlier: int) -> list[dt.date]:
    """A day and so many before it, ascending."""
    return [last - dt.timedelta(days=back) for back in range(earlier, -1, -1)]


def _filled(text: str, of: Callable[[str], str]) -> str:
    def field(match: re.Match[str]) -> str:
        return _DIRECTIVE.sub(lambda m: of(m[0]), match[1] or _DEFAULT)

    return _FIELD.sub(field, text)
