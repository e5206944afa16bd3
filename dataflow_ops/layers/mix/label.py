"""Labels of every survivor: domain, language, difficulty, task type, tokens. Here languages are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels.arrow import I64, string_buffers
from dataflow_ops.layers.mix import difficulty
from dataflow_ops.layers.mix.columns import LABELS
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

Objects = npt.NDArray[np.object_]

UNSCORED = "unscored"
UNKNOWN_DOMAIN = "unknown"
TASK_TYPES = {"dialogue": "dialogue", "code": "code"}
"""Kind -> task type; every other kind is ``pretrain``."""


class TokenCounter(Protocol):
    """What label needs of a tokenizer."""

    def count(self, texts: Any) -> I64:
        """Tokens of each text: int64, shape (n,)."""

    def identity(self) -> Mapping[str, object]:
        """What the counts depend on."""


class LanguageDetector(Protocol):
    """What label needs of a language detector."""

    def detect(self, texts: Any) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Codes and probabilities of n texts."""

    def identity(self) -> Mapping[str, object]:
        """What the answers depend on."""


@dataclass(frozen=True, slots=True)
class Survivors:
    """What a chunk's side inputs say, by row: arrays ascending by row.

    Attributes:
        removed: rows removed as duplicates, uint32.
        groups: rows of survivors that stand for others, uint32.
        copies: how many each of ``groups`` stands for, uint32.
        scores: rows that ``score`` let through, uint32.

    """

    removed: npt.NDArray[np.uint32]
    groups: npt.NDArray[np.uint32]
    copies: npt.NDArray[np.uint32]
    scores: npt.NDArray[np.uint32]


