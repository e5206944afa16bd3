"""What is changed in the content of a turn, one rule after the other, each change on record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dataflow_ops.layers.parse.normalise import TextRules, normalise
from dataflow_ops.samples.cleaning.dialogues import Turn
from dataflow_ops.samples.cleaning.settings import SampleCleanSettings

NORMALISE: Final = "normalise"
"""Control characters, line ends, composition: as the text of documents is stored."""
OUTER_BLANKS: Final = "outer_blanks"
"""White space around the content."""


@dataclass(frozen=True, slots=True)
class Change:
    """One rule's change to one column of one row."""

    sample_id: int
    ordinal: int
    rule: str
    field: str
    before: str
    after: str


class Normaliser:
    """Normalises turns as one clean-up says.

    Args:
        settings: of the clean-up.
    """

    def __init__(self, settings: SampleCleanSettings) -> None:
        stored = settings.clean.stored_text
        self._rules = TextRules(
            stored.unicode == "NFC", stored.lower_case, settings.clean.normalization.remove_control_chars
        )
        self._outer_blanks = settings.dialogue.outer_blanks

    def turn(self, turn: Turn, changes: list[Change]) -> tuple[Turn, int]:
        """The turn as it is to be, and how many control characters it had; what was done to it is added to
        ``changes``.
        """
        content = turn.content
        made = normalise(content, self._rules)
        steps = [(NORMALISE, made.text)]
        if self._outer_blanks:
            steps.append((OUTER_BLANKS, made.text.strip()))
        ordinal = 0
        for rule, after in steps:
            if after != content:
                changes.append(Change(turn.id, ordinal, rule, "data_content", content, after))
                content, ordinal = after, ordinal + 1
        changed = turn if content is turn.content else turn._replace(content=content)
        return changed, made.control_chars
