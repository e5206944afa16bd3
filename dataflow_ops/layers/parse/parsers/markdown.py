"""Markdown: stays Markdown; front matter goes to the metadata, an open code fence is closed."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

import yaml

from dataflow_ops.layers.parse.encoding import decode
from dataflow_ops.layers.parse.parsers.base import Hints, ParsedDocument, Parser

_FRONT_YAML: Final = re.compile(
    r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_FRONT_TOML: Final = re.compile(
    r"\A\+\+\+[ \t]*\r?\n(.*?)^\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_KEY: Final = re.compile(r"^[\w-]+[ \t]*:", re.MULTILINE)
_FENCE: Final = re.compile(r"^(?:[ \t]*(?:>|[-*+]|\d+[.)])(?=[ \t]))*[ \t]*(`{3,}|~{3,})(.*)$")
_HEADING: Final = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)
_MAX_FRONT: Final = 64 << 10
"""Characters of front matter looked at; a longer block is text."""


def parse_markdown(data: bytes, hints: Hints) -> ParsedDocument:
    """Decode, take the front matter out, close the fence.

    Raises:
        UndecodableText: no encoding gives readable text.
    """
    text, encoding = decode(data, (hints.charset,) if hints.charset else ())
    metadata, text = front_matter(text)
    text, closed = close_fence(text)
    title = metadata.get("title")
    if not isinstance(title, str) or not title:
        heading = _HEADING.search(text)
        title = heading.group(1).strip(" \t\r#") if heading else ""
    return ParsedDocument(text, title, metadata, ("fence",) if closed else (), encoding)


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Split YAML (``---``) or TOML (``+++``) front matter off.

    A block that looks like front matter but does not parse, or uses YAML aliases (which can expand
    without bound), is kept as a string under ``front_matter``. A rule line at the top is no front matter.

    Returns:
        ``(metadata, remaining text)``.
    """
    if text.startswith("---"):
        match, load = _FRONT_YAML.match(text, 0, _MAX_FRONT), _load_yaml
    elif text.startswith("+++"):
        match, load = _FRONT_TOML.match(text, 0, _MAX_FRONT), _load_toml
    else:
        return {}, text
    if match is None:
        return {}, text
    block = match.group(1)
    found = load(block)
    if found is None:
        if not _KEY.search(block):
            return {}, text
        found = {"front_matter": block}
    return found, text[match.end() :].lstrip("\r\n")


def _load_yaml(block: str) -> dict[str, Any] | None:
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(block, Loader=yaml.SafeLoader)):
            return None
        value = yaml.load(block, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if value is None:
        return {}
    return {str(k): v for k, v in value.items()} if isinstance(value, dict) else None


def _load_toml(block: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(block.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def close_fence(text: str) -> tuple[str, bool]:
    """Close a code fence left open at the end (CommonMark 0.31, section 4.5, and inside lists and quotes)."""
    if "```" not in text and "~~~" not in text:
        return text, False
    fence = ""
    for line in text.split("\n"):
        if "```" not in line and "~~~" not in line:
            continue
        match = _FENCE.match(line)
        if match is None:
            continue
        mark, info = match.groups()
        if not fence:
            if mark[0] == "~" or "`" not in info:
                fence = mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not info.strip():
            fence = ""
    if not fence:
        return text, False
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}\n", True


PARSER: Final = Parser("markdown", 1, parse_markdown, libraries=("pyyaml",))
