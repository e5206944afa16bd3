"""Metrics of a run, and of the relay, in the Prometheus text exposition format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.state.delivery_desk import Backlog

_Sample = tuple[Mapping[str, str], float]


def exposition(metrics: RunMetrics, dataset: str) -> str:
    """Render all metrics of a run; every series carries the data set's name.

    Series names follow the conventions: base units, ``_total`` on counters. Deterministic order.
    """
    documents: list[_Sample] = []
    skipped: list[_Sample] = []
    rules: list[_Sample] = []
    extra: list[_Sample] = []
    series: dict[str, list[_Sample]] = {name: [] for name in _PER_STEP}
    for s in metrics.steps:
        where = {"dataset": dataset, "layer": s.layer, "step": s.step}
        c = s.counts
        for outcome, n in (
            ("in", c.documents_in),
            ("kept", c.kept),
            ("rejected", c.rejected),
            ("dead", c.dead),
        ):
            documents.append(({**where, "outcome": outcome}, n))
        documents.append(({**where, "outcome": "out"}, c.documents_out))
        skipped += [({**where, "reason": r}, n) for r, n in sorted(c.skipped.items())]
        rules += [({**where, "rule": r}, n) for r, n in sorted(s.rule_hits.items())]
        extra += [({**where, "name": name}, v) for name, v in sorted(s.metrics.items())]
        values = (c.bytes_in, c.tokens_out, s.seconds_cpu, s.seconds_tasks, s.tasks, s.tasks_skipped)
        for name, value in zip(_PER_STEP, values, strict=True):
            series[name].append((where, value))
    dead: list[_Sample] = [
        (
            {
                "dataset": dataset,
                "step": g.step,
                "level": g.level,
                "error": g.error,
                "parser": g.parser,
                "host": g.host,
                "media_type": g.media_type,
            },
            g.count,
        )
        for g in metrics.dead_letters
    ]
    blocks = [
        _block("dataflow_documents_total", "counter", "Records by step and outcome.", documents),
        _block("dataflow_skipped_total", "counter", "Records that were not the step's business.", skipped),
        _block("dataflow_rule_rejections_total", "counter", "Records rejected, by rule.", rules),
        *(_block(name, kind, text, series[name]) for name, (kind, text) in _PER_STEP.items()),
        _block("dataflow_dead_letters", "gauge", "Dead letters of the run.", dead),
        _block("dataflow_step_metric", "gauge", "Further numbers that a step reports.", extra),
    ]
    return "".join(blocks)


def relay_exposition(backlogs: Iterable[Backlog]) -> str:
    """Render how far the relay is, by endpoint."""
    found = list(backlogs)

    def of(number: Callable[[Backlog], float]) -> list[_Sample]:
        return [({"endpoint": one.endpoint}, number(one)) for one in found]

    blocks = [
        _block("dataflow_relay_waiting_events", "gauge", "Events not accepted yet.", of(lambda b: b.waiting)),
        _block(
            "dataflow_relay_oldest_seconds",
            "gauge",
            "Age of the oldest event that waits; 0 where none does.",
            of(lambda b: b.oldest_s or 0.0),
        ),
        _block("dataflow_relay_dead_events", "gauge", "Events refused or given up.", of(lambda b: b.dead)),
        _block(
            "dataflow_relay_sent_events", "gauge", "Events accepted, of those kept.", of(lambda b: b.sent)
        ),
        _block(
            "dataflow_relay_last_sent_timestamp_seconds",
            "gauge",
            "When the last event was accepted.",
            [({"endpoint": b.endpoint}, b.last_sent_at) for b in found if b.last_sent_at is not None],
        ),
    ]
    return "".join(blocks)


_PER_STEP: dict[str, tuple[str, str]] = {
    "dataflow_bytes_in_total": ("counter", "Payload bytes read."),
    "dataflow_tokens_out_total": ("counter", "Tokens written."),
    "dataflow_cpu_seconds_total": ("counter", "CPU time of all tasks."),
    "dataflow_task_seconds_total": ("counter", "Time of all tasks together."),
    "dataflow_tasks_total": ("counter", "Tasks of the step."),
    "dataflow_tasks_skipped_total": ("counter", "Tasks that an earlier run had done."),
}


def _block(name: str, kind: str, text: str, samples: Iterable[_Sample]) -> str:
    lines = [f"{name}{{{_labels(labels)}}} {value:.17g}\n" for labels, value in samples]
    if not lines:
        return ""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n" + "".join(lines)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
