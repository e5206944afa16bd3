"""``kind: s3``: objects below a prefix, each told by its key, size and ETag; nothing is read before fetch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dataflow_ops.dates import has_date, of_any_day, root_and_template
from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.outside import Bucket, Entry, Outside
from dataflow_ops.layers.ingest.sources.days import day_patterns
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.names import escape
from dataflow_ops.layers.ingest.sources.patterns import OTHER_DAY, Patterns
from dataflow_ops.layers.ingest.sources.roots import first_wild
from dataflow_ops.media import media_of
from dataflow_ops.source_settings import SourceSettings

SCHEME = "s3://"


@dataclass(frozen=True, slots=True)
class Root:
    """What a source's path means.

    Attributes:
        prefix: of every key, with a slash at its end unless it is empty; paths are relative to it.
        single: the only object's name, ``""`` for all below the prefix.
        pattern: pattern relative to the prefix, ``""`` if there is none.
        template: the same with ``{date}`` in it, where the path has one.
    """

    prefix: str
    single: str = ""
    pattern: str = ""
    template: str = ""


def bucket_of(source: SourceSettings) -> str:
    """The name of a source's bucket."""
    return source.path.removeprefix(SCHEME).partition("/")[0]


def root_in(source: SourceSettings, bucket: Bucket) -> Root:
    """Take a source's path apart. An object of that very name is taken, whatever characters it has.

    Raises:
        ConfigError: nothing lies there.
    """
    place = source.path.removeprefix(SCHEME).partition("/")[2]
    if has_date(place):
        before, template = root_and_template(place)
        parts = [part for part in before.split("/") if part != "."]
        wild = first_wild(parts)
        template = "/".join([*parts[wild:], template])
        return _there(source, bucket, Root(_folder(parts[:wild]), "", of_any_day(template), template))
    # Of all keys that begin so, the one that is no longer comes first.
    first = next(bucket.listed(place), None) if place else None
    if first is not None and first.key == place:
        folder, _, name = place.rpartition("/")
        return Root(f"{folder}/" if folder else "", name)
    parts = place.rstrip("/").split("/") if place else []
    wild = first_wild(parts)
    if wild < len(parts) and next(bucket.listed(f"{place.rstrip('/')}/"), None) is not None:
        wild = len(parts)
    return _there(source, bucket, Root(_folder(parts[:wild]), "", "/".join(parts[wild:])))


def list_objects(source: SourceSettings, left_out: LeftOut, outside: Outside) -> Iterator[SourceFile]:
    """Yield one file for each object that the path and the patterns take.

    An object whose name says nothing has no media type yet: fetch looks at its first bytes.

    Raises:
        ConfigError: nothing lies under that path.
        ObjectStoreAway: the store does not answer.
        ObjectStoreRefused: it lets nobody in, or there is no such bucket.
    """
    bucket = outside.bucket(bucket_of(source))
    root = root_in(source, bucket)
    if root.single:
        for entry in islice(bucket.listed(root.prefix + root.single), 1):
            yield _file(root.single, entry)
        return
    patterns = Patterns(source, root.pattern, root.template)
    for prefix in _prefixes(source, root):
        for entry in bucket.listed(prefix):
            path = entry.key[len(root.prefix) :]
            if any(map(patterns.is_hidden, path.split("/"))):
                left_out["hidden"] += 1
            elif reason := patterns.verdict(path):
                if reason != OTHER_DAY:
                    left_out[reason] += 1
            else:
                yield _file(path, entry)


def _file(path: str, entry: Entry) -> SourceFile:
    return SourceFile(escape(path), entry.size, etag=entry.etag, media_type=media_of(path).media_type)


def _prefixes(source: SourceSettings, root: Root) -> list[str]:
    """Where to look: the whole prefix, or each day's part of it, none twice."""
    texts = day_patterns(source, [root.template])
    if not texts:
        return [root.prefix]
    plain = {text[: first_wild(text)] for text in texts}
    kept = [text for text in plain if not any(text != other and text.startswith(other) for other in plain)]
    return sorted(root.prefix + text for text in kept)


def _folder(parts: list[str]) -> str:
    return "".join(f"{part}/" for part in parts)


def _there(source: SourceSettings, bucket: Bucket, root: Root) -> Root:
    """The root, if anything lies below it; a wrong name must not pass for an empty folder.

    Raises:
        ConfigError: nothing does.
    """
    if next(bucket.listed(root.prefix), None) is None and root.prefix:
        raise ConfigError(
            f"source '{source.source_id}': nothing lies under {SCHEME}{bucket_of(source)}/{root.prefix};"
            " is the path right?"
        )
    return root