class LabelStep:
    """One row per survivor of filter and dedup.

    The language of code is its programming language (``code:python``, ``code`` where unknown);
    ``clean.language`` chooses among natural languages and leaves code alone.

    Args:
        settings: the job.
        tokenizer: counts tokens.
        detector: names natural languages.

    """

    name = "label"
    layer = "mix"
    partitioned_by: Partitioning = "chunk"
    inputs = (
        Input("parse", "text", "aligned", ("doc_id", "text", "source_id", "code_language")),
        Input("filter", "verdicts", "aligned", ("kept", "kind", "script")),
        Input("confirm", "removed", "slice"),
        Input("confirm", "copies", "slice"),
        Input("score", "scores", "same", ("row",)),
    )
    outputs = (OutputSpec("labels", LABELS),)
    version = 1

    def __init__(self, settings: JobSettings, tokenizer: TokenCounter, detector: LanguageDetector) -> None:
        self._domains = {s.source_id: s.domain for s in settings.sources}
        self._language = settings.clean.language
        self._tokenizer = tokenizer
        self._detector = detector

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`."""
        return {
            "version": self.version,
            "difficulty": difficulty.VERSION,
            "domains": dict(sorted(self._domains.items())),
            "keep": sorted(self._language.keep),
            "min_score": self._language.min_score,
            "tokenizer": dict(self._tokenizer.identity()),
            "detector": dict(self._detector.identity()),
        }

    def fingerprint_of(self, source_id: str) -> Mapping[str, object]:
        """Of a chunk of one source: the domains of other sources shape nothing in it."""
        return {**self.fingerprint(), "domains": self._domains.get(source_id, UNKNOWN_DOMAIN)}

    def open(self, side: Side) -> object:
        """Load what dedup and score said about this chunk: a :class:`Survivors`."""
        removed = np.sort(side.table("confirm", "removed")["row"].to_numpy())
        groups = side.table("confirm", "copies").sort_by("row")
        scores = np.sort(side.table("score", "scores")["row"].to_numpy())
        return Survivors(removed, groups["row"].to_numpy(), groups["copies"].to_numpy(), scores)

    def process(self, batch: pa.Table, first_row: int, state: object) -> StepResult:
        """See :class:`~dataflow_ops.protocols.MapStep`.

        Raises:
            ConservationError: a survivor has no row in ``score``.

        """
        assert isinstance(state, Survivors)
        kept = batch["kept"].to_numpy()
        rows = np.arange(first_row, first_row + batch.num_rows, dtype=np.uint32)
        unique = ~np.isin(rows, state.removed)
        mask = kept & unique
        if not np.isin(rows[mask], state.scores).all():
            raise ConservationError(
                f"label: a survivor at or after row {first_row} is missing in score.scores"
            )
        table = self._labels(batch.filter(pa.array(mask)), rows[mask], state)
        verdicts = pc.value_counts(table["verdict"]).to_pylist()
        hits = {v["values"]: v["counts"] for v in sorted(verdicts, key=lambda v: v["values"]) if v["values"]}
        rejected = sum(hits.values())
        passed = table.num_rows - rejected
        counts = Counts(
            documents_in=batch.num_rows,
            kept=passed,
            rejected=rejected,
            skipped={"rejected_before": int((~kept).sum()), "duplicate": int((kept & ~unique).sum())},
            documents_out=passed,
            bytes_in=int(pc.sum(table["text_bytes"]).as_py() or 0),
            tokens_out=int(pc.sum(table.filter(pc.equal(table["verdict"], ""))["tokens"]).as_py() or 0),
        )
        return StepResult(outputs={"labels": table}, counts=counts, rule_hits=hits)

    def _labels(self, batch: pa.Table, rows: npt.NDArray[np.uint32], state: Survivors) -> pa.Table:
        texts = batch["text"].combine_chunks()
        kinds, scripts = _objects(batch["kind"]), _objects(batch["script"])
        languages, scores = self._languages(texts, kinds, _objects(batch["code_language"]))
        sources = _objects(batch["source_id"])
        copies = np.zeros(len(rows), np.uint32)
        known = np.isin(rows, state.groups)
        copies[known] = state.copies[np.searchsorted(state.groups, rows[known])]
        _, offsets = string_buffers(texts)
        columns = {
            "row": pa.array(rows),
            "doc_id": batch["doc_id"],
            "domain": [self._domains.get(s, UNKNOWN_DOMAIN) for s in sources],
            "language": languages,
            "language_score": pa.array(scores, pa.float32(), mask=kinds == "code"),
            "kind": batch["kind"],
            "difficulty": difficulty.difficulty(texts, kinds, scripts),
            "task_type": [TASK_TYPES.get(k, "pretrain") for k in kinds],
            "quality_level": [UNSCORED] * len(rows),
            "tokens": pa.array(self._tokenizer.count(texts)),
            "chars": pc.utf8_length(texts),
            "copies": pa.array(copies),
            "verdict": self._verdicts(languages, scores, kinds),
            "source_id": batch["source_id"],
            "text_bytes": pa.array(np.diff(offsets)),
        }
        return pa.table([columns[f.name] for f in LABELS], schema=LABELS)

    def _languages(
        self, texts: Any, kinds: Objects, code: Objects
    ) -> tuple[Objects, npt.NDArray[np.float32]]:
        """Language and its probability; code has a programming language and no probability."""
        prose = kinds != "code"
        languages = np.where(code == "", "code", "code:" + code)
        scores = np.zeros(len(kinds), np.float32)
        languages[prose], scores[prose] = self._detector.detect(texts.filter(pa.array(prose)))
        return languages, scores

    def _verdicts(self, languages: Objects, scores: npt.NDArray[np.float32], kinds: Objects) -> Objects:
        """``language``: not one the job keeps; ``language_score``: too unsure; ``""``: goes on."""
        prose = kinds != "code"
        verdicts = np.full(len(kinds), "", dtype=object)
        verdicts[prose & (scores < np.float32(self._language.min_score))] = "language_score"
        if self._language.keep:
            verdicts[prose & ~np.isin(languages, np.array(self._language.keep, dtype=object))] = "language"
        return verdicts


def _objects(column: Any) -> Objects:
    """A string column as an object array of str, nulls as ``""``."""
    values = pc.fill_null(column.cast(pa.string()), "").to_pylist()
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
