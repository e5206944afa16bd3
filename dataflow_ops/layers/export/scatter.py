"""Every document's fate; and the drawn ones, with their text, on their way to their shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops import schema
from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels.arrow import hex_strings
from dataflow_ops.layers.export import fates
from dataflow_ops.layers.export.columns import FROM_LABELS, FROM_PARSE, ROUTED
from dataflow_ops.layers.export.fates import ByRow, FateBuilder
from dataflow_ops.layers.export.routing import DrawKey, Routed, Router
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Known:
    """What earlier steps said about this chunk."""

    unparsed: pa.Table
    rejects: ByRow
    duplicates: ByRow
    labels: ByRow
    scores: ByRow
    router: Router


class ScatterStep:
    """Joins all verdicts. Text leaves here once more, cut by shard group.

    Args:
        settings: the job.
        rules_tag: name and version of the rule set; goes into every exported row.
        draw_key: ``(ids, seed) -> uint64``, the very hash that the plan was made with.

    """

    name = "scatter"
    layer = "export"
    partitioned_by: Partitioning = "chunk"
    inputs = (
        Input("parse", "text", "aligned", ("doc_id", *FROM_PARSE.values())),
        Input("filter", "verdicts", "aligned", ("kept",)),
        Input("filter", "rejects", "same", ("row", "rule", "value", "bound")),
        Input("parse", "rejects", "same"),
        Input("confirm", "losses", "slice"),
        Input("label", "labels", "same"),
        Input("score", "scores", "same"),
        Input("plan", "draw", "slice"),
        Input("plan", "places", "all"),
    )
    outputs = (OutputSpec("rows", ROUTED, "shard_group"), OutputSpec("fates", schema.FATES))
    version = 1

    def __init__(self, settings: JobSettings, rules_tag: str, draw_key: DrawKey) -> None:
        self._seed = settings.mixing.seed
        self._min_score = settings.clean.language.min_score
        self._rules = rules_tag
        self._draw_key = draw_key
        self._suffix = settings.output.format

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`."""
        return {
            "version": self.version,
            "rules": self._rules,
            "seed": self._seed,
            "min_score": self._min_score,
            "format": self._suffix,
        }

    def open(self, side: Side) -> object:
        """Load what is known about this chunk."""
        router = Router(
            side.table("plan", "draw"),
            side.table("plan", "places"),
            self._draw_key,
            self._seed,
            side.numbers.shard_groups,
        )
        return _Known(
            side.table("parse", "rejects").combine_chunks(),
            ByRow.of(side.table("filter", "rejects")),
            ByRow.of(side.table("confirm", "losses")),
            ByRow.of(side.table("label", "labels")),
            ByRow.of(side.table("score", "scores")),
            router,
        )

    def process(self, batch: pa.Table, first_row: int, state: object) -> StepResult:
        """See :class:`~dataflow_ops.protocols.MapStep`. Records without text go with the first batch.

        Raises:
            ConservationError: a document has no fate, two, or one that contradicts its verdict.

        """
        assert isinstance(state, _Known)
        last = first_row + batch.num_rows
        builder = FateBuilder(batch)
        rejected = self._rejected(builder, batch, *state.rejects.between(first_row, last))
        removed, table = state.duplicates.between(first_row, last)
        builder.put(removed, fates.DUPLICATE, "confirm", table["verdict"])
        builder.survivors(removed, table["survivor_id"])
        builder.numbers(removed, similarity=table["similarity"].to_numpy())
        at, labels = state.labels.between(first_row, last)
        builder.copies(at, labels["copies"].to_numpy())
        refused = pc.not_equal(labels["verdict"], "").to_numpy()
        rejected += self._refused(builder, at[refused], labels.filter(pa.array(refused)))
        at, labels = at[~refused], labels.filter(pa.array(~refused)).combine_chunks()
        routed = state.router.route(labels)
        drawn = np.zeros(len(at), bool)
        drawn[routed.label] = True
        builder.put(at[~drawn], fates.NOT_SAMPLED, "plan")
        builder.put(at[drawn], fates.EXPORTED, "export")
        first_time = routed.repetition == 0
        first_shards = routed.shard[first_time]
        builder.shards(at[drawn], first_shards, self._shard_names(state.router, first_shards))
        table = builder.table()
        skipped = {
            "rejected_before": rejected,
            "duplicate": len(removed),
            "not_sampled": int((~drawn).sum()),
        }
        if first_row == 0 and state.unparsed.num_rows:
            table = pa.concat_tables([fates.of_parse_rejects(state.unparsed), table])
            skipped["rejected_before"] += state.unparsed.num_rows
        _, scores = state.scores.between(first_row, last)
        rows = self._rows(batch, at, labels, scores, routed, first_row, state.router)
        counts = Counts(
            documents_in=table.num_rows,
            kept=int(drawn.sum()),
            skipped=skipped,
            documents_out=rows.num_rows,
            tokens_out=int(pc.sum(rows["tokens"]).as_py() or 0),
        )
        return StepResult(outputs={"rows": rows, "fates": table}, counts=counts)

    def _rejected(self, builder: FateBuilder, batch: pa.Table, at: Indices, rejects: pa.Table) -> int:
        """Fates of what filter refused; the verdicts and the rejects must name the same documents."""
        refused = np.flatnonzero(~batch["kept"].to_numpy())
        if not np.array_equal(refused, at):
            raise ConservationError(
                f"scatter: filter refuses {len(refused)} documents, but filter.rejects explains {len(at)}"
            )
        builder.put(at, fates.REJECTED, "filter", rejects["rule"])
        builder.numbers(at, value=rejects["value"].to_numpy(), bound=rejects["bound"].to_numpy())
        return len(at)

    def _refused(self, builder: FateBuilder, at: Indices, labels: pa.Table) -> int:
        """Fates of what label refused for its language."""
        builder.put(at, fates.REJECTED, "label", labels["verdict"])
        by_score = pc.equal(labels["verdict"], "language_score").to_numpy()
        bound = np.where(by_score, self._min_score, np.nan)
        builder.numbers(at, value=labels["language_score"].to_numpy().astype(np.float64), bound=bound)
        return len(at)

    def _shard_names(self, router: Router, shards: npt.NDArray[np.int32]) -> dict[int, str]:
        return {int(s): f"{router.name(int(s))}.{self._suffix}" for s in np.unique(shards)}

    def _rows(
        self,
        batch: pa.Table,
        at: Indices,
        labels: pa.Table,
        scores: pa.Table,
        routed: Routed,
        first_row: int,
        router: Router,
    ) -> pa.Table:
        """The drawn documents with their text, ascending by row, then repetition."""
        n = len(routed.label)
        documents = batch.take(pa.array(at[routed.label]))
        labelled = labels.take(pa.array(routed.label))
        where = np.searchsorted(scores["row"].to_numpy(), at[routed.label] + first_row)
        columns: dict[str, Any] = {
            "id": hex_strings(documents["doc_id"]),
            **{name: documents[column] for name, column in FROM_PARSE.items()},
            **{name: labelled[name] for name in FROM_LABELS},
            "quality_score": scores["score"].take(pa.array(where)),
            "epoch_start": pa.array(routed.epoch_start),
            "epoch_end": pa.array(routed.epoch_end),
            "repetition": pa.array(routed.repetition),
            "rules_passed": pa.repeat(pa.scalar(self._rules, pa.string()), n),
            "shard": pa.array(routed.shard),
            "order": pa.array(routed.order),
        }
        table = pa.table([columns[f.name] for f in ROUTED], schema=ROUTED)
        return table.append_column("slice", pa.array(router.group(routed.shard)).cast(pa.string()))
