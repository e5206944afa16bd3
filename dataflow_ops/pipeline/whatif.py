"""What the filter would decide with other bounds, from what a finished run stored."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.engine.inputs import plan_step, retried
from dataflow_ops.errors import CorruptOutput
from dataflow_ops.kernels.arrow import F64, I64
from dataflow_ops.layers.filter.measures import Context
from dataflow_ops.layers.filter.redecide import Decided, Stored, decide, measured_then, wanted
from dataflow_ops.layers.filter.rule import KINDS, ActiveRule, Gate
from dataflow_ops.layers.filter.selection import select
from dataflow_ops.layers.filter.step import COLUMNS, FilterStep, context_of
from dataflow_ops.pipeline.opened import OpenRun, open_run
from dataflow_ops.pipeline.reader import RunReader
from dataflow_ops.pipeline.whatif_settings import Question
from dataflow_ops.pipeline.whatif_tally import After, Before, Pick, Tally
from dataflow_ops.protocols import Step
from dataflow_ops.settings import CleanSettings
from dataflow_ops.values import Numbers, Output

DOWNSTREAM = (
    "This is the filter alone. Dedup, score and mix come after it: a document gained here may be a duplicate"
    " of one that is there, a lost one may be replaced by its duplicate, and the mix draws what its targets"
    " ask for."
)
_SNIPPET = 120
_RETRIES_KNOWN = 10  # of a chunk whose dead letters were put back more often, all is measured anew
Progress = Callable[[int, int], None]
"""Told ``(documents done, documents in all)`` after each chunk."""


def what_if(home_path: Path, question: Question, run_id: str | None, progress: Progress) -> dict[str, Any]:
    """Decide anew for every document that a run's filter saw.

    The counts are those of a real run with the same settings over the same parsed documents.

    Args:
        home_path: home folder.
        question: the job and what is set differently.
        run_id: run to ask; None: the data set's newest finished full run, or day where there is none.
        progress: hears how far it is.

    Returns:
        Counts, moves from rule to rule, groups by domain and language, example documents; JSON-able.

    Raises:
        ConfigError: there is no such run, or the bounds exclude each other.
        CorruptOutput: what the run stored is gone or damaged.

    """
    began = time.monotonic()
    with open_run(home_path, question.job.dataset.id, run_id, "filter") as run:
        clean = question.clean(run.settings)
        old, new = select(run.settings.clean), select(clean)
        then = measured_then(old, run.settings.clean.quality_rules.bad_words != clean.quality_rules.bad_words)
        tally = Tally(old, new)
        asker = _Asker(run, clean, new, then, context_of(clean, new), tally)
        verdicts = dict(run.reader.outputs("filter", "verdicts"))
        total = sum(output.rows for output in verdicts.values())
        for chunk, output in verdicts.items():
            asker.ask(chunk, output)
            progress(tally.documents, total)
        examples = _examples(run.reader, asker.texts, tally.examples)
        notes = [*run.notes, *question.notes(run.settings)]
        if asker.outdated:
            notes.append(
                f"{asker.outdated:,} documents were filtered by other code than this; all of them were"
                " measured anew, and what the code changed is counted among gains and losses"
            )
        return {
            "run": run.row.run_id,
            "told": run.told,
            "dataset": run.row.dataset,
            "mode": run.row.mode,
            "data_date": run.row.data_date,
            "settings": question.differences(run.settings),
            **tally.counts(),
            "rules": tally.rules(),
            "moves": tally.moves(),
            "groups": tally.groups(),
            "examples": examples,
            "notes": notes,
            "downstream": DOWNSTREAM,
            "seconds": round(time.monotonic() - began, 3),
        }


@dataclass
class _Asker:
    """Answers for one chunk after the other."""

    run: OpenRun
    clean: CleanSettings
    new: tuple[ActiveRule, ...]
    then: dict[str, Gate]
    context: Context
    tally: Tally
    outdated: int = 0
    texts: dict[str, Output] = field(init=False)

    def __post_init__(self) -> None:
        run = self.run
        of = {kind: dict(run.reader.outputs("filter", kind)) for kind in ("rejects", "stats")}
        self._rejects, self._stats = of["rejects"], of["stats"]
        self.texts = dict(run.reader.outputs("parse", "text"))
        self._labels = dict(run.reader.outputs("label", "labels"))
        self._domains = {source.source_id: source.domain for source in run.settings.sources}
        self._sources = run.sources
        self._current = _by_this_code(run)

    def ask(self, chunk: str, output: Output) -> None:
        """Count one chunk."""
        if not output.rows:
            return
        verdicts = self.run.reader.checked(output)
        before = _before(self.run.reader.checked(self._rejects[chunk]))
        if chunk in self._current:
            decided, kinds = self._by_stored(chunk, verdicts, before)
        else:
            decided, kinds = self._afresh(chunk)
            self.outdated += kinds.size
        if not decided.rule.size == output.rows == self.texts[chunk].rows:
            raise CorruptOutput(f"{output.uri} does not have a row for each document of its chunk")
        self.tally.measured += int(decided.measured.sum())
        was_kept = np.ones(decided.rule.size, np.bool_)
        was_kept[before.rows] = False
        changed = was_kept != (decided.rule < 0)
        self.tally.add(
            chunk,
            self._domains.get(self._sources.get(chunk, ""), ""),
            self._languages(chunk, verdicts),
            before,
            After(decided.rule, decided.value, kinds),
            self.run.reader.checked(self.texts[chunk], ("doc_id",))["doc_id"] if changed.any() else None,
        )

    def _by_stored(self, chunk: str, verdicts: pa.Table, before: Before) -> tuple[Decided, I64]:
        columns = wanted(self.new, self.then)
        stats: dict[str, F64] = {}
        if columns:
            table = self.run.reader.checked(self._stats[chunk], columns)
            stats = {name: table[name].to_numpy() for name in columns}
        kinds = _codes(verdicts["kind"], KINDS)
        stopped = np.zeros(kinds.size, np.bool_)
        stopped[before.rows[self._in_l1(before.rules)]] = True

        def texts(rows: I64) -> Iterator[tuple[I64, pa.Table]]:
            return self.run.reader.pieces(self.texts[chunk], rows, COLUMNS)

        return decide(self.new, Stored(kinds, stopped, self.then, stats), texts, self.context), kinds

    def _in_l1(self, rules: npt.NDArray[np.object_]) -> npt.NDArray[np.bool_]:
        first = {a.rule.name for a in select(self.run.settings.clean) if a.rule.gate == "L1"}
        return np.array([name in first for name in rules], np.bool_)

    def _afresh(self, chunk: str) -> tuple[Decided, I64]:
        """All documents of a chunk through the step itself: its statistics were made by other code."""
        step = FilterStep(self.run.settings.model_copy(update={"clean": self.clean}))
        index = {active.rule.name: i for i, active in enumerate(self.new)}
        n = self.texts[chunk].rows
        rule, value, kinds = np.full(n, -1, np.int64), np.full(n, np.nan), np.zeros(n, np.int64)
        for rows, table in self.run.reader.pieces(self.texts[chunk], np.arange(n), COLUMNS):
            outputs = step.process(table, int(rows[0]), self.context).outputs
            kinds[rows] = _codes(outputs["verdicts"]["kind"], KINDS)
            refused = _before(outputs["rejects"])
            rule[refused.rows] = [index[name] for name in refused.rules]
            value[refused.rows] = refused.values
        return Decided(rule, value, np.ones(n, np.bool_)), kinds

    def _languages(self, chunk: str, verdicts: pa.Table) -> tuple[list[str], I64, npt.NDArray[np.bool_]]:
        """Language of each document: as labelled where it got so far, else its script."""
        scripts = pc.fill_null(verdicts["script"], "").combine_chunks().dictionary_encode()
        names = list(scripts.dictionary.to_pylist())
        codes = scripts.indices.to_numpy().astype(np.int64)
        labelled = np.zeros(codes.size, np.bool_)
        output = self._labels.get(chunk)
        if output is not None and output.rows:
            labels = self.run.reader.checked(output, ("row", "language"))
            rows, found = (
                labels["row"].to_numpy(),
                pc.fill_null(labels["language"], "").combine_chunks().dictionary_encode(),
            )
            codes[rows] = found.indices.to_numpy().astype(np.int64) + len(names)
            names += found.dictionary.to_pylist()
            labelled[rows] = True
        return names, codes, labelled


def _by_this_code(run: OpenRun) -> set[str]:
    """Chunks whose statistics this very code, tables and libraries would make again."""
    step: Step = run.steps["filter"]
    done = run.index.finished("filter")
    found = set()
    for spec in plan_step(step, list(done), run.index, Numbers(1, 1, 1, 1, 1)):
        made, key = done[spec.partition].key, spec.key
        for _ in range(_RETRIES_KNOWN):
            if made == key:
                found.add(spec.partition)
                break
            key = retried(key)
    return found


def _before(rejects: pa.Table) -> Before:
    return Before(
        rejects["row"].to_numpy().astype(np.int64),
        np.array(rejects["rule"].to_pylist(), object),
        rejects["value"].to_numpy().astype(np.float64),
        rejects["bound"].to_numpy().astype(np.float64),
        np.array(rejects["side"].to_pylist(), object),
    )


def _codes(column: pa.ChunkedArray, names: tuple[str, ...]) -> I64:
    found: I64 = pc.index_in(column, value_set=pa.array(names)).to_numpy().astype(np.int64)
    return found


def _examples(reader: RunReader, texts: dict[str, Output], picks: list[Pick]) -> list[dict[str, Any]]:
    """What people are shown of each document, in the order of ``picks``; each chunk is read once."""
    columns = ("text", "source_id", "path", "position", "url")
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for chunk in sorted({pick.chunk for pick in picks}):
        wanted_rows = np.array(sorted(pick.row for pick in picks if pick.chunk == chunk), np.int64)
        for numbers, table in reader.pieces(texts[chunk], wanted_rows, columns):
            rows |= {
                (chunk, row): found for row, found in zip(numbers.tolist(), table.to_pylist(), strict=True)
            }
    return [_example(pick, rows[pick.chunk, pick.row]) for pick in picks]


def _example(pick: Pick, row: dict[str, Any]) -> dict[str, Any]:
    numbers = {"value": pick.value, "old_bound": pick.old_bound, "new_bound": pick.new_bound}
    return {
        "change": pick.change,
        "doc_id": pick.doc_id.hex(),
        "rule": pick.rule,
        "side": pick.side,
        **{name: None if math.isnan(number) else number for name, number in numbers.items()},
        "source_id": row["source_id"],
        "path": row["path"],
        "position": row["position"],
        "url": row["url"],
        "text": row["text"][:_SNIPPET],
    }
