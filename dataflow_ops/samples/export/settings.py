"""What an export holds. All of it goes into the task, so that the same export gives the same bytes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dataflow_ops.section import Section

Status = Literal["NEW", "KEPT", "REJECTED", "DUPLICATE"]


class SampleExportSettings(Section):
    """An export.

    Attributes:
        form: ``messages`` as they are, or ``instruction`` triples with the history of earlier turns.
        compression: of each shard.
        shard_records: records of a shard; the last one has fewer. Null: one shard.
        status: of the dialogues; ``NEW`` is what was never cleaned.
        originals: the dialogues themselves. Off: only what models answered.
        answers_of: augmentations whose results go along.
        min_score: dialogues with a lower score (of any scoring in ``answers_of``) stay out; null: all go.
    """

    form: Literal["messages", "instruction"] = "messages"
    compression: Literal["none", "gz", "zst"] = "none"
    shard_records: Annotated[int, Field(ge=1)] | None = 50_000
    status: tuple[Status, ...] = Field(default=("KEPT",), min_length=1)
    originals: bool = True
    answers_of: tuple[str, ...] = ()
    min_score: float | None = None
