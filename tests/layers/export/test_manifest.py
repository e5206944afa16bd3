from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.job_file import load_job
from dataflow_ops.layers.export.manifest import (
    FileEntry,
    SourceEntry,
    StepEntry,
    build_manifest,
    canonical_json,
    files_digest,
    job_settings,
)
from dataflow_ops.values import Counts
from tests.layers.export.flow import job

CASES = Path(__file__).parents[2] / "cases"


def shard(path: str, rows: int, cells: list[list[Any]]) -> FileEntry:
    tokens = sum(c[3] for c in cells)
    return FileEntry(
        path, rows, 10, "0" * 64, {"tokens": tokens, "documents": rows, "partition": {}, "cells": cells}
    )


def build(**more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "settings": job(
            mixing={"tokenizer": "/secret/place/tokenizer.json"},
            filter_model={"endpoint": "http://inner:1/x"},
        ),
        "steps": [StepEntry("parse", "parse", "f" * 64, Counts(3, 2, 0, 1, {}, 2), {"b": 1, "a": 2})],
        "sources": [
            SourceEntry("b", "files", "web", 1, 2, "1" * 64),
            SourceEntry("a", "files", "web", 1, 2, "1" * 64),
        ],
        "shards": [
            shard("y", 2, [["web", "en", 2, 20]]),
            shard("x", 3, [["code", "code:c", 1, 5], ["web", "zh", 2, 9]]),
        ],
        "lineage": [FileEntry("lineage/b", 1, 1, "2" * 64), FileEntry("lineage/a", 1, 1, "2" * 64)],
        "tokenizer": {"name": "estimate", "estimated": True},
        "rules": {"zlib": 1},
        "parsers": {"html": "1"},
        "domains": [],
        "partitions": [],
    }
    return build_manifest(**{**given, **more})


def test_the_order_of_files_and_sources_does_not_matter() -> None:
    made = build()
    shards = [
        shard("x", 3, [["code", "code:c", 1, 5], ["web", "zh", 2, 9]]),
        shard("y", 2, [["web", "en", 2, 20]]),
    ]
    other = build(
        shards=shards,
        sources=[SourceEntry(s, "files", "web", 1, 2, "1" * 64) for s in "ab"],
        lineage=[FileEntry(f"lineage/{n}", 1, 1, "2" * 64) for n in "ab"],
        rules=dict([("zlib", 1)]),
    )
    assert canonical_json(made) == canonical_json(other)


def test_totals_are_sums_of_the_shards_cells() -> None:
    totals = build()["totals"]
    assert totals["rows"] == 5
    assert totals["tokens"] == 34
    assert totals["by_domain"] == {"web": {"rows": 4, "tokens": 29}, "code": {"rows": 1, "tokens": 5}}
    assert totals["by_language"]["zh"] == {"rows": 2, "tokens": 9}


def test_no_place_and_no_running_condition_stands_in_it() -> None:
    text = canonical_json(build()).decode()
    for word in ("/secret", "inner", "/data/", "memory_budget_mb", "max_attempts"):
        assert word not in text
    assert build()["tokens_estimated"] is True


def test_the_job_of_the_cases_stands_in_it_as_it_was_given() -> None:
    made = job_settings(load_job(CASES / "config" / "web_corpus_v3.yaml"))
    assert made["mixing"]["sampling"] == {"code": 0.15, "math": 0.10, "web": 0.60, "book": 0.15}
    assert made["dedup"]["minhash"]["shingle_size"] == 13
    assert json.loads(canonical_json(made)) == made


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": float("nan")})


def test_a_sources_digest_depends_on_every_path_and_hash_but_not_on_order() -> None:
    files = [("a", "1"), ("b", "2")]
    assert files_digest(files) == files_digest(reversed(files))
    assert (
        len(
            {
                files_digest(f)
                for f in (files, [("a", "1")], [("a", "2"), ("b", "2")], [("c", "1"), ("b", "2")])
            }
        )
        == 4
    )
