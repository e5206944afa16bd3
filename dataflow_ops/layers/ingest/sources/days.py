"""One interval of a source: a few days' files, found without looking at those of all other days."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence

from dataflow_ops.dates import has_date, of_day
from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.sources.roots import WILD, Root
from dataflow_ops.source_settings import SourceSettings


class SourceOfDays(SourceSettings):
    """A source with ``{date}``, of which some days are listed. Paths and identity are the source's own."""

    days: tuple[dt.date, ...]


def of_days(source: SourceSettings, days: Sequence[dt.date]) -> SourceOfDays:
    """The source, cut down to these days."""
    return SourceOfDays.model_construct(**dict(source), days=tuple(days))


def day_patterns(source: SourceSettings, templates: Sequence[str]) -> list[str]:
    """The templates that hold ``{date}``, for each day that is listed; none where all days are."""
    if not isinstance(source, SourceOfDays):
        return []
    return [of_day(text, day) for text in templates if has_date(text) for day in source.days]


def starts(source: SourceSettings, root: Root, is_hidden: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Where to begin walking: ``(path below the root, with a slash at its end; folder)``.

    The root itself, but for an interval of a source whose path holds ``{date}``: there each day's own
    folder, as far as no pattern, link or hidden name comes in between. A day without a folder has no start.

    Raises:
        ConfigError: a file lies where a day's folder should be.
    """
    folder = os.fspath(root.folder)
    templates = day_patterns(source, [root.template])
    if not templates:
        yield "", folder
        return
    found = {_deepest(source, folder, text.split("/"), is_hidden) for text in templates}
    bases = sorted(base for base in found if base is not None)
    for base in bases:
        if not any(base != other and base.startswith(other) for other in bases):
            yield base, os.path.join(folder, base) if base else folder


def _deepest(
    source: SourceSettings, folder: str, parts: Sequence[str], is_hidden: Callable[[str], bool]
) -> str | None:
    base = ""
    for i, part in enumerate(parts):
        path = os.path.join(folder, base, part)
        if WILD & set(part) or is_hidden(part) or os.path.islink(path):
            return base
        if not os.path.isdir(path):
            # The last name may be a file's; one without a suffix is none that any parser takes.
            named = i + 1 == len(parts) and (source.kind != "files" or "." in part)
            if os.path.exists(path) and not named:
                raise ConfigError(
                    f"source '{source.source_id}': {path} is a file; the day's files belong into a folder"
                )
            return base if os.path.exists(path) else None
        base = f"{base}{part}/"
    return base
