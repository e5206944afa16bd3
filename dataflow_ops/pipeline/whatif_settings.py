"""What may be asked: the settings that bounds of the filter have, and how they differ from a run's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.settings import CleanSettings, JobSettings

RULES = "clean.quality_rules"
LENGTH = "clean.boilerplate_filter.min_text_len"
_MAX_LENGTH = "clean.boilerplate_filter.max_text_len"
_BEFORE_THE_FILTER = ("sources", "parse", "clean")
"""Sections that shape what the filter is given."""


@dataclass(frozen=True, slots=True)
class Question:
    """A job file with ``--set`` merged into it.

    Attributes:
        job: the settings that are asked about.

    """

    job: JobSettings

    @classmethod
    def of(cls, job: Path, overrides: Sequence[str]) -> Question:
        """Read the job file.

        Raises:
            ConfigError: as :func:`load_job`, or an override touches more than bounds of the filter.

        """
        for pair in overrides:
            key = pair.partition("=")[0].strip()
            if key not in (RULES, LENGTH) and not key.startswith(f"{RULES}."):
                instead = (
                    f" It also cuts texts when they are parsed; its bound alone is"
                    f" {RULES}.rules.length={{high: N}}."
                    if key == _MAX_LENGTH
                    else ""
                )
                raise ConfigError(
                    f"--set {key}: only bounds and rules of the filter can be asked about: {RULES} with all"
                    f" that is in it, and {LENGTH}.{instead} What other settings do, a run shows:"
                    f" dataflow run JOB --set {pair}"
                )
        return cls(load_job(job, overrides))

    def clean(self, of_run: JobSettings) -> CleanSettings:
        """The run's settings with the asked bounds: texts stay as they were parsed."""
        length = of_run.clean.boilerplate_filter.model_copy(
            update={"min_text_len": self.job.clean.boilerplate_filter.min_text_len}
        )
        update = {"quality_rules": self.job.clean.quality_rules, "boilerplate_filter": length}
        # Built anew, so that bounds which exclude each other are refused as in a job file.
        return CleanSettings.model_validate(of_run.clean.model_copy(update=update).model_dump())

    def differences(self, of_run: JobSettings) -> list[dict[str, Any]]:
        """Bounds and rules that are asked about and that the run had otherwise: ``key``, ``old``, ``new``."""
        before, after = _flat(of_run.clean), _flat(self.clean(of_run))
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        return [{"key": key, "old": before.get(key), "new": after.get(key)} for key in keys]

    def notes(self, of_run: JobSettings) -> list[str]:
        """What the job file now has otherwise than the run and this answer leaves aside."""
        asked, ran = self.job.model_dump(), of_run.model_dump()
        asked["clean"].pop("quality_rules")
        asked["clean"]["boilerplate_filter"].pop("min_text_len")
        odd = [
            name
            for name in _BEFORE_THE_FILTER
            # Sources given on the command line stand in no job file.
            if asked[name] and not _within(asked[name], ran[name])
        ]
        if not odd:
            return []
        return [
            f"the job file differs from the run in {', '.join(odd)}, before the filter; the answer is about"
            " the documents as the run had them"
        ]


def _within(asked: Any, ran: Any) -> bool:
    if isinstance(asked, Mapping):
        return all(_within(value, ran.get(key)) for key, value in asked.items())
    return bool(asked == ran)


def _flat(clean: CleanSettings) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping) and value:
            for key, inner in value.items():
                walk(f"{prefix}.{key}", inner)
        elif value not in ({}, ()):
            found[prefix] = list(value) if isinstance(value, tuple) else value

    walk("clean", clean.model_dump())
    return found
