"""The only wiring: which class is behind each step, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from dataflow_ops.engine.base_records import BASE
from dataflow_ops.engine.context import RunContext
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.protocols import Step
from dataflow_ops.settings import JobSettings

if TYPE_CHECKING:
    import pyarrow as pa

Make = Callable[[JobSettings], Step]


class Steps(Mapping[str, Step]):
    """A run's steps by name, in order. Each is imported and made when it is first asked for.

    A task of an orchestrator runs one step: importing all of them costs half a second, and kernels as much
    again. ``dict(steps)`` makes all, which checks their settings.

    Args:
        settings: the job.
        listing: what the sources hold; only the coordinating process lists them.
    """

    def __init__(self, settings: JobSettings, listing: pa.Table | None = None) -> None:
        self._settings = settings
        self._listing = listing
        self._made: dict[str, Step] = {}

    def __getitem__(self, name: str) -> Step:
        if name == BASE:
            return _base()
        if name not in self._made:
            step = (
                _discover(self._settings, self._listing) if name == "discover" else MAKE[name](self._settings)
            )
            place = (step.name, step.layer, step.partitioned_by)
            assert place in STEPS, place
            self._made[name] = step
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _, _ in STEPS)

    def __len__(self) -> int:
        return len(STEPS)


def build_steps(context: RunContext, listing: pa.Table | None = None) -> Mapping[str, Step]:
    """All steps of a run by name, in order.

    Args:
        context: the run.
        listing: what the sources hold; only the coordinating process lists them, and only its
            ``discover`` is ever run.
    """
    return Steps(context.settings, listing)


def _discover(settings: JobSettings, listing: pa.Table | None) -> Step:
    from dataflow_ops.layers.ingest.discover import DiscoverStep
    from dataflow_ops.layers.ingest.listing import LISTED

    return DiscoverStep(settings, listing if listing is not None else LISTED.empty_table())


def _base() -> Step:
    """Stands for the steps of the runs below: it is never run, and tells what their outputs look like."""
    from dataflow_ops.layers.dedup.base import BaseOutputs

    return BaseOutputs()


def _fetch(settings: JobSettings) -> Step:
    from dataflow_ops.layers.ingest.fetch import FetchStep
    from dataflow_ops.pipeline.outside import OUTSIDE

    return FetchStep(settings, outside=OUTSIDE)


def _parse(settings: JobSettings) -> Step:
    from dataflow_ops.engine.parse_guard import ParseGuard
    from dataflow_ops.layers.parse import wire
    from dataflow_ops.layers.parse.step import ParseStep

    # The child is started with the first document that needs it.
    limits = settings.parse
    return ParseStep(
        settings,
        ParseGuard(wire.TARGET, limits.cpu_seconds, limits.memory_mb, wire.preload(settings.sources)),
    )


def _filter(settings: JobSettings) -> Step:
    from dataflow_ops.layers.filter.step import FilterStep

    return FilterStep(settings)


def _sign(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.sign import SignStep

    return SignStep(settings)


def _supersede(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.supersede import SupersedeStep

    return SupersedeStep(settings)


def _exact(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.exact import ExactStep

    return ExactStep(settings)


def _match(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.match import MatchStep

    return MatchStep(settings)


def _gather(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.gather import GatherStep

    return GatherStep(settings)


def _recall(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.recall import RecallStep

    return RecallStep(settings)


def _verify(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.verify import VerifyStep

    return VerifyStep(settings)


def _unite(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.unite import UniteStep

    return UniteStep(settings)


def _collect(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.collect import CollectStep

    return CollectStep(settings)


def _confirm(settings: JobSettings) -> Step:
    from dataflow_ops.layers.dedup.confirm import ConfirmStep

    return ConfirmStep(settings)


def _score(settings: JobSettings) -> Step:
    from dataflow_ops.layers.score.step import ScoreStep

    return ScoreStep(settings)


def _label(settings: JobSettings) -> Step:
    from dataflow_ops.clients.language import BundledDetector
    from dataflow_ops.clients.tokenizer import load_tokenizer
    from dataflow_ops.layers.mix.label import LabelStep

    return LabelStep(settings, load_tokenizer(settings.mixing.tokenizer), BundledDetector())


def _plan(settings: JobSettings) -> Step:
    from dataflow_ops.layers.mix.plan import PlanStep

    return PlanStep(settings)


def _scatter(settings: JobSettings) -> Step:
    from dataflow_ops.layers.export.scatter import ScatterStep
    from dataflow_ops.layers.filter.step import FilterStep
    from dataflow_ops.layers.mix.draw import draw_key

    return ScatterStep(settings, FilterStep(settings).rules_tag(), draw_key)


def _export(settings: JobSettings) -> Step:
    from dataflow_ops.layers.export.shards import ExportStep

    return ExportStep(settings)


MAKE: Final[Mapping[str, Make]] = {
    "fetch": _fetch,
    "parse": _parse,
    "filter": _filter,
    "sign": _sign,
    "supersede": _supersede,
    "exact": _exact,
    "match": _match,
    "gather": _gather,
    "recall": _recall,
    "verify": _verify,
    "unite": _unite,
    "collect": _collect,
    "confirm": _confirm,
    "score": _score,
    "label": _label,
    "plan": _plan,
    "scatter": _scatter,
    "export": _export,
}
"""Every step but ``discover``, which is given the listing."""
