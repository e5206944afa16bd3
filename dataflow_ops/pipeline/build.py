"""The only wiring: which class is behind each step, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dataflow_ops.clients.language import BundledDetector
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
from dataflow_ops.layers.ingest.listing import LISTED
from dataflow_ops.layers.mix.draw import draw_key
from dataflow_ops.layers.mix.label import LabelStep
from dataflow_ops.layers.mix.plan import PlanStep
from dataflow_ops.layers.parse import wire
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
    # The child is started with the first document that needs it.
    guard = ParseGuard(
        wire.TARGET, settings.parse.cpu_seconds, settings.parse.memory_mb, wire.preload(settings.sources)
    )
    steps: list[Step] = [
        DiscoverStep(settings, listing if listing is not None else LISTED.empty_table()),
        FetchStep(settings),
        ParseStep(settings, guard),
        rules,
        SignStep(settings),
        ExactStep(settings),
        MatchStep(settings),
        GatherStep(settings),
        VerifyStep(settings),
        UniteStep(settings),
        ConfirmStep(settings),
        ScoreStep(settings),
        LabelStep(settings, load_tokenizer(settings.mixing.tokenizer), BundledDetector()),
        PlanStep(settings),
        ScatterStep(settings, rules.rules_tag(), draw_key),
        ExportStep(settings),
    ]
    for step, (name, layer, by) in zip(steps, STEPS, strict=True):
        assert (step.name, step.layer, step.partitioned_by) == (name, layer, by), step.name
    return {step.name: step for step in steps}
