"""What is lost or changed between two steps is noticed by the next that reads it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from dedup_flow import Flow, Store, documents, job
from families import family

from dataflow_ops.errors import ConservationError, CorruptOutput, FingerprintMismatch
from dataflow_ops.layers.dedup import identity


def test_changed_gathered_text_is_noticed() -> None:
    def tamper(store: Store, step: str) -> None:
        if step != "collect":
            return
        for slices in store.parts["collect", "texts"].values():
            for handles in slices.values():
                handles[:] = [
                    t.set_column(
                        t.column_names.index("key_text"),
                        "key_text",
                        pa.array([x[:-1] + "~" for x in t["key_text"].to_pylist()], pa.large_string()),
                    )
                    for t in handles
                ]

    with pytest.raises(CorruptOutput, match="SHA-1"):
        Flow(job(), tamper=tamper).run([documents(family(21, [8, 8, 8, 6, 4]))])


def test_lost_collected_text_is_noticed() -> None:
    def tamper(store: Store, step: str) -> None:
        if step == "collect":
            store.parts["collect", "texts"].clear()

    with pytest.raises(CorruptOutput, match="missing"):
        Flow(job(), tamper=tamper).run([documents(family(21, [8, 8, 8, 6, 4]))])


def test_lost_gathered_text_is_noticed_when_it_is_collected() -> None:
    def tamper(store: Store, step: str) -> None:
        if step == "unite":
            store.parts["gather", "texts"].clear()

    with pytest.raises(ConservationError, match="are not there"):
        Flow(job(), tamper=tamper).run([documents(family(21, [8, 8, 8, 6, 4]))])


def test_signatures_of_other_making_are_refused() -> None:
    other = job(minhash={"seed": 2})
    names = [identity.signature_id(s) for s in (job(), other)]

    def tamper(store: Store, step: str) -> None:
        if step != "sign":
            return
        for slices in store.parts["sign", "signatures"].values():
            slices[""] = [
                t.set_column(t.column_names.index("made_by"), "made_by", pa.array([names[1]] * t.num_rows))
                for t in slices[""]
            ]

    texts = family(3, [1])
    with pytest.raises(FingerprintMismatch) as e:
        Flow(job(), tamper=tamper).run([documents([texts[0], texts[0] + " x"])])
    assert all(name in str(e.value) for name in names)


def test_lost_signature_is_noticed() -> None:
    def tamper(store: Store, step: str) -> None:
        if step == "sign":
            for slices in store.parts["sign", "signatures"].values():
                slices[""] = [t.slice(0, 1) for t in slices[""]]

    texts = family(3, [1])
    with pytest.raises(ConservationError, match="no signature"):
        Flow(job(), tamper=tamper).run([documents([texts[0], texts[0] + " x"])])
