"""A pasted text as the steps of a run would see it: its key, its signature, its bands, and what rules say.

The very steps that made the run's outputs are asked, so that equal texts can't but meet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels import fold
from dataflow_ops.protocols import MapStep, Step
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Numbers

if TYPE_CHECKING:
    from dataflow_ops.protocols import Side

_ID = bytes(16)
STATISTICS: Mapping[str, float] = {
    "chars": 0.02,
    "meaningful_ratio": 0.02,
    "han_mixture": 0.05,
    "entropy": 0.08,
    "zlib_ratio": 0.03,
    "top_3gram": 0.03,
}
"""Columns of ``filter.stats`` by which a refused text is looked for -> how far a near copy may be off (of
``chars`` as a share of them). What was not measured of a document, because L1 refused it, says nothing."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One text.

    Attributes:
        key: key text.
        sha1: of the key text.
        bands: band hashes; empty where the text is below one shingle, or the job looks for no near copies.
        signatures: shingle size -> signature, uint32 of shape ``(k,)``.
        statistics: of :data:`STATISTICS`, those that the run has and that could be measured.
    """

    key: str
    sha1: bytes
    bands: npt.NDArray[np.uint64]
    signatures: Mapping[int, npt.NDArray[np.uint32]]
    statistics: Mapping[str, float]


class _NoSide:
    """What a step asks while it is opened; this one has no inputs besides its batch."""

    partition = "0" * 16
    numbers = Numbers(1, 1, 1, 1, 1)
    scratch = Path()
    memory_budget = 1 << 28


def probe(text: str, settings: JobSettings, steps: Mapping[str, Step]) -> Probe:
    """Sign a text, and measure it, as the run did its documents."""
    normal = settings.clean.normalization
    key = fold.fold_text(text, normal.unicode, normal.lower_case)
    batch = pa.table(
        {
            "doc_id": pa.array([_ID], pa.binary(16)),
            "text": pa.array([text], pa.large_string()),
            "source_id": pa.array([""], pa.string()),
            "kept": pa.array([True]),
            "kind_hint": pa.array([""], pa.string()),
            "raw_chars": pa.array([len(text)], pa.int32()),
            "control_chars": pa.array([0], pa.int32()),
        }
    )
    signed = _process(steps["sign"], batch)
    stats = _process(steps["filter"], batch)["stats"]
    bands: Any = np.empty(0, np.uint64)
    signatures = {}
    if "signatures" in signed and signed["signatures"].num_rows:
        bands = signed["bands"]["band"].to_numpy()
        row = signed["signatures"].to_pylist()[0]
        signatures[row["shingle"]] = np.frombuffer(row["signature"], np.uint32)
    values = {name: stats[name][0].as_py() for name in STATISTICS if name in stats.column_names}
    return Probe(
        key,
        hashlib.sha1(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest(),
        bands,
        signatures,
        {name: value for name, value in values.items() if value is not None},
    )


def _process(step: Step, batch: pa.Table) -> Mapping[str, pa.Table]:
    assert isinstance(step, MapStep)
    return step.process(batch, 0, step.open(cast("Side", _NoSide()))).outputs
