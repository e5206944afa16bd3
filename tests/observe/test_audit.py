from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dataflow_ops import schema
from dataflow_ops.errors import ConfigError
from dataflow_ops.observe.audit import AuditRow, _Reservoirs, sample, to_csv, to_table


def test_every_way_out_is_sampled_with_its_text(finished):
    found = sample(finished, n=50)
    assert Counter(r.rule for r in found) == {
        "empty_text": 2, "length": 2, "zlib_ratio": 1, "near": 1, "exact": 1, "language": 1
    }  # fmt: skip
    near = next(r for r in found if r.rule == "near")
    assert near.text.startswith("text 2 of chunk 1")
    assert near.survivor_text.startswith("text 2 of chunk 2")
    assert near.similarity == pytest.approx(0.91)
    zlib = next(r for r in found if r.rule == "zlib_ratio")
    assert (zlib.value, zlib.bound, zlib.side, zlib.gate, zlib.source_id) == (0.12, 0.2, "low", "L2", "src1")
    assert zlib.url == "https://host1.example/0"
    assert next(r for r in found if r.rule == "empty_text").detail == "only scripts"


def test_rule_limits_the_sample(finished):
    assert {r.rule for r in sample(finished, rule="length")} == {"length"}
    assert sample(finished, rule="nothing_like_it") == []


def test_names_of_dedups_rule_hits_are_understood(finished):
    assert sample(finished, rule="near_duplicate") == sample(finished, rule="near") != []


def test_n_below_one_is_refused(finished):
    with pytest.raises(ConfigError, match="n = 0"):
        sample(finished, n=0)


def _big(reader, order):
    """Rule ``common`` rejects 300 documents of each of three sources, ``rare`` two of one."""
    for chunk in order:
        name = f"{chunk:016x}"
        items = [
            {
                "doc_id": schema.doc_id(f"s{chunk}", "p", i),
                "source_id": f"s{chunk}",
                "text": f"t{i}",
                "path": "p",
            }
            for i in range(302)
        ]
        columns = {f.name: pa.array([x.get(f.name) for x in items], f.type) for f in schema.DOCUMENTS}
        reader.put("parse", "text", name, pa.table(columns))
        rules = ["common"] * 300 + ["rare"] * (2 if chunk == 1 else 0)
        rejects = {
            "row": pa.array(range(len(rules)), pa.uint32()),
            "doc_id": pa.array([x["doc_id"] for x in items[: len(rules)]], schema.DOC_ID),
            "rule": pa.array(rules),
            "gate": pa.array(["L1"] * len(rules)),
            "value": pa.array([0.0] * len(rules)),
            "bound": pa.array([1.0] * len(rules)),
            "side": pa.array(["low"] * len(rules)),
        }
        reader.put("filter", "rejects", name, pa.table(rejects))
    return reader


def test_strata_get_even_turns_and_the_rare_rule_is_seen(reader):
    found = sample(_big(reader, [1, 2, 3]), n=20)
    assert len(found) == 20
    assert Counter(r.rule for r in found) == {"common": 18, "rare": 2}
    assert Counter(r.source_id for r in found if r.rule == "common") == {"s1": 6, "s2": 6, "s3": 6}


def test_same_draw_whatever_the_order_and_another_with_another_seed(reader):
    one = sample(_big(reader, [1, 2, 3]), n=20, seed=7)
    # The same documents in chunks of other names, so that they are met in another order.
    other = type(reader)()
    _big(other, [3, 1, 2])
    for step, kind in list(other.by_kind):
        moved = {f"{9 - int(name, 16):016x}": out for name, out in other.by_kind[step, kind].items()}
        other.by_kind[step, kind] = moved
    assert sample(other, n=20, seed=7) == one
    assert {r.doc_id for r in sample(reader, n=20, seed=8)} != {r.doc_id for r in one}


def test_more_strata_than_rows(reader):
    assert len(sample(_big(reader, [1, 2, 3]), n=1)) == 1
    assert len(sample(_big(reader, [1, 2, 3]), n=2)) == 2


def test_a_draw_is_uniform_over_the_documents(reader):
    _big(reader, [1])
    seen = Counter(r.path and r.text for seed in range(60) for r in sample(reader, "common", 10, seed))
    assert len(seen) > 240  # of 300; 600 draws leave about 40 unseen


def test_csv_defuses_formulas_and_reads_back(finished):
    rows = sample(finished)
    back = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert [r["doc_id"] for r in back] == [r.doc_id for r in rows]
    assert not any(v[:1] in "=+@" for r in back for v in r.values() if v)


def test_console_table_shows_markup_literally(finished):
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(to_table(sample(finished), chars=800))
    text = console.export_text()
    assert "\x1b[31m" not in text
    assert "<script>" in text


def test_console_table_compares_rightly_and_gives_the_text_the_room(finished):
    """At 80 columns texts have more than half of the line; parse names no side of its bound."""
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(to_table(sample(finished)))
    text = console.export_text()
    assert "0 < 1" in text
    assert "0.12 < 0.2" in text
    assert ">" not in text.replace("script>", "").replace("</", "")
    assert max(len(line.split("│")[2]) for line in text.splitlines() if line.count("│") == 3) > 50


def test_console_table_prints_an_exact_copy_once():
    row = AuditRow("ab" * 16, "confirm", "exact", "src", text="both alike", survivor_id="cd" * 16)
    for kept, shown in (("both alike", "the same text"), ("", "(not among these outputs)")):
        console = Console(width=120, record=True, file=io.StringIO())
        console.print(to_table([dataclasses.replace(row, survivor_text=kept)]))
        text = console.export_text()
        assert text.count("both alike") == 1
        assert f"= cdcdcdcdcdcd: {shown}" in text


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 10**6)),
        max_size=60,
        unique=True,
    ),
    st.integers(1, 12),
)
def test_forgetting_early_changes_nothing(items, n):
    pruned, whole = _Reservoirs(n), _Reservoirs(10**6)
    for rule, source, draw in items:
        pick = (draw, f"{rule}{source}{draw}", "", {})
        pruned.offer((rule, source), [pick])
        pruned.prune()
        whole.offer((rule, source), [pick])
    whole.n = n
    assert pruned.allot() == whole.allot()
    assert len(pruned.allot()) == min(n, len(items))
