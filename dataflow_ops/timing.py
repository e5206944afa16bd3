"""Sections on time: when runs start, which day they take, how long their versions stay."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from dataflow_ops.section import Section

CRON_NAMES = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_CRON = re.compile(r"[\dA-Za-z*/,\-#?]+( [\dA-Za-z*/,\-#?]+){4}")


def check_zone(name: str) -> str:
    """A time zone's name, as it came.

    Raises:
        ValueError: this machine knows no such zone.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise ValueError("no time zone of this name; write it as Asia/Shanghai, Europe/Berlin or UTC") from e
    return name


class ScheduleSettings(Section):
    """When an orchestrator starts runs by itself: cron, or null for never. In ``dataset.timezone``."""

    full: str | None = "0 3 * * 0"
    incremental: str | None = "0 2 * * *"

    @field_validator("full", "incremental")
    @classmethod
    def _is_cron(cls, value: str | None) -> str | None:
        if value is not None and value not in CRON_NAMES and not _CRON.fullmatch(value):
            raise ValueError(
                f"not a cron expression; write minute, hour, day, month and weekday, like '0 3 * * 0',"
                f" or one of {', '.join(CRON_NAMES)}, or null"
            )
        return value


class ParentSettings(Section):
    """The version that an incremental run looks for duplicates in, and that its own version builds on.

    Attributes:
        version: its id.
        manifest_sha256: of its manifest, which answers for its index and for all that it builds on.
    """

    version: str
    manifest_sha256: str


class IntervalSettings(Section):
    """Which part of the sources an incremental run takes; kept with the run, never in a job file.

    Attributes:
        day: local date of the interval.
        base: version whose files are left out, of sources that have no ``{date}``; ``""``: there is none.
        ranges: into how many ranges the steps are cut: as in the base, whose index is cut so; empty: by the
            run's own input.
        parent: found when the run's turn comes, once and for all; None before that, and where there is none.
        settled: whether ``parent`` was looked for.
    """

    day: dt.date
    base: str = ""
    ranges: Mapping[str, int] = {}
    parent: ParentSettings | None = None
    settled: bool = False


class RetentionSettings(Section):
    """Which versions ``dataflow maintenance`` may remove; both null keeps every version.

    Attributes:
        versions: how many are kept, of full ones and of increments each.
        days: for how many days a version is kept at least.
    """

    versions: Annotated[int, Field(ge=1)] | None = None
    days: Annotated[float, Field(gt=0)] | None = None
