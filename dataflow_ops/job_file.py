"""Reading a job file: YAML and overrides into :class:`~dataflow_ops.settings.JobSettings`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from dataflow_ops.errors import ConfigError
from dataflow_ops.plain_yaml import MAX_BYTES, Unreadable, read_yaml
from dataflow_ops.settings import JobSettings, SourceSettings

OF_RUNS = "interval"
"""The section that a run adds to its own copy of the settings."""
SHOWN = 400
"""Most characters of a wrong value in a message."""


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
        raw = read_yaml(_text(path))
    except OSError as e:
        raise ConfigError(f"{path}: can't be read ({e.strerror})") from e
    except (Unreadable, UnicodeDecodeError) as e:
        raise ConfigError(f"{path}: not valid YAML: {e}") from e
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: a job file is a mapping with at least 'dataset: {{id: …}}'")
    for pair in overrides:
        _override(raw, pair)
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


def _text(path: Path) -> str:
    """A file's text; of one that is far too long only the start, which is refused for its length."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ConfigError(f"{path}: not a file")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return data.decode("utf-8", "strict" if len(data) <= MAX_BYTES else "replace")


def parse_job(raw: Mapping[str, Any], where: str = "job", overrides: Sequence[str] = ()) -> JobSettings:
    """Validate a mapping as a job.

    Args:
        raw: as read from YAML.
        where: what to blame: the file.
        overrides: ``section.key=value`` pairs that were merged into it, blamed for what they hold.

    Raises:
        ConfigError: names every wrong key, its value and what is allowed.
    """
    try:
        return JobSettings.model_validate(raw)
    except ValidationError as e:
        lines: dict[str, list[str]] = {}
        for problem in e.errors():
            place = problem["loc"]
            message = re.sub(r"^Value error, ", "", problem["msg"])
            if problem["type"] == "extra_forbidden":
                message = _unknown(str(place[-1]), _known_keys(place[:-1]))
            shown = "" if isinstance(problem["input"], dict) else f" (given: {_short(problem['input'])})"
            blamed = next((f"--set {p}" for p in overrides if _concerns(p, place)), where)
            lines.setdefault(blamed, []).append(f"  {_named(place, raw)}: {message}{shown}")
        text = "\n".join(f"{blamed}:\n" + "\n".join(found) for blamed, found in lines.items())
        raise ConfigError(text) from e


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _concerns(pair: str, place: tuple[int | str, ...]) -> bool:
    """Whether an override set what is wrong, or something around or inside it."""
    key = f"{pair.partition('=')[0].strip()}."
    wrong = "".join(f"{part}." for part in place)
    return bool(wrong) and (wrong.startswith(key) or key.startswith(wrong))


def _named(place: tuple[int | str, ...], raw: Mapping[str, Any]) -> str:
    """The key; a source by its id, where it has one, because nobody counts them from 0."""
    if len(place) > 1 and place[0] == "sources" and isinstance(place[1], int):
        source = raw["sources"][place[1]]
        known = source.get("source_id") or source.get("path") if isinstance(source, Mapping) else None
        name = f"source '{known}'" if known else f"source number {place[1] + 1}"
        return " ".join([name, ".".join(map(str, place[2:]))]).strip()
    return ".".join(map(str, place)) or "(file)"


def _unknown(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"unknown key; {meant}known here: {', '.join(known)}"


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    model: Any = JobSettings
    for part in location:
        if isinstance(part, int) or model is None:
            continue
        fields = getattr(model, "model_fields", None)
        if fields is None:  # a mapping by name: the part is one of its names
            model = _section(get_args(model))
            continue
        annotation = fields[part].annotation if part in fields else None
        model = (
            annotation if get_origin(annotation) is Mapping else _section((annotation, *get_args(annotation)))
        )
    return sorted(set(getattr(model, "model_fields", ())) - {OF_RUNS})


def _section(candidates: Sequence[Any]) -> Any:
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


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
        target[last] = read_yaml(value)
    except Unreadable as e:
        raise ConfigError(f"--set {pair!r}: the value is not YAML: {e}") from e
