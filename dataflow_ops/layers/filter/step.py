"""The filter step: statistics, kind and script of every document, and the first rule that refuses it."""

from __future__ import annotations

import hashlib
import json
import unicodedata
import zlib
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels import codemarks, compress, counts, lines, textstats, unicode_classes
from dataflow_ops.kernels.arrow import F64, I64
from dataflow_ops.kernels.words import units_of
from dataflow_ops.layers.filter import function_words, markers, profile
from dataflow_ops.layers.filter.measures import Context, Measures
from dataflow_ops.layers.filter.rule import KINDS, ActiveRule, RuleInForce, broken_bound, in_force, judge
from dataflow_ops.layers.filter.selection import select
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.schema import REJECTS, VERDICTS
from dataflow_ops.settings import CleanSettings, JobSettings
from dataflow_ops.values import Counts, StepResult

VERSION = 1
COLUMNS = ("doc_id", "text", "kind_hint", "raw_chars", "control_chars")

_GOPHER_WORDS = "the be to of and that have with"  # Rae et al. 2021, appendix A.1.1
_GOPHER_TOPS = (2, 3, 4)
_GOPHER_REPEATS = (5, 6, 7, 8, 9, 10)
FLOOR = "_floor"
"""What a floor's column in ``stats`` adds to the name of its statistic."""


class FilterStep:
    """Judges each document by the gates L1 and L2; a map step over ``parse.text``.

    Outputs: ``verdicts`` and ``stats``, a row per document; ``rejects``, a row per refused one. A statistic
    of L2 is null where L1 refused the document. ``zlib_ratio`` and ``zlib_window`` are null, too, where the
    column of the same name with ``_floor`` already reaches the bound; refused documents have exact values.

    Args:
        settings: the job.

    Raises:
        ConfigError: the settings name a rule that does not exist, or bounds that exclude each other.

    """

    name = "filter"
    layer = "filter"
    partitioned_by: Partitioning = "chunk"
    inputs: tuple[Input, ...] = (Input("parse", "text", "aligned", COLUMNS),)
    outputs: tuple[OutputSpec, ...]

    def __init__(self, settings: JobSettings) -> None:
        self._clean = settings.clean
        self._rules = select(settings.clean)
        self.outputs = (
            OutputSpec("verdicts", VERDICTS),
            OutputSpec("rejects", REJECTS),
            OutputSpec("stats", stats_schema(self._rules)),
        )

    @property
    def rules(self) -> tuple[RuleInForce, ...]:
        """The rules that judge, with this job's bounds, in the order in which they name the first failure."""
        return tuple(in_force(active) for active in self._rules if active.judges.any())

    def rules_tag(self) -> str:
        """Name and version of the rule set as this job applies it, for every exported row.

        ``default@1`` or ``default+gopher@1``, then a colon and 12 hex digits of the SHA-256 over the rules
        with their versions, the word lists and how kinds are told apart. Bounds are left out: they stand in
        the manifest, and a changed one must not rewrite the rows of documents that it does not touch.
        """
        bad = list(self._clean.quality_rules.bad_words)
        lists = [bad, markers.VERSION, function_words.VERSION, profile.VERSION]
        text = json.dumps([[(rule.name, rule.version) for rule in self.rules], lists], sort_keys=True)
        names = "+".join(["default", *self._clean.quality_rules.presets])
        return f"{names}@{VERSION}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def fingerprint(self) -> Mapping[str, object]:
        """Rules with versions and bounds, word lists, folding, and the versions of tables and kernels."""
        norm = self._clean.normalization
        return {
            "step": VERSION,
            "rules": [_described(active) for active in self._rules],
            "bad_words": list(self._clean.quality_rules.bad_words),
            "markers": markers.VERSION,
            "function_words": function_words.VERSION,
            "profile": profile.VERSION,
            "view": {"compatibility": norm.unicode, "lower_case": norm.lower_case},
            "unicode": unicodedata.unidata_version,
            "zlib": zlib.ZLIB_RUNTIME_VERSION,
            "kernels": {
                "unicode_classes": unicode_classes.VERSION,
                "codemarks": codemarks.VERSION,
                "counts": counts.VERSION,
                "lines": lines.VERSION,
                "compress": compress.VERSION,
                "textstats": list(textstats.VERSION),
            },
        }

    def open(self, side: Side) -> Context:
        """Build the word lists and tables; nothing is read."""
        return context_of(self._clean, self._rules)

    def process(self, batch: pa.Table, first_row: int, state: object) -> StepResult:
        """Measure and judge some rows; see the class."""
        if not isinstance(state, Context):
            raise TypeError("state must be what open() returned")
        n = batch.num_rows
        view = Measures.of(batch, state)
        kinds = profile.kinds(view, batch["kind_hint"])
        scripts = profile.scripts(view)
        verdict = _Verdict(n)
        stats: dict[str, F64] = {}
        everyone = np.arange(n, dtype=np.int64)
        self._gate("L1", view, everyone, kinds, verdict, stats)
        passed = np.flatnonzero(verdict.rule < 0)
        self._gate("L2", view.take(passed), passed, kinds, verdict, stats)

        rejected = np.flatnonzero(verdict.rule >= 0)
        names = [active.rule.name for active in self._rules]
        hits = {name: int((verdict.rule == i).sum()) for i, name in enumerate(names)}
        l1 = sum(hits[a.rule.name] for a in self._rules if a.rule.gate == "L1")
        return StepResult(
            outputs={
                "verdicts": pa.table(
                    [
                        pa.array(verdict.rule < 0),
                        pa.array(np.array(KINDS, dtype=object)[kinds], pa.string()),
                        pa.array(np.array(profile.SCRIPT_NAMES, dtype=object)[scripts], pa.string()),
                    ],
                    schema=VERDICTS,
                ),
                "rejects": self._rejects(batch, first_row, rejected, verdict),
                "stats": _stats_table(stats, self.outputs[2].schema, n),
            },
            counts=Counts(
                documents_in=n,
                kept=n - rejected.size,
                rejected=int(rejected.size),
                documents_out=n - rejected.size,
                bytes_in=int(view.size.sum()),
            ),
            rule_hits={name: count for name, count in hits.items() if count},
            metrics={"rejected_l1": float(l1), "rejected_l2": float(rejected.size - l1)},
        )

    def _gate(
        self, gate: str, view: Measures, rows: I64, kinds: I64, verdict: _Verdict, stats: dict[str, F64]
    ) -> None:
        """Measure every rule of one gate on ``rows``; note the first that fails."""
        for index, active in enumerate(self._rules):
            if active.rule.gate != gate:
                continue
            judged = judge(active, view, kinds[rows])
            _note(stats, active.rule.statistic, judged.values, rows, verdict.rule.size)
            if judged.floors is not None:
                _note(stats, active.rule.statistic + FLOOR, judged.floors, rows, verdict.rule.size)
            first = judged.failed & (verdict.rule[rows] < 0)
            where = rows[first]
            verdict.rule[where] = index
            verdict.value[where] = judged.values[first]
            verdict.kind[where] = kinds[where]

    def _rejects(self, batch: pa.Table, first_row: int, rejected: I64, verdict: _Verdict) -> pa.Table:
        names, gates, bounds, sides = [], [], [], []
        for row in rejected:
            active = self._rules[verdict.rule[row]]
            bound, side = broken_bound(active, int(verdict.kind[row]), float(verdict.value[row]))
            names.append(active.rule.name)
            gates.append(active.rule.gate)
            bounds.append(bound)
            sides.append(side)
        return pa.table(
            [
                pa.array((rejected + first_row).astype(np.uint32)),
                batch["doc_id"].take(pa.array(rejected)).combine_chunks().cast(REJECTS.field("doc_id").type),
                pa.array(names, pa.string()),
                pa.array(gates, pa.string()),
                pa.array(verdict.value[rejected], pa.float64(), from_pandas=True),
                pa.array(bounds, pa.float64()),
                pa.array(sides, pa.string()),
            ],
            schema=REJECTS,
        )


