"""What a clean-up does. All of it goes into the task, so that the result can be told from it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dataflow_ops.section import Section
from dataflow_ops.settings import (
    BoilerplateFilter,
    CleanSettings,
    DedupSettings,
    JobSettings,
    Share,
    VerifySettings,
)


class DialogueSettings(Section):
    """What is asked of a dialogue as such.

    Attributes:
        answer: an assistant turn that says or calls something. Off: the model may still have to give it.
        max_turns: more are refused; null: any number.
        outer_blanks: white space before and after a turn's content is taken off.
    """

    answer: bool = False
    max_turns: Annotated[int, Field(ge=1)] | None = None
    outer_blanks: bool = True


class NearSettings(Section):
    """Near duplicates among dialogues.

    Attributes:
        scope: compare with what was kept of the whole data set, or of the task's own files alone.
        min_characters: shorter key texts are only compared for being equal: in a short dialogue one other
            number is another sample.
        max_candidates: kept dialogues that one is compared with, those with most bands in common first.
    """

    scope: Literal["dataset", "files"] = "dataset"
    min_characters: Annotated[int, Field(ge=0)] = 200
    max_candidates: Annotated[int, Field(ge=1)] = 64


class SampleLengths(BoilerplateFilter):
    """A short dialogue is none the worse for it."""

    min_text_len: Annotated[int, Field(ge=0)] = 1


class SampleRules(CleanSettings):
    """``clean`` of a job file, with a length that suits dialogues."""

    boilerplate_filter: SampleLengths = SampleLengths()

    @model_validator(mode="after")
    def _no_languages(self) -> Self:
        if self.language.keep:
            raise ValueError("language.keep: the language of samples is not told; leave it out")
        return self


class SampleVerify(VerifySettings):
    """Questions that share a long frame are more alike than documents that say the same."""

    min_similarity: Share = 0.9


class SampleDedup(DedupSettings):
    """``dedup`` of a job file, with a similarity that suits dialogues."""

    verify: SampleVerify = SampleVerify()


class SampleCleanSettings(Section):
    """A clean-up: sections ``clean`` and ``dedup`` as in a job file, and what only dialogues have."""

    clean: SampleRules = SampleRules()
    dedup: SampleDedup = SampleDedup()
    dialogue: DialogueSettings = DialogueSettings()
    near: NearSettings = NearSettings()
    batch_rows: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000

    def job(self) -> JobSettings:
        """The same sections as a job of documents has them, for the rules and kernels that take one."""
        return JobSettings.model_validate(
            {"dataset": {"id": "samples"}, "clean": self.clean.model_dump(), "dedup": self.dedup.model_dump()}
        )
