"""What a template would send, for people who write one: with an example, or with samples of theirs."""

from __future__ import annotations

from typing import Any, Final

from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.augment.render import render
from dataflow_ops.samples.augment.requests import body_of
from dataflow_ops.samples.augment.templates import Template
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.samples.targets import (
    Turn,
    Wanted,
    next_targets,
    read_dialogues,
    ready_files,
)

EXAMPLE: Final = (
    ("system", "You are a helpful assistant."),
    ("user", "What is the capital of France?"),
    ("assistant", "Paris."),
    ("user", "用中文再说一遍。"),
    ("assistant", "法国的首都是巴黎。"),
)
"""The dialogue that stands in where no data set is named."""
_HIGHEST: Final = 2**62


def preview(template: Template, store: SampleStore | None = None, dataset: str = "") -> dict[str, Any]:
    """The first request of a template, as it would be sent.

    Args:
        template: what is asked.
        store: the samples; None takes :data:`EXAMPLE`.
        dataset: whose first fitting turn is taken.

    Returns:
        ``sample_id`` (None for the example), ``turn``, ``role`` and ``body``.

    Raises:
        ConfigError: no turn fits the template's target.
    """
    dialogue, target = _example(template) if store is None else _first(template, store, dataset)
    return {
        "sample_id": None if store is None else target.sample_id,
        "turn": target.turn,
        "role": target.role,
        "body": body_of(template, render(template, dialogue, target, 0), 0),
    }


def _example(template: Template) -> tuple[list[Turn], Turn]:
    turns = [Turn(i, "example", 0, i, role, text, {}) for i, (role, text) in enumerate(EXAMPLE)]
    fits = [turn for turn in turns if turn.role in template.target.roles]
    if not fits:
        raise ConfigError(
            f"target.roles: the example has no turn of {', '.join(template.target.roles)}; name a data set"
            " with --dataset to see one of its turns"
        )
    return turns, fits[-1] if template.target.turns == "last" else fits[0]


def _first(template: Template, store: SampleStore, dataset: str) -> tuple[list[Turn], Turn]:
    target = template.target
    wanted = Wanted(target.turns, target.roles, target.status, _HIGHEST)
    with store.read() as connection:
        for file in ready_files(connection, dataset):
            for turn in next_targets(connection, wanted, file, (0, 0), 1):
                return read_dialogues(connection, file, [turn.row], _HIGHEST)[turn.row], turn
    raise ConfigError(
        f"data set {dataset!r} has no turn that fits: roles {', '.join(target.roles)},"
        f" status {', '.join(target.status)}"
    )
