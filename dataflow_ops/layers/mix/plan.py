"""The sampling plan: what is drawn of every domain, into which shards, for which epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from dataflow_ops.layers.mix import plan_tables, tally
from dataflow_ops.layers.mix.columns import DOMAINS, DRAW, LABEL_OF, NOTES, PARTITIONS, PLACES
from dataflow_ops.layers.mix.draw import DRAW_VERSION
from dataflow_ops.layers.mix.notes import notes
from dataflow_ops.layers.mix.targets import targets
from dataflow_ops.layers.mix.threshold import cut
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult


class PlanStep:
    """One task over all labels, read twice.

    Args:
        settings: the job.

    """

    name = "plan"
    layer = "mix"
    partitioned_by: Partitioning = "all"
    outputs = (
        OutputSpec("domains", DOMAINS),
        OutputSpec("partitions", PARTITIONS),
        OutputSpec("draw", DRAW, "chunk"),
        OutputSpec("places", PLACES),
        OutputSpec("notes", NOTES),
    )
    version = 3

    def __init__(self, settings: JobSettings) -> None:
        self._mixing = settings.mixing
        self._shards = settings.output.shards
        self._keys = settings.output.partition_by
        extra = sorted(LABEL_OF[k] for k in self._keys if k != "domain")
        columns = ("doc_id", "domain", "tokens", "text_bytes", "verdict", *extra)
        self.inputs = (Input("label", "labels", "all", columns),)

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`; the tokenizer acts through the labels."""
        return {
            "version": self.version,
            "draw": DRAW_VERSION,
            "mixing": self._mixing.model_dump(mode="json", exclude={"tokenizer"}),
            "partition_by": list(self._keys),
            "shards": self._shards,
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """See :class:`~dataflow_ops.protocols.RunStep`.

        Raises:
            ShortageError: a domain is short and the job says ``on_shortage: fail``.

        """
        mixing = self._mixing

        chunks: list[str] = []

        def tables() -> Iterator[pa.Table]:
            chunks.clear()
            for chunk, table in side.tables("label", "labels"):
                chunks.append(chunk)
                yield tally.survivors(table, plan_tables.places(table, self._keys))

        supply = tally.count(tables, mixing.seed)
        wanted = targets({d: s.tokens for d, s in supply.items()}, mixing)
        found = {d: cut(s.histogram, wanted[d].drawn, mixing.max_repetition) for d, s in supply.items()}
        drawn = tally.draw(tables, mixing.seed, found)
        partitions = plan_tables.partition_rows(drawn.places, self._keys, self._shards)
        documents = sum(s.documents for s in supply.values())
        kept = sum(t.documents for t in drawn.domains.values())
        domains = plan_tables.domain_rows(wanted, supply, found, drawn, mixing)
        yield StepResult(
            outputs={
                "domains": domains,
                "partitions": partitions,
                "draw": plan_tables.draw_rows(chunks, domains, drawn),
                "places": partitions.select(PLACES.names),
                "notes": notes(wanted, supply, drawn, partitions, mixing, self._shards),
            },
            counts=Counts(
                documents_in=documents,
                kept=kept,
                skipped={"not_sampled": documents - kept},
                documents_out=sum(t.rows for t in drawn.domains.values()),
                tokens_out=sum(t.tokens for t in drawn.domains.values()),
            ),
        )