class _Verdict:
    """First failing rule (index, -1: none), its value, and the kind it was judged as, per row."""

    def __init__(self, n: int) -> None:
        self.rule: npt.NDArray[np.int64] = np.full(n, -1, np.int64)
        self.value: F64 = np.full(n, np.nan)
        self.kind: npt.NDArray[np.int64] = np.zeros(n, np.int64)


def context_of(clean: CleanSettings, rules: tuple[ActiveRule, ...]) -> Context:
    """What measuring these rules needs besides the texts."""
    norm = clean.normalization
    wide = any(active.rule.name.startswith("gopher_") for active in rules)
    return Context(
        _lexicon(clean.quality_rules.bad_words),
        units_of(_GOPHER_WORDS)[0],
        _GOPHER_TOPS if wide else (3,),
        _GOPHER_REPEATS if wide else (5,),
        unicode_classes.fold_table(norm.unicode, norm.lower_case),
    )


@lru_cache(maxsize=4)
def _lexicon(bad_words: tuple[str, ...]) -> textstats.Lexicon:
    """Word lists as arrays; hashing them takes 25 ms, which a task of a few documents would feel."""
    references = function_words.references()
    phrases = markers.phrases(bad_words)
    return textstats.lexicon(function_words.FUNCTION_WORDS, references, phrases, markers.BY_SEGMENT)


def stats_schema(rules: tuple[ActiveRule, ...]) -> pa.Schema:
    """Columns of ``stats``: every statistic once, float64; a floor behind each statistic that has one."""
    names: dict[str, None] = {}
    for active in rules:
        names[active.rule.statistic] = None
        if active.rule.floor is not None:
            names[active.rule.statistic + FLOOR] = None
    return pa.schema([(name, pa.float64()) for name in names])


def _note(stats: dict[str, F64], name: str, values: F64, rows: I64, n: int) -> None:
    column = stats.setdefault(name, np.full(n, np.nan))
    # Two rules may share a statistic; one of them may need the exact value where the other did not.
    known = ~np.isnan(values)
    column[rows[known]] = values[known]


def _stats_table(stats: dict[str, F64], schema: pa.Schema, n: int) -> pa.Table:
    nothing = np.full(n, np.nan)
    arrays = [pa.array(stats.get(name, nothing), pa.float64(), from_pandas=True) for name in schema.names]
    return pa.table(arrays, schema=schema)


def _described(active: ActiveRule) -> dict[str, object]:
    rule = active.rule
    found: dict[str, object] = {"name": rule.name, "version": rule.version, "statistic": rule.statistic}
    if active.judges.any():
        found["bounds"] = {kind: list(bounds) for kind, bounds in in_force(active).by_kind.items()}
    return found
