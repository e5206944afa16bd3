"""Outputs that must not change without a bump of a version constant (kernel VERSION or a step's ``step``)."""

import hashlib
import unicodedata

import pytest
import rapidfuzz
from dedup_flow import Flow, cut, documents, job

TEXTS = [
    "The keeper walked the edge of the reservoir each morning to read the gauge, and wrote the level down.",
    "The keeper walked the edge of the reservoir each morning to read the gauge, and wrote the level down!",
    "ＴＨＥ keeper walked the edge of the reservoir each morning to read the gauge, and wrote the level down.",  # noqa: E501
    "水库的管理员每天清晨沿着堤坝走一圈,把水位、风向和天色记在一本绿色的本子上。前任就是这样做的。",
    "水库的管理员每天清晨沿着堤坝走一圈,把水位、风向和天色记在一本绿色的本子上。前任就是这样做的!",
    "short",
]
GOLDEN = {
    ("sign", "keys"): "0559e03a3fb40276",
    ("sign", "bands"): "a3672d660bc96262",
    ("match", "buckets"): "33292c5b725edbff",
    ("gather", "texts"): "2547fa7fe1218ff1",
    ("verify", "edges"): "333fa94fecdeba9d",
    ("unite", "members"): "af208e1f10197a33",
    ("confirm", "verdicts"): "158aebf7ed5b15fc",
}


@pytest.mark.skipif(
    (unicodedata.unidata_version, rapidfuzz.__version__) != ("14.0.0", "3.14.6"),
    reason="the golden outputs belong to the locked environment",
)
def test_outputs_are_the_recorded_ones() -> None:
    store = Flow(job()).run(cut(documents(TEXTS), [3])).store
    found = {}
    for kind in GOLDEN:
        digest = hashlib.sha256()
        for partition in sorted(store.parts[kind]):
            for name in sorted(store.parts[kind][partition]):
                digest.update(
                    repr((partition, name, store.load(*kind, partition, name).to_pylist())).encode()
                )
        found[kind] = digest.hexdigest()[:16]
    assert found == GOLDEN
