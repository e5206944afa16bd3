"""Which dialogues go on: rules about dialogues first, then those of documents on the whole text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from dataflow_ops.layers.filter.selection import select
from dataflow_ops.layers.filter.step import FilterStep, context_of
from dataflow_ops.layers.parse.parsers.dialogue import has_content
from dataflow_ops.samples.cleaning.dialogues import Dialogue
from dataflow_ops.samples.cleaning.settings import DialogueSettings, SampleCleanSettings
from dataflow_ops.schema import DOC_ID


def _empty(dialogue: Dialogue, settings: DialogueSettings) -> bool:
    return not has_content(dialogue.said)


def _no_answer(dialogue: Dialogue, settings: DialogueSettings) -> bool:
    return settings.answer and not has_content([t for t in dialogue.said if t["role"] == "assistant"])


def _too_many_turns(dialogue: Dialogue, settings: DialogueSettings) -> bool:
    return settings.max_turns is not None and len(dialogue.turns) > settings.max_turns


RULES: Final[dict[str, Callable[[Dialogue, DialogueSettings], bool]]] = {
    "empty_dialogue": _empty,
    "no_answer": _no_answer,
    "too_many_turns": _too_many_turns,
}
"""Name → whether a dialogue is refused; the first that does gives the reason."""


class Judge:
    """Judges dialogues as one clean-up says.

    Args:
        settings: of the clean-up.

    Raises:
        ConfigError: the settings name a rule that does not exist.
    """

    def __init__(self, settings: SampleCleanSettings) -> None:
        self._dialogue = settings.dialogue
        job = settings.job()
        self._filter = FilterStep(job)
        self._context = context_of(job.clean, select(job.clean))

    def refused(self, dialogues: Sequence[Dialogue], control_chars: Sequence[int]) -> list[str]:
        """The rule that refuses each dialogue, ``""`` where none does.

        Args:
            dialogues: normalised.
            control_chars: how many control characters were removed from each.
        """
        found = [self._first_rule(dialogue) for dialogue in dialogues]
        left = [i for i, rule in enumerate(found) if not rule]
        if not left:
            return found
        texts = [dialogues[i].text() for i in left]
        control = [control_chars[i] for i in left]
        batch = pa.table(
            {
                "doc_id": pa.array([i.to_bytes(16, "big") for i in left], DOC_ID),
                "text": pa.array(texts, pa.large_string()),
                "kind_hint": pa.array(["dialogue"] * len(left)),
                "raw_chars": pa.array([len(t) + c for t, c in zip(texts, control, strict=True)], pa.int32()),
                "control_chars": pa.array(control, pa.int32()),
            }
        )
        rejects = self._filter.process(batch, 0, self._context).outputs["rejects"]
        for row, rule in zip(rejects["row"].to_pylist(), rejects["rule"].to_pylist(), strict=True):
            found[left[row]] = rule
        return found

    def _first_rule(self, dialogue: Dialogue) -> str:
        for name, refuses in RULES.items():
            if refuses(dialogue, self._dialogue):
                return name
        return ""
