"""Which recorded slices a task reads, and the content key that follows from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dataflow_ops.errors import StateError
from dataflow_ops.protocols import Input, Step
from dataflow_ops.values import Numbers, Output, Slice, TaskRecord, TaskSpec

Pieces = Mapping[tuple[str, str], Sequence["Piece"]]


@dataclass(frozen=True, slots=True)
class Piece:
    """One slice of one producer partition's output."""

    partition: str
    output: Output
    slice: Slice


class RecordSource(Protocol):
    """The part of the state store that planning needs."""

    def records_of_step(self, run_id: str, step: str) -> Mapping[str, TaskRecord]:
        """Key -> record, for all tasks of a run's step."""

    def outputs_of_step(self, run_id: str, step: str, kind: str) -> Mapping[str, Output]:
        """Partition -> output of one kind, for the finished tasks of a run's step."""


@runtime_checkable
class BySource(Protocol):
    """A chunk step on which settings of single sources act."""

    def fingerprint_of(self, source_id: str) -> Mapping[str, object]:
        """The fingerprint for chunks of one source: without what acts on other sources only."""


class OutputIndex:
    """Outputs of a run's finished tasks, loaded once per step and kind, found by partition and slice."""

    def __init__(self, records: RecordSource, run_id: str) -> None:
        self._records = records
        self._run_id = run_id
        self._steps: dict[str, dict[str, TaskRecord]] = {}
        self._outputs: dict[tuple[str, str], Mapping[str, Output]] = {}
        self._slices: dict[tuple[str, str], dict[str, list[Piece]]] = {}

    def forget(self, step: str | None = None) -> None:
        """Load again on next use: one step, or all."""
        if step is None:
            self._steps.clear()
            self._outputs.clear()
            self._slices.clear()
            return
        self._steps.pop(step, None)
        for loaded in (self._outputs, self._slices):
            for name in [n for n in loaded if n[0] == step]:
                del loaded[name]

    def finished(self, step: str) -> Mapping[str, TaskRecord]:
        """Partition -> record of the step's successful tasks, in ascending order of partition."""
        if step not in self._steps:
            records = self._records.records_of_step(self._run_id, step).values()
            done = {r.partition: r for r in records if r.state == "SUCCESS"}
            self._steps[step] = {p: done[p] for p in sorted(done, key=partition_order)}
        return self._steps[step]

    def outputs(self, step: str, kind: str) -> list[tuple[str, Output]]:
        """``(partition, output)`` of one kind from every finished task of a step, by partition."""
        found = self._of_kind(step, kind)
        return [(p, found[p]) for p in sorted(found, key=partition_order)]

    def output(self, step: str, kind: str, partition: str) -> Output:
        """One task's output.

        Raises:
            StateError: the task has not finished, or has no such output.
        """
        output = self._of_kind(step, kind).get(partition)
        if output is None:
            raise StateError(f"{step}.{kind} of partition {partition} is not there; run step '{step}' first")
        return output

    def _of_kind(self, step: str, kind: str) -> Mapping[str, Output]:
        name = (step, kind)
        if name not in self._outputs:
            self._outputs[name] = self._records.outputs_of_step(self._run_id, step, kind)
        return self._outputs[name]

    def pieces(self, item: Input, partition: str) -> list[Piece]:
        """What one declared input means for one partition; empty slices are left out."""
        if item.take in ("aligned", "same"):
            output = self.output(item.step, item.kind, partition)
            return [Piece(partition, output, whole(output))]
        if item.take == "all":
            return [Piece(p, o, whole(o)) for p, o in self.outputs(item.step, item.kind)]
        if item.take == "pointer":
            return []
        name = (item.step, item.kind)
        if name not in self._slices:
            by_slice: dict[str, list[Piece]] = {}
            for producer, output in self.outputs(item.step, item.kind):
                for part in output.slices:
                    if part.length:
                        by_slice.setdefault(part.name, []).append(Piece(producer, output, part))
            self._slices[name] = by_slice
        return self._slices[name].get(partition, [])


