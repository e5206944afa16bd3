"""Reading a file of settings: YAML and overrides into a pydantic model; errors say what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dataflow_ops.errors import ConfigError
from dataflow_ops.plain_yaml import MAX_BYTES, Unreadable, read_yaml

SHOWN = 400
"""Most characters of a wrong value in a message."""

_LOGINS = (("url",), ("base_url",), ("api_key_env",), ("secret_env",))
"""Keys whose values hold a login, or are mistaken for one."""

Place = tuple[int | str, ...]
Model = TypeVar("Model", bound=BaseModel)


def read_mapping(path: Path, what: str) -> dict[str, Any]:
    """The mapping in a YAML file.

    Args:
        path: of the file.
        what: it is, for the error: "a job file is a mapping with …".

    Raises:
        ConfigError: it can't be read, is not YAML, or no mapping.
    """
    try:
        raw = read_yaml(_text(path))
    except OSError as e:
        raise ConfigError(f"{path}: can't be read ({e.strerror})") from e
    except (Unreadable, UnicodeDecodeError) as e:
        raise ConfigError(f"{path}: not valid YAML: {e}") from e
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: {what}")
    return raw


def validated(
    model: type[Model],
    raw: Mapping[str, Any],
    where: str,
    overrides: Sequence[str] = (),
    *,
    named: Callable[[Place], str] | None = None,
    hidden: Sequence[str] = (),
) -> Model:
    """Validate a mapping.

    Args:
        model: of the settings.
        raw: as read from YAML.
        where: what to blame: the file.
        overrides: ``section.key=value`` pairs that were merged into it, blamed for what they hold.
        named: how a place is called; its keys with dots between when None.
        hidden: keys that are not for a person to name.

    Raises:
        ConfigError: names every wrong key, its value and what is allowed.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as e:
        lines: dict[str, list[str]] = {}
        for problem in e.errors():
            place = problem["loc"]
            message = re.sub(r"^Value error, ", "", problem["msg"])
            if problem["type"] == "extra_forbidden":
                known = sorted(set(_known_keys(model, place[:-1])) - set(hidden))
                message = _unknown(str(place[-1]), known)
            shown = "" if _is_quiet(problem) else f" (given: {_short(problem['input'])})"
            blamed = next((f"--set {p}" for p in overrides if _concerns(p, place)), where)
            called = (named or dotted)(place)
            lines.setdefault(blamed, []).append(f"  {called}: {message}{shown}")
        text = "\n".join(f"{blamed}:\n" + "\n".join(found) for blamed, found in lines.items())
        raise ConfigError(text) from e


def dotted(place: Place) -> str:
    """Keys with dots between; of nothing, the file."""
    return ".".join(map(str, place)) or "(file)"


def override(raw: dict[str, Any], pair: str) -> None:
    """Merge one ``section.key=value`` into a mapping; the value is read as YAML.

    Raises:
        ConfigError: it is written otherwise, or leads through something that is no section.
    """
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


def _text(path: Path) -> str:
    """A file's text; of one that is far too long only the start, which is refused for its length."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ConfigError(f"{path}: not a file")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return data.decode("utf-8", "strict" if len(data) <= MAX_BYTES else "replace")


def _is_quiet(problem: ErrorDetails) -> bool:
    """Whether what was given is not repeated: it is long, or may hold a login."""
    is_unknown = problem["type"] == "extra_forbidden"  # such as password, or api_key
    return is_unknown or isinstance(problem["input"], dict) or problem["loc"][-1:] in _LOGINS


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _concerns(pair: str, place: Place) -> bool:
    """Whether an override set what is wrong, or something around or inside it."""
    key = f"{pair.partition('=')[0].strip()}."
    wrong = "".join(f"{part}." for part in place)
    return bool(wrong) and (wrong.startswith(key) or key.startswith(wrong))


def _unknown(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"unknown key; {meant}known here: {', '.join(known)}"


def _known_keys(model: Any, location: Place) -> list[str]:
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
    return sorted(getattr(model, "model_fields", ()))


def _section(candidates: Sequence[Any]) -> Any:
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
