"""Reading a template file: YAML into :class:`~dataflow_ops.samples.augment.templates.Template`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataflow_ops.samples.augment.templates import Template
from dataflow_ops.settings_file import read_mapping, validated


def load_template(path: Path | str, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> Template:
    """Read a template.

    Args:
        path: YAML file.
        overrides: section (``endpoint``, ``limits``) -> key -> value instead of the file's.

    Raises:
        ConfigError: the file can't be read, or names every wrong key, its value and what is allowed.
    """
    path = Path(path)
    raw = read_mapping(path, "a template is a mapping with name, kind, messages, model and parameters")
    for section, values in (overrides or {}).items():
        there = raw.get(section) or {}
        raw[section] = {**there, **values} if isinstance(there, dict) else there
    return parse_template(raw, str(path))


def parse_template(raw: Mapping[str, Any], where: str) -> Template:
    """Validate a mapping as a template.

    Args:
        raw: as read from YAML.
        where: what to blame: the file.

    Raises:
        ConfigError: names every wrong key, its value and what is allowed.
    """
    return validated(Template, raw, where)
