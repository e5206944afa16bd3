"""Output may only change together with a version: of the step, a reader, a parser, or a library.

When this fails, raise the ``version`` of what you changed, then put the new digest here.
"""

from __future__ import annotations

import hashlib
import json

import pytest

from dataflow_ops.layers.parse import wire
from dataflow_ops.layers.parse.guard import InlineGuard
from dataflow_ops.layers.parse.step import ParseStep
from tests.layers.parse.harness import CASES, parse, settings

VERSIONS = {
    "version": 1,
    "normalise": 1,
    "too_long": 1,
    "record": 1,
    "readers": {"json": 3, "jsonl": 3, "parquet": 1, "warc": 3, "whole": 3},
    "parsers": {"code": 1, "html": 1, "html_trafilatura": 1, "markdown": 1, "pdf": 1, "text": 1},
}
DIGESTS = {
    "code": "84d0bc3ec289ca79",
    "dialogue": "86bbb579c963e42e",
    "html": "9996b1924adbef99",
    "jsonl": "ee5dcebd0281497c",
    "md": "e5b04b47befe5415",
    "norm": "41810ca4758dbd84",
    "text": "64dc48a402ff2433",
    "warc": "4201bbb662d0788a",
}


def test_versions() -> None:
    job = settings(sources=[{"path": "x", "html_extractor": "trafilatura"}])
    found = ParseStep(job, InlineGuard(wire.handle)).fingerprint()
    assert {name: found[name] for name in VERSIONS} == VERSIONS


@pytest.mark.parametrize("folder", DIGESTS)
def test_output_is_that_of_these_versions(folder: str) -> None:
    files = {f"{folder}/{p.name}": p.read_bytes() for p in sorted((CASES / folder).iterdir())}
    job = settings(clean={"boilerplate_filter": {"min_text_len": 1, "max_text_len": 500}})
    ran = parse(files, job)
    text = json.dumps([ran.docs, ran.rejects, ran.dead], sort_keys=True, default=lambda b: b.hex())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGESTS[folder]
