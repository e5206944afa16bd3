"""Where is this in our data? By document id, URL or path, or a pasted text, over current versions."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any, Literal

from dataflow_ops.console.said import fault
from dataflow_ops.errors import ConfigError
from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.observe.ids import full_id, is_id
from dataflow_ops.pipeline import find
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.probe import probe
from dataflow_ops.pipeline.version_reader import OpenVersion, open_version
from dataflow_ops.pipeline.version_states import PUBLISHED
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore

By = Literal["id", "url", "text"]

LIMIT = 50
"""Documents shown at most."""
INCREMENTS = 31
"""Increments newer than the current version that are looked into."""
SNIPPET = 300
"""Characters of a text that are shown."""
MAX_QUERY = 2_000_000
"""Characters of a pasted text that are looked for."""

_STATUS = {"exported": "kept", "rejected": "removed", "duplicate": "removed", "not_sampled": "not_sampled"}
_LAYERS = {"parse": "parse", "filter": "filter", "confirm": "dedup", "score": "score", "label": "mix"}


def kind_of(query: str) -> By:
    """What a query is: an id (6 hex digits or more), a URL or path without white space, else a text."""
    text = query.strip()
    if is_id(text) and len(text) >= 6:
        return "id"
    one_word = len(text.split()) == 1 and len(text) < 2000
    if one_word and ("://" in text or text.startswith("www.") or "/" in text or _is_file_name(text)):
        return "url"
    return "text"


def search(
    home: Home,
    state: StateStore,
    query: str,
    *,
    by: str = "auto",
    dataset: str | None = None,
    version: str | None = None,
    with_text: bool | Callable[[str], bool] = True,
    readable: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """Look for something in each data set: in its current version with those below it, and in the increments
    published since.

    Args:
        home: where they are.
        state: open state store.
        query: id or the start of one, URL or path, or a text.
        by: ``auto``, ``id``, ``url`` or ``text``.
        dataset: only this data set.
        version: this version instead of the current one; with ``dataset``.
        with_text: whether snippets may be shown, or a function that says so of a data set.
        readable: which data sets may be looked into; all where None.

    Returns:
        ``by, query, results, complete, searched, cli``.

    Raises:
        ConfigError: nothing was asked for, or ``by`` is unknown, or a short or broken id was given.
    """
    query = query.encode("utf-8", "replace").decode().strip()
    if not query:
        raise fault(ConfigError, "query_empty")
    if len(query) > MAX_QUERY:
        raise fault(ConfigError, "query_long", length=len(query), most=MAX_QUERY)
    if by not in ("auto", "id", "url", "text"):
        raise ConfigError(f"by={by}: use auto, id, url or text")
    how: By = kind_of(query) if by == "auto" else by  # type: ignore[assignment]
    results: list[dict[str, Any]] = []
    chunks = versions = 0
    complete = True
    for opened in _versions(home, state, dataset, version, readable):
        found = _find(opened, how, query)
        show = with_text(opened.record.dataset) if callable(with_text) else with_text
        results += _rows(opened, found, show)
        chunks, versions, complete = chunks + found.chunks, versions + 1, complete and found.complete
    results.sort(key=lambda r: (not r["exact"], -(r["similarity"] or 0.0), r["dataset"], r["doc_id"]))
    key = fold_text(query)
    return {
        "by": how,
        "query": {
            "sha1": sha1(key.encode(), usedforsecurity=False).hexdigest() if how == "text" else None,
            "folded_length": len(key) if how == "text" else None,
        },
        "results": results[:LIMIT],
        "complete": complete and len(results) <= LIMIT,
        "searched": {"versions": versions, "chunks": chunks},
        "cli": command(query, how, dataset),
    }


def search_home(home_path: Path, query: str, **options: Any) -> dict[str, Any]:
    """:func:`search` for a home folder."""
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        return search(home, state, query, **options)


def command(query: str, how: By, dataset: str | None) -> str:
    """The line that does the same; a text stands in a file there."""
    of = f" --dataset {dataset}" if dataset else ""
    what = "--file TEXT_FILE" if how == "text" else shlex.quote(query)
    return f"dataflow find {what}{of}"


def urls_of(query: str) -> list[str]:
    """A URL as it may have been written: either scheme, with and without a fragment or last slash."""
    bare = query.strip().partition("#")[0]
    scheme, sep, rest = bare.partition("://")
    rest = rest if sep else scheme
    schemes = ("https://", "http://", "") if sep or rest.startswith("www.") else ("",)
    names = dict.fromkeys([rest, rest.removesuffix("/"), rest.rstrip("/") + "/"])
    return list(dict.fromkeys([query.strip(), *(scheme + name for scheme in schemes for name in names)]))


def _versions(
    home: Home,
    state: StateStore,
    dataset: str | None,
    version: str | None,
    readable: Callable[[str], bool] | None,
) -> Iterable[OpenVersion]:
    if version is not None:
        opened = open_version(home, state, version, dataset)
        if readable is None or readable(opened.record.dataset):
            yield from opened.parts
        return
    for name in sorted({v.dataset for v in state.versions(dataset)}):
        if readable is None or readable(name):
            opened = open_version(home, state, None, name)
            yield from opened.parts
            for record in _increments(state.versions(name), opened.record):
                yield open_version(home, state, record.version_id, name)


def _increments(versions: Sequence[VersionRecord], base: VersionRecord) -> list[VersionRecord]:
    """What came since the current version: published increments that are newer, the newest ones."""
    return [
        v
        for v in versions
        if v.version_id != base.version_id
        and v.is_increment
        and v.state == PUBLISHED
        and v.created_at > base.created_at
    ][:INCREMENTS]


def _find(version: OpenVersion, how: By, query: str) -> find.Found:
    if how == "id":
        return find.by_id(version, full_id(query), LIMIT)
    if how == "url":
        return find.by_url(version, urls_of(query), LIMIT)
    return find.by_text(version, probe(query, version.settings, version.steps), LIMIT)


def _rows(version: OpenVersion, found: find.Found, with_text: bool) -> list[dict[str, Any]]:
    import pyarrow.compute as pc

    domains = {s["source_id"]: s["domain"] for s in version.manifest["job"]["sources"]}
    out = []
    for chunk, rows in sorted(found.rows.items()):
        at = sorted(rows)
        fates = version.reader.read_rows(version.lineage[chunk], at)
        replaced = pc.is_in(fates["doc_id"], value_set=version.hidden).to_pylist()
        at = [row for row, gone in zip(at, replaced, strict=True) if not gone]
        fates = [fate for fate, gone in zip(fates.to_pylist(), replaced, strict=True) if not gone]
        labels = _labels(version, chunk, [fate["doc_id"] for fate in fates])
        texts = _texts(version, chunk, at, found) if with_text else {}
        for row, fate in zip(at, fates, strict=True):
            label = labels.get(fate["doc_id"], {})
            out.append(
                {
                    "dataset": version.record.dataset,
                    "version": version.holder,
                    "doc_id": fate["doc_id"].hex(),
                    "source": fate["source_id"],
                    "path": fate["path"],
                    "url": fate["url"] or "",
                    "domain": label.get("domain") or domains.get(fate["source_id"], ""),
                    "language": label.get("language"),
                    "status": _STATUS[fate["fate"]],
                    "rule": fate["rule"] or None,
                    "layer": None if fate["fate"] == "exported" else _LAYERS.get(fate["step"], "mix"),
                    "survivor": fate["survivor_id"].hex() if fate["survivor_id"] else None,
                    "similarity": found.similar.get((chunk, row)),
                    "enough": version.settings.dedup.verify.min_similarity,
                    "exact": (chunk, row) in found.exact,
                    "shard": version.shard(fate["shard"]) or None,
                    "snippet": _snippet(texts.get(row)),
                }
            )
    return out + [_dead(version, row, domains) for row in found.dead]


def _dead(version: OpenVersion, row: Mapping[str, Any], domains: Mapping[str, str]) -> dict[str, Any]:
    return {
        "dataset": version.record.dataset,
        "version": version.record.version_id,
        "doc_id": row["doc_id"].hex() if row["doc_id"] else "",
        "source": row["source_id"],
        "path": row["path"],
        "url": "",
        "domain": domains.get(row["source_id"], ""),
        "language": None,
        "status": "dead",
        "rule": row["error"],
        "layer": "parse" if row["step"] == "parse" else row["step"],
        "survivor": None,
        "similarity": None,
        "enough": None,
        "exact": False,
        "shard": None,
        "snippet": None,
    }


def _labels(version: OpenVersion, chunk: str, ids: Sequence[bytes]) -> dict[bytes, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not version.has("label", "labels"):
        return {}
    output = dict(version.reader.outputs("label", "labels")).get(chunk)
    if output is None or not output.rows:
        return {}
    table = version.reader.read(output, columns=("doc_id", "domain", "language"))
    mine = table.filter(pc.is_in(table["doc_id"], value_set=pa.array(ids, pa.binary(16))))
    return {row["doc_id"]: row for row in mine.to_pylist()}


def _texts(version: OpenVersion, chunk: str, rows: Sequence[int], found: find.Found) -> dict[int, str]:
    """Lineage row -> text; the first few only, as each may cost a row group."""
    known = {row: found.texts[chunk, row] for row in rows if (chunk, row) in found.texts}
    text = dict(version.reader.outputs("parse", "text")).get(chunk)
    if text is None:
        return known
    offset = version.lineage[chunk].rows - text.rows
    asked = [(chunk, row - offset) for row in rows[: find.CANDIDATES] if row not in known]
    return known | {row + offset: body for (_, row), body in find.read_texts(version, asked).items()}


def _snippet(text: str | None) -> str | None:
    return None if text is None else " ".join(text[: 4 * SNIPPET].split())[:SNIPPET]


def _is_file_name(text: str) -> bool:
    stem, dot, suffix = text.rpartition(".")
    return bool(stem and dot) and suffix.isalnum() and len(suffix) <= 8 and not suffix.isdecimal()
