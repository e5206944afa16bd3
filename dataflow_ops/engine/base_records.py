"""Outputs of the version that an incremental run builds on, among the run's own: under the step ``base``.

A chunk's number there is a hash of the version that it belongs to and of its own number: the same files may
be the same chunk in several runs. Everything recorded of the run itself is passed on as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dataflow_ops.engine.inputs import RecordSource
from dataflow_ops.values import Output, TaskRecord

BASE = "base"

KINDS: Mapping[str, tuple[str, str]] = {
    "keys": ("sign", "keys"),
    "bands": ("sign", "bands"),
    "text": ("parse", "text"),
    "files": ("fetch", "files"),
    "fates": ("scatter", "fates"),
}
"""Kind -> step and kind of what the runs wrote by chunk."""


FILTERS: Mapping[str, tuple[str, str]] = {
    "key_filter": ("exact", "groups"),
    "band_filter": ("match", "buckets"),
}
"""Kind of filter -> step that writes it, and another output that every task of it has."""


@dataclass(frozen=True, slots=True)
class BasePart:
    """One version of the chain below a run.

    Attributes:
        manifest_sha256: of the version.
        run_id: the run that made it.
    """

    manifest_sha256: str
    run_id: str


def alias(part: BasePart, chunk: str) -> str:
    """A chunk's name among those of the whole chain."""
    return hashlib.sha256(f"{part.manifest_sha256}\x00{chunk}".encode()).hexdigest()[:16]


def record_source(own: RecordSource, parts: Sequence[BasePart]) -> RecordSource:
    """Where a run's planning looks: at its own records, and at those of the versions below it.

    Args:
        own: the state store.
        parts: versions below, the lowest first; the last one is what the run builds on.
    """
    return WithBase(own, parts) if parts else own


class WithBase:
    """A :class:`~dataflow_ops.engine.inputs.RecordSource` that knows the step ``base``."""

    def __init__(self, own: RecordSource, parts: Sequence[BasePart]) -> None:
        self._own, self._parts = own, parts

    def records_of_step(self, run_id: str, step: str) -> Mapping[str, TaskRecord]:
        """See the protocol. Nobody may make a task of another run's again, so there is none of the base."""
        return {} if step == BASE else self._own.records_of_step(run_id, step)

    def outputs_of_step(self, run_id: str, step: str, kind: str) -> Mapping[str, Output]:
        """See the protocol."""
        if step != BASE:
            return self._own.outputs_of_step(run_id, step, kind)
        if kind == "gone":
            # What is gone from the versions below the last one, it knows itself.
            return self._own.outputs_of_step(self._parts[-1].run_id, "supersede", "gone")
        if kind in FILTERS:
            return self._filters(*FILTERS[kind])
        found: dict[str, Output] = {}
        for number, part in enumerate(self._parts):
            if kind == "removed":
                for root, output in self._own.outputs_of_step(part.run_id, "confirm", "removed").items():
                    named = tuple(replace(s, name=alias(part, s.name)) for s in output.slices)
                    found[f"{number}.{root}"] = replace(output, slices=named)
                continue
            # A chunk that was given up on its way gave the version nothing: there is nothing of it to be
            # replaced, and a new document that says the same must stay.
            told = self._own.outputs_of_step(part.run_id, *KINDS["fates"])
            for chunk, output in self._own.outputs_of_step(part.run_id, *KINDS[kind]).items():
                if chunk in told:
                    found[alias(part, chunk)] = output
        return found

    def _filters(self, step: str, beside: str) -> Mapping[str, Output]:
        """Filters of all parts, each as a slice named by its range of keys; none unless every part has all of
        its own: what has no filter may hold anything.
        """
        found: dict[str, Output] = {}
        for number, part in enumerate(self._parts):
            filters = self._own.outputs_of_step(part.run_id, step, "filter")
            if set(filters) != set(self._own.outputs_of_step(part.run_id, step, beside)):
                return {}
            for partition, output in filters.items():
                named = tuple(replace(s, name=partition) for s in output.slices)
                found[f"{number}.{partition}"] = replace(output, slices=named)
        return found