def whole(output: Output) -> Slice:
    """An output read in one piece."""
    if len(output.slices) == 1 and not output.slices[0].name:
        return output.slices[0]
    return Slice("", 0, output.size, output.sha256, output.rows)


def partition_order(partition: str) -> tuple[int, str]:
    """Sort key: prefix numbers by value, chunk ids (16 hex digits) by text."""
    return (int(partition), "") if partition.isdecimal() and len(partition) < 16 else (-1, partition)


def resolve(step: Step, partition: str, index: OutputIndex) -> Pieces:
    """All inputs of one task: ``(step, kind) -> pieces`` in order of the producers' partitions."""
    return {(i.step, i.kind): index.pieces(i, partition) for i in step.inputs}


def fingerprint_digest(step: Step, source_id: str = "") -> str:
    """Hex SHA-256 of a step's fingerprint; for chunks of one source where one is named."""
    if source_id and isinstance(step, BySource):
        return digest_of(step.fingerprint_of(source_id))
    return digest_of(step.fingerprint())


def digest_of(fingerprint: Mapping[str, object]) -> str:
    """Hex SHA-256 of a mapping in canonical JSON."""
    text = json.dumps(fingerprint, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"a fingerprint holds JSON values only, not {type(value).__name__}")


def task_key(step: str, fingerprint: str, partition: str, pieces: Pieces, dead: Sequence[str] = ()) -> str:
    """Content key of a task: equal inputs and equal settings give an equal key.

    Args:
        step: step name.
        fingerprint: :func:`fingerprint_digest` of the step.
        partition: the task's partition; it stands in ids inside the output.
        pieces: resolved inputs; ordered, pointer inputs hold none.
        dead: partitions of the producer that died (reduces only), so that a result over survivors is
            never taken for the whole.
    """
    lines = [f"{step}\n{fingerprint}\n{partition}\n"]
    for (producer, kind), parts in pieces.items():
        lines.append(f"<{producer}.{kind}\n")
        for piece in parts:
            part = piece.slice
            if part.rows or part.length:
                lines.append(f"{piece.partition} {part.sha256}\n")
    lines.extend(f"!{name}\n" for name in dead)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def retried(key: str) -> str:
    """The key of a task whose dead letters were put back: what was committed under the old one stays."""
    return hashlib.sha256(f"{key} retried".encode()).hexdigest()


def plan_step(
    step: Step,
    partitions: Sequence[str],
    index: OutputIndex,
    numbers: Numbers,
    dead: Sequence[str] = (),
    sources: Mapping[str, str] | None = None,
) -> list[TaskSpec]:
    """The tasks of a step, with their keys, in the order of ``partitions``.

    Args:
        step: what is planned.
        partitions: of the step.
        index: outputs of the run.
        numbers: the run's ranges.
        dead: chunks given up before this step.
        sources: chunk -> its source, for steps that are :class:`BySource`.
    """
    # Into how many slices an output is cut shapes its bytes as any setting does.
    counts = {
        "key_prefix": numbers.key_prefixes,
        "band_prefix": numbers.band_prefixes,
        "block": numbers.blocks,
        "root_prefix": numbers.root_prefixes,
        "shard_group": numbers.shard_groups,
    }
    cut = [f"{o.kind}/{counts[o.slice_by]}" for o in step.outputs if o.slice_by in counts]
    lost = dead if step.partitioned_by != "chunk" else ()
    of = sources if sources is not None and isinstance(step, BySource) else {}
    digests = {source: " ".join([fingerprint_digest(step, source), *cut]) for source in {"", *of.values()}}
    return [
        TaskSpec(
            task_key(step.name, digests[of.get(p, "")], p, resolve(step, p, index), lost),
            step.name,
            step.layer,
            p,
        )
        for p in partitions
    ]
