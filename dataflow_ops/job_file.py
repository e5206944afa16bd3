"""Reading a job file: YAML and overrides into :class:`~dataflow_ops.settings.JobSettings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from dataflow_ops.errors import ConfigError
from dataflow_ops.settings import JobSettings
from dataflow_ops.settings_file import Place, dotted, override, read_mapping, validated
from dataflow_ops.source_settings import SourceSettings

OF_RUNS = "interval"
"""The section that a run adds to its own copy of the settings."""


def load_job(
    path: Path | str, overrides: Sequence[str] = (), sources: Sequence[SourceSettings] = ()
) -> JobSettings:
    """Read a job file.

    Args:
        path: YAML file.
        overrides: ``section.key=value`` pairs; values are read as YAML. Merged before anything is hashed.
        sources: sources added to those of the file.

    Raises:
        ConfigError: the file is missing, is not YAML, or a key or value is not allowed.
    """
    path = Path(path)
    raw = read_mapping(path, "a job file is a mapping with at least 'dataset: {id: …}'")
    for pair in overrides:
        override(raw, pair)
    if OF_RUNS in raw:
        raise ConfigError(
            f"{path}: '{OF_RUNS}' is written by a run, not by a job file; the day is given with --date"
        )
    if sources and (raw.get("mixing") or {}).get("sampling"):
        for source in sources:
            if "domain" not in source.model_fields_set:
                raise ConfigError(
                    f"--source {source.path}: the job mixes by domain (mixing.sampling), so say which domain"
                    f" it is: --source {quote(f'{source.kind}:{source.path}@DOMAIN')}, with one of"
                    f" {', '.join(map(str, raw['mixing']['sampling']))}"
                )
    if sources:
        raw["sources"] = [*(raw.get("sources") or []), *(s.model_dump(exclude_unset=True) for s in sources)]
    return parse_job(raw, str(path), overrides)


def parse_job(raw: Mapping[str, Any], where: str = "job", overrides: Sequence[str] = ()) -> JobSettings:
    """Validate a mapping as a job.

    Args:
        raw: as read from YAML.
        where: what to blame: the file.
        overrides: ``section.key=value`` pairs that were merged into it, blamed for what they hold.

    Raises:
        ConfigError: names every wrong key, its value and what is allowed.
    """
    return validated(
        JobSettings, raw, where, overrides, named=lambda place: _named(place, raw), hidden=[OF_RUNS]
    )


def _named(place: Place, raw: Mapping[str, Any]) -> str:
    """The key; a source by its id, where it has one, because nobody counts them from 0."""
    if len(place) > 1 and place[0] == "sources" and isinstance(place[1], int):
        source = raw["sources"][place[1]]
        known = source.get("source_id") or source.get("path") if isinstance(source, Mapping) else None
        name = f"source '{known}'" if known else f"source number {place[1] + 1}"
        return " ".join([name, ".".join(map(str, place[2:]))]).strip()
    return dotted(place)
