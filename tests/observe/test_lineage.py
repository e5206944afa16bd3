from __future__ import annotations

import json

import pyarrow as pa
import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.observe.evidence import RuleNote
from dataflow_ops.observe.lineage import find, find_all
from dataflow_ops.observe.lineage_text import as_dict, as_text
from dataflow_ops.schema import doc_id

RULES = (
    RuleNote("length", "2", "L1", low=120.0),
    RuleNote("zlib_ratio", "1", "L2", low=0.2),
    RuleNote("code_only", "1", "L2", applies_to=("code",)),
)


def ident(chunk, row):
    return doc_id(f"src{chunk}", f"file{chunk}.jsonl", row).hex()


def test_exported_document_tells_its_shard_labels_and_rules(finished):
    one = find(finished, ident(2, 2), RULES)
    assert (one.fate, one.shard, one.copies) == ("exported", "domain=web/part-00000-of-00001", 1)
    assert (one.source_id, one.path, one.position) == ("src2", "file2.jsonl", 2)
    assert [(r.name, r.version, r.value) for r in one.passed] == [
        ("length", "2", 400.0),
        ("zlib_ratio", "1", 0.4),
    ]
    assert one.labels["tokens"] == 200
    assert "length@2 400  (at least 120)" in as_text(one)


def test_rejected_document_tells_rule_value_bound_side_gate(finished):
    one = find(finished, ident(1, 0), RULES)
    assert (one.fate, one.rule, one.value, one.bound) == ("rejected", "zlib_ratio", 0.12, 0.2)
    assert (one.side, one.gate) == ("low", "L2")
    assert [r.name for r in one.passed] == ["length"]
    assert "rejected in filter by zlib_ratio (gate L2): 0.12 is below 0.2" in as_text(one)


def test_duplicate_is_followed_to_its_survivor(finished):
    one = find(finished, ident(1, 2))
    assert one.fate == "duplicate"
    assert one.survivor_id == ident(2, 2)
    assert one.survivor is not None
    assert (one.survivor.fate, one.survivor.doc_id) == ("exported", ident(2, 2))
    assert f"near duplicate of {ident(2, 2)}, similarity 0.910" in as_text(one)


@pytest.mark.parametrize(
    ("row", "fate", "step"),
    [(5, "rejected", "label"), (6, "not_sampled", "plan"), (100, "rejected", "parse")],
)
def test_other_fates(finished, row, fate, step):
    one = find(finished, ident(1, row))
    assert (one.fate, one.step) == (fate, step)


def test_undrawn_and_unparsed_say_why(finished):
    assert "drew 2,800 of the 3,400 tokens of domain web" in as_text(find(finished, ident(1, 6)))
    assert find(finished, ident(1, 100)).detail == "only scripts"
    del finished.by_kind["scatter", "fates"]
    assert find(finished, ident(1, 100)).detail == "only scripts"


def test_dead_letter(finished):
    one = find(finished, ident(1, 200))
    assert (one.fate, one.error, one.path) == ("dead", "ParserFailed", "bad.pdf")
    assert "\x1b" not in as_text(one)


def test_before_export_the_verdicts_answer(finished):
    del finished.by_kind["scatter", "fates"]
    assert find(finished, ident(1, 0)).rule == "zlib_ratio"
    assert find(finished, ident(1, 0)).side == "low"
    near = find(finished, ident(1, 2))
    assert (near.fate, near.rule, near.survivor.fate, near.survivor.copies) == (
        "duplicate",
        "near",
        "kept",
        1,
    )
    assert (find(finished, ident(1, 5)).fate, find(finished, ident(1, 5)).step) == ("rejected", "label")
    assert find(finished, ident(2, 9)).fate == "kept"
    for key in [k for k in finished.by_kind if k[0] != "parse"]:
        del finished.by_kind[key]
    one = find(finished, ident(1, 0))
    assert (one.fate, one.step) == ("kept", "parse")


def test_prefix_and_url(finished):
    whole = find(finished, ident(1, 4))
    assert find(finished, ident(1, 4)[:13]) == whole
    assert find(finished, "https://host1.example/4") == whole
    assert find(finished, ident(1, 4).upper()) == whole


def test_a_url_that_occurs_twice_names_both(finished):
    table = finished.tables["scatter/fates/0000000000000001"]
    urls = [""] + ["https://twice.example/"] * 2 + table["url"].to_pylist()[3:]
    finished.tables["scatter/fates/0000000000000001"] = table.set_column(
        table.column_names.index("url"), "url", [urls]
    )
    with pytest.raises(ConfigError, match=f"{ident(1, 0)}, {ident(1, 1)}"):
        find(finished, "https://twice.example/")
    assert len(find_all(finished, "https://twice.example/")) == 2


@pytest.mark.parametrize("key", ["0" * 32, "https://nowhere.example/", "abcd" * 3])
def test_unknown_is_an_error(finished, key):
    with pytest.raises(ConfigError, match="no document of this run"):
        find(finished, key)


@pytest.mark.parametrize("key", ["abc", "", "xyzxyz", "0" * 33])
def test_what_is_neither_id_nor_url(finished, key):
    with pytest.raises(ConfigError, match="no document id: 32 hex digits"):
        find(finished, key)


def test_survivor_of_an_earlier_version(finished):
    for kind in (("parse", "text"), ("scatter", "fates")):
        del finished.by_kind[kind]["0000000000000002"]
    one = find(finished, ident(1, 2))
    assert one.survivor is None
    assert "version that this run builds on" in as_text(one)


def test_json_form_survives_json(finished):
    for row in (0, 2, 4, 5, 6, 100, 200):
        as_json = as_dict(find(finished, ident(1, row), RULES))
        assert json.loads(json.dumps(as_json, allow_nan=False)) == as_json


def test_only_narrow_columns_are_scanned(finished):
    find(finished, ident(2, 9))
    scans = [c for uri, c in finished.columns_read if uri.startswith("parse/text")]
    assert scans
    assert all("text" not in columns and columns for columns in scans)


def test_a_rule_passed_by_its_floor_says_so(finished):
    """A null statistic is no mystery: the floor beside it reached the bound."""
    for name in ("0000000000000001", "0000000000000002"):
        finished.tables[f"filter/stats/{name}"] = pa.table(
            {
                "length": [400.0] * 10,
                "zlib_ratio": pa.nulls(10, pa.float64()),
                "zlib_ratio_floor": [0.31] * 10,
            }
        )
    one = find(finished, ident(2, 2), RULES)
    zlib = next(r for r in one.passed if r.name == "zlib_ratio")
    assert (zlib.value, zlib.floor) == (None, 0.31)
    assert "zlib_ratio@1 passed by its floor 0.31, not measured  (at least 0.2)" in as_text(one)
    assert {"name": "zlib_ratio", "floor": 0.31}.items() <= as_dict(one)["passed"][1].items()


def test_an_unknown_document_is_told_how_to_name_its_run(finished):
    with pytest.raises(ConfigError, match="name that run: --run RUN"):
        find(finished, "f" * 32)
