"""Failure rates of parsing by parser, host and media type: a template that changed shows here first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.observe.chunks import Chunks

MAX_HOSTS = 20_000
"""Hosts counted at a time; the rarest half is let go beyond it (a web crawl has millions)."""

_HOST = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@?#]*@)?(?P<host>[^/:?#]+)"


def failures(chunks: Chunks, top: int = 20) -> dict[str, list[dict[str, Any]]]:
    """Dead and rejected records of parse (and dead ones of fetch) against all records.

    Args:
        chunks: index of the run's outputs.
        top: rows per table.

    Returns:
        For ``parser``, ``media_type`` and ``host``: rows ``{"name", "failed", "rejected", "total"}``, most
        failed first; ``failed`` holds the dead and the ``rejected`` (they gave no text, or too much). Rejects
        name no parser and no media type; they count by host only.

    """
    failed: dict[str, Counter[str]] = {k: Counter() for k in ("parser", "media_type", "host")}
    good: dict[str, Counter[str]] = {k: Counter() for k in failed}
    refused: Counter[str] = Counter()
    for step in ("fetch", "parse"):
        for chunk in chunks.index(step, "dead"):
            dead = chunks.table(step, "dead", chunk, ("parser", "media_type", "host"))
            if dead is None:
                continue
            for name, counter in failed.items():
                _count(counter, dead[name])
            _trim(failed["host"])
    for chunk in chunks.index("parse", "rejects"):
        rejects = chunks.table("parse", "rejects", chunk, ("url",))
        if rejects is not None:
            hosts = _hosts(rejects["url"])
            _count(failed["host"], hosts)
            _count(refused, hosts)
            _trim(failed["host"])
            _trim(refused)
    suspects = pa.array(sorted(failed["host"]), pa.string())
    for chunk in chunks.index("parse", "text"):
        columns = ("parser", "media_type", *(("url",) if len(suspects) else ()))
        text = chunks.table("parse", "text", chunk, columns)
        if text is None:
            continue
        _count(good["parser"], text["parser"])
        _count(good["media_type"], text["media_type"])
        if len(suspects):
            hosts = _hosts(text["url"])
            _count(good["host"], hosts.filter(pc.is_in(hosts, value_set=suspects)))
    out = {}
    for name, counter in failed.items():
        rows = [
            {
                "name": key,
                "failed": counter[key],
                "rejected": min(refused[key], counter[key]) if name == "host" else 0,
                "total": counter[key] + good[name][key],
            }
            for key in ({*counter, *good[name]} if name != "host" else set(counter))
        ]
        rows.sort(key=lambda r: (-int(str(r["failed"])), -int(str(r["total"])), str(r["name"])))
        out[name] = rows[:top]
    return out


def _count(counter: Counter[str], column: Any) -> None:
    for pair in pc.value_counts(column).to_pylist():
        name = (pair["values"] or "").partition("@")[0]
        if name:
            counter[name] += pair["counts"]


def _hosts(urls: Any) -> Any:
    found = pc.extract_regex(urls, pattern=_HOST)
    return pc.utf8_lower(pc.struct_field(found, "host"))


def _trim(counter: Counter[str]) -> None:
    if len(counter) <= MAX_HOSTS:
        return
    kept = sorted(counter.items(), key=lambda item: (-item[1], item[0]))[: MAX_HOSTS // 2]
    counter.clear()
    counter.update(dict(kept))
