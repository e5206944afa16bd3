"""Reading a job file: YAML and overrides into :class:`~dataflow_ops.settings.JobSettings`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from dataflow_ops.errors import ConfigError
from dataflow_ops.settings import JobSettings, SourceSettings


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
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ConfigError(f"{path}: can't be read ({e.strerror})") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path}: not valid YAML: {e}") from e
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: a job file is a mapping with at least 'dataset: {{id: …}}'")
    for pair in overrides:
        _override(raw, pair)
    if sources:
        raw["sources"] = [*(raw.get("sources") or []), *(s.model_dump(exclude_unset=True) for s in sources)]
    return parse_job(raw, str(path))


def parse_job(raw: Mapping[str, Any], where: str = "job") -> JobSettings:
    """Validate a mapping as a job.

    Raises:
        ConfigError: names every wrong key, its value and what is allowed.
    """
    try:
        return JobSettings.model_validate(raw)
    except ValidationError as e:
        lines = []
        for problem in e.errors():
            key = ".".join(str(part) for part in problem["loc"]) or "(file)"
            message = re.sub(r"^Value error, ", "", problem["msg"])
            if problem["type"] == "extra_forbidden":
                message = f"unknown key; known here: {', '.join(_known_keys(problem['loc'][:-1]))}"
            shown = "" if isinstance(problem["input"], dict) else f" (given: {problem['input']!r})"
            lines.append(f"  {key}: {message}{shown}")
        raise ConfigError(f"{where}:\n" + "\n".join(lines)) from e


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    model: Any = JobSettings
    for part in location:
        if isinstance(part, int):
            continue
        field = getattr(model, "model_fields", {}).get(part)
        candidates = [field.annotation, *getattr(field.annotation, "__args__", ())] if field else []
        model = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if model is None:
            return []
    return sorted(model.model_fields)


def _override(raw: dict[str, Any], pair: str) -> None:
    key, sep, value = pair.partition("=")
    if not sep or not key:
        raise ConfigError(f"--set {pair!r}: write it as section.key=value")
    target = raw
    *parents, last = key.strip().split(".")
    # A rule name may itself hold a dot (zlib_ratio.code).
    if parents[:3] == ["clean", "quality_rules", "rules"] and len(parents) > 4:
        parents = [*parents[:3], ".".join(parents[3:])]
    for part in parents:
        if part not in target or target[part] is None:
            target[part] = {}
        target = target[part]
        if not isinstance(target, dict):
            raise ConfigError(f"--set {pair!r}: '{part}' is not a section")
    try:
        target[last] = yaml.safe_load(value)
    except yaml.YAMLError as e:
        raise ConfigError(f"--set {pair!r}: the value is not YAML: {e}") from e
