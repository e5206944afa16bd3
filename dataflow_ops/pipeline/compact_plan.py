"""Which shards and lineage files are put together: a pure function of what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataflow_ops.layers.export.columns import shard_name
from dataflow_ops.layers.export.content import Content
from dataflow_ops.layers.mix.allot import shard_count
from dataflow_ops.pipeline.compact_chain import SourceFile, group_name

SLACK = 1.25
"""A shard may grow so far beyond its share: the shards of one full version are not equal to the byte."""
LINEAGE_ROWS = 1_000_000
"""Most rows of a lineage file that was put together; about 100 MB."""


@dataclass(frozen=True, slots=True)
class Group:
    """One shard to be.

    Attributes:
        name: 16 hex digits.
        path: inside the version.
        sources: whole shards, in order: none is ever cut, so where an old one went is told by its name.
        content: of their living rows.
        taken_over: it is one shard as it is, to be linked and not written.
    """

    name: str
    path: str
    sources: tuple[SourceFile, ...]
    content: Content
    taken_over: bool


def shard_groups(
    shards: Sequence[SourceFile], contents: Mapping[str, Content], fmt: str, asked: int | None
) -> list[Group]:
    """Put neighbours of one partition together until they reach a shard's size.

    Args:
        shards: in the order of their rows.
        contents: living content by name of shard.
        fmt: exporter of the new version.
        asked: ``output.shards``.
    """
    total = sum(contents[file.name].text_bytes for file in shards)
    limit = SLACK * total / max(1, shard_count(total, asked))
    found: list[list[SourceFile]] = []
    held = 0
    for file in shards:
        size = contents[file.name].text_bytes
        if not contents[file.name].rows:
            continue
        if not found or found[-1][-1].folder != file.folder or held + size > limit:
            found.append([])
            held = 0
        found[-1].append(file)
        held += size
    groups = []
    for number, files in enumerate(found):
        content = sum((contents[file.name] for file in files), Content())
        whole = len(files) == 1 and content.rows == files[0].rows and files[0].format == fmt
        path = f"{shard_name(files[0].folder, number, len(found))}.{fmt}"
        groups.append(Group(group_name(files), path, tuple(files), content, whole))
    return groups


def lineage_groups(files: Sequence[SourceFile]) -> dict[str, list[SourceFile]]:
    """Lineage files put together up to :data:`LINEAGE_ROWS`, by name."""
    found: list[list[SourceFile]] = []
    held = 0
    for file in files:
        if not found or held + file.rows > LINEAGE_ROWS:
            found.append([])
            held = 0
        found[-1].append(file)
        held += file.rows
    return {group_name(group): group for group in found}


def moved(groups: Sequence[Group]) -> dict[tuple[int, str], str]:
    """``(place of the version, old path)`` -> new path, for every shard with living rows."""
    return {(file.place, file.path): group.path for group in groups for file in group.sources}
