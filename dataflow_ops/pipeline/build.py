"""The only wiring: which class is behind each step, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.clients.tokenizer import load_tokenizer
from dataflow_ops.engine.context import RunContext
from dataflow_ops.engine.parse_guard import ParseGuard
from dataflow_ops.layers.dedup.confirm import ConfirmStep
from dataflow_ops.layers.dedup.exact import ExactStep
from dataflow_ops.layers.dedup.gather import GatherStep
from dataflow_ops.layers.dedup.match import MatchStep
from dataflow_ops.layers.dedup.sign import SignStep
from dataflow_ops.layers.dedup.unite import UniteStep
from dataflow_ops.layers.dedup.verify import VerifyStep
from dataflow_ops.layers.export.scatter import ScatterStep
from dataflow_ops.layers.export.shards import ExportStep
from dataflow_ops.layers.filter.step import FilterStep
from dataflow_ops.layers.ingest.discover import DiscoverStep
from dataflow_ops.layers.ingest.fetch import FetchStep
from dataflow_ops.layers.mix.label import LabelStep
from dataflow_ops.layers.mix.plan import PlanStep
from dataflow_ops.layers.parse.step import ParseStep
from dataflow_ops.layers.score.step import ScoreStep
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.protocols import Step


def build_steps(context: RunContext, listing: pa.Table | None = None) -> Mapping[str, Step]:
    """All steps of a run by name, in order.

    Args:
        context: the run.
        listing: what the sources hold; only the coordinating process lists them, and only its
            ``discover`` is ever run.
    """
    settings = context.settings
    rules = FilterStep(settings)
    steps: list[Step] = [
        DiscoverStep(settings, listing if listing is not None else schema.FILES.empty_table()),
        FetchStep(settings),
        ParseStep(settings, guard=ParseGuard(settings.parse)),
        rules,
        SignStep(settings),
        ExactStep(settings),
        MatchStep(settings),
        GatherStep(settings),
        VerifyStep(settings),
        UniteStep(settings),
        ConfirmStep(settings),
        ScoreStep(settings),
        LabelStep(settings, load_tokenizer(settings.mixing.tokenizer)),
        PlanStep(settings),
        ScatterStep(settings, rules_tag=rules.rules_tag()),
        ExportStep(settings),
    ]
    for step, (name, layer, by) in zip(steps, STEPS, strict=True):
        assert (step.name, step.layer, step.partitioned_by) == (name, layer, by), step.name
    return {step.name: step for step in steps}
