"""Batches as parse would hand them to the filter."""

import re
from collections.abc import Sequence

import pyarrow as pa

from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.filter.step import FilterStep
from dataflow_ops.values import StepResult

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def batch(texts: Sequence[str], hints: Sequence[str] = ()) -> pa.Table:
    """Rows of ``parse.text`` with the columns that the filter declares; control characters removed."""
    clean = [CONTROL.sub("", text) for text in texts]
    return pa.table(
        {
            "doc_id": pa.array([i.to_bytes(16, "big") for i in range(len(texts))], pa.binary(16)),
            "text": pa.array(clean, pa.large_string()),
            "kind_hint": pa.array(hints or [""] * len(texts), pa.string()),
            "raw_chars": pa.array([len(text) for text in texts], pa.int32()),
            "control_chars": pa.array(
                [len(t) - len(c) for t, c in zip(texts, clean, strict=True)], pa.int32()
            ),
        }
    )


def step(**quality: object) -> FilterStep:
    """A filter whose job has these quality rules."""
    return FilterStep(parse_job({"dataset": {"id": "t"}, "clean": {"quality_rules": quality}}))


def judged(texts: Sequence[str], hints: Sequence[str] = (), using: FilterStep | None = None) -> StepResult:
    """Result for one batch."""
    filter_step = using or step()
    return filter_step.process(batch(texts, hints), 0, filter_step.open(None))  # type: ignore[arg-type]


def rules_of(texts: Sequence[str], hints: Sequence[str] = (), using: FilterStep | None = None) -> list[str]:
    """The rule that refuses each text, ``""`` where it is kept."""
    rejects = judged(texts, hints, using).outputs["rejects"]
    found = dict(zip(rejects["row"].to_pylist(), rejects["rule"].to_pylist(), strict=True))
    return [found.get(row, "") for row in range(len(texts))]
