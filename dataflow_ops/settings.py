"""The job file: YAML into frozen models. Errors name the key, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from dataflow_ops.section import Section
from dataflow_ops.source_settings import SourceSettings
from dataflow_ops.timing import IntervalSettings, RetentionSettings, ScheduleSettings, check_zone

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class DatasetSettings(Section):
    """Which data set the job makes."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    source: str = "default"
    """Name of the source when ``sources`` does not name one itself."""
    description: str = ""
    timezone: str = "UTC"

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, value: str) -> str:
        return check_zone(value)


class IngestSettings(Section):
    """How sources are cut and fetched."""

    chunk_mb: Annotated[float, Field(gt=0, le=4096)] = 256
    fetch_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    fetch_delay_s: Annotated[float, Field(ge=0)] = 0.5
    """Pause between two requests to one host."""
    fetch_max_mb: Annotated[float, Field(gt=0)] = 256
    user_agent: str = "dataflow-ops"


class ParseSettings(Section):
    """Limits per document in the guarded child."""

    cpu_seconds: Annotated[float, Field(gt=0)] = 10.0
    memory_mb: Annotated[int, Field(ge=64)] = 1024
    max_document_mb: Annotated[float, Field(gt=0)] = 256


class Normalization(Section):
    """``lower_case`` acts on the dedup key and the rules' view only, never on the stored text."""

    unicode: bool = True
    lower_case: bool = True
    remove_control_chars: bool = True


class StoredText(Section):
    """The only settings that alter what is stored."""

    unicode: Literal["none", "NFC"] = "NFC"
    lower_case: bool = False


class BoilerplateFilter(Section):
    """Bounds on length, in characters."""

    min_text_len: Annotated[int, Field(ge=0)] = 120
    max_text_len: Annotated[int, Field(ge=1)] = 500_000

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_text_len > self.max_text_len:
            raise ValueError(
                f"min_text_len ({self.min_text_len}) is above max_text_len ({self.max_text_len})"
            )
        return self


class RuleBounds(Section):
    """Bounds of one rule set by name; null keeps the rule's own."""

    low: float | None = None
    high: float | None = None


class QualityRules(Section):
    """Bounds of the gates. ``None`` keeps the rule's default; ``rules`` reaches every rule by name.

    Attributes:
        presets: ready rule sets added to the default one: ``gopher``, ``c4``, ``fineweb``.
        disable: rule names left out (their statistics are stored all the same).
        enable: rules that are off by default (``han_share``).
        rules: bounds by rule name; ``name.kind`` (``zlib_ratio.code``) for one kind of text.
    """

    max_bad_word_ratio: Share | None = None
    max_repetition_ratio: Share | None = None
    min_avg_sentence_len: Annotated[float, Field(ge=0)] | None = None
    max_avg_sentence_len: Annotated[float, Field(ge=0)] | None = None
    max_control_ratio: Share | None = None
    min_meaningful_ratio: Share | None = None
    max_replacement_ratio: Share | None = None
    min_zlib_ratio: Annotated[float, Field(ge=0)] | None = None
    max_top_ngram_coverage: Share | None = None
    min_entropy: Annotated[float, Field(ge=0)] | None = None
    bad_words: tuple[str, ...] = ()
    presets: tuple[Literal["gopher", "c4", "fineweb"], ...] = ()
    disable: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    rules: Mapping[str, RuleBounds] = Field(default_factory=dict)
    enabled: bool = True


class LanguageSettings(Section):
    """Acts in ``label``: which languages go on; empty means all."""

    keep: tuple[str, ...] = ()
    min_score: Share = 0.0


class CleanSettings(Section):
    """Normalisation and filters."""

    normalization: Normalization = Normalization()
    stored_text: StoredText = StoredText()
    boilerplate_filter: BoilerplateFilter = BoilerplateFilter()
    quality_rules: QualityRules = QualityRules()
    on_too_long: Literal["split", "truncate", "reject"] = "split"
    language: LanguageSettings = LanguageSettings()


class MinhashSettings(Section):
    """Signature and banding. ``shingle_size`` null: 13 characters, 5 where the text is mostly Han."""

    signature_size: Annotated[int, Field(ge=16, le=1024)] = 128
    band: Annotated[int, Field(ge=1)] = 16
    rows_per_band: Annotated[int, Field(ge=1)] = 8
    shingle_size: Annotated[int, Field(ge=1, le=100)] | None = None
    seed: int = 1

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.band * self.rows_per_band > self.signature_size:
            n = self.signature_size
            pairs = ", ".join(f"{n // r} x {r}" for r in (2, 4, 5, 8, 10, 16) if n // r >= 1)
            raise ValueError(
                f"band x rows_per_band = {self.band} x {self.rows_per_band}"
                f" = {self.band * self.rows_per_band} is above signature_size = {n}; valid pairs: {pairs}"
            )
        return self


class BloomSettings(Section):
    """The global filter that incremental runs ask first (never the last word)."""

    capacity: Annotated[int, Field(ge=1)] = 1_200_000_000
    false_positive_rate: Annotated[float, Field(gt=0, lt=1)] = 0.01


class VerifySettings(Section):
    """Verification of candidates by edit similarity of the key texts."""

    min_similarity: Share = 0.8
    max_leaders: Annotated[int, Field(ge=1)] = 64


class DedupSettings(Section):
    """Exact and near duplicates."""

    minhash: MinhashSettings = MinhashSettings()
    global_bloom: BloomSettings = BloomSettings()
    verify: VerifySettings = VerifySettings()
    shingle_unit: Literal["char", "word"] = "char"
    priority: tuple[str, ...] = ()
    """Domains whose documents survive against later ones; empty: length decides."""
    exact: bool = True
    near: bool = True


class FilterModelSettings(Section):
    """The quality model. Without ``endpoint`` documents pass, marked "not scored"."""

    endpoint: str = ""
    batch_size: Annotated[int, Field(ge=1)] = 512
    max_score_threshold: float = 80
    min_score_threshold: float = 5


class CurriculumSettings(Section):
    """Half-open ranges of epochs."""

    early_epochs: tuple[int, int] = (0, 1)
    later_epochs: tuple[int, int] = (0, 1)

    @field_validator("early_epochs", "later_epochs")
    @classmethod
    def _range(cls, value: tuple[int, int]) -> tuple[int, int]:
        if not 0 <= value[0] < value[1]:
            raise ValueError(f"{list(value)} is not a half-open range [a, b) with 0 <= a < b")
        return value


class MixingSettings(Section):
    """Which documents are drawn.

    Attributes:
        target_tokens: tokens of one pass over all domains; null takes everything that survives.
        sampling: share of the target by domain; must sum to 1. Empty: no ratios.
        caps: most tokens by domain, applied after the ratios.
        tokenizer: path of a Hugging Face ``tokenizer.json``; empty: the marked estimate.
        on_shortage: ``shrink`` (the short domain gives what it has), ``fail``, or ``redistribute``.
        max_repetition: how often one document may be drawn in a pass, for small domains.
    """

    target_tokens: Annotated[int, Field(ge=1)] | None = None
    sampling: Mapping[str, Share] = Field(default_factory=dict)
    caps: Mapping[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    curriculum: CurriculumSettings | None = None
    tokenizer: str = ""
    on_shortage: Literal["shrink", "fail", "redistribute"] = "shrink"
    max_repetition: Annotated[int, Field(ge=1)] = 1
    seed: int = 1

    @field_validator("sampling")
    @classmethod
    def _sums_to_one(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        total = sum(value.values())
        if value and abs(total - 1.0) > 1e-6:
            raise ValueError(f"the ratios sum to {total:g}, not 1: {dict(value)}")
        return value


class OutputSettings(Section):
    """What is written."""

    format: Literal["parquet", "jsonl.zst"] = "parquet"
    partition_by: tuple[Literal["domain", "language", "quality_level", "kind", "source"], ...] = ("domain",)
    version: str = Field(default="v1", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    shards: Annotated[int, Field(ge=1, le=65536)] | None = None
    """All in all; null: 1,024, fewer when there is little (about 64 MB of text each)."""
    retention: RetentionSettings = RetentionSettings()
    compact_after_days: Annotated[int, Field(ge=2)] | None = None
    """Maintenance compacts the current version once it stands on so many others; null: never."""


class RunSettings(Section):
    """How a run behaves; nothing here shapes output."""

    max_attempts: Annotated[int, Field(ge=1)] = 3
    max_dead_share: Share = 0.001
    """Above this share of dead input records a version does not become current by itself."""
    memory_budget_mb: Annotated[int, Field(ge=256)] = 1500
    max_source_loss: Share = 0.95
    """A source that loses more than this in one step raises an alarm."""
    max_bundles: Annotated[int, Field(ge=1, le=1024)] = 256
    """Most tasks of an orchestrator in one step."""
    chunks_per_bundle: Annotated[int, Field(ge=1)] = 16
    """Chunks in one such task, as long as ``max_bundles`` allows: about 15 minutes of the slowest step at
    256 MB a chunk on two cores."""


class DriftSettings(Section):
    """Largest move against the last full version before a person must look."""

    max_domain_shift: Share = 0.05
    max_language_shift: Share = 0.05


class JobSettings(Section):
    """A whole job file. Immutable; :func:`load_job` builds it."""

    dataset: DatasetSettings
    sources: tuple[SourceSettings, ...] = ()
    ingest: IngestSettings = IngestSettings()
    parse: ParseSettings = ParseSettings()
    clean: CleanSettings = CleanSettings()
    dedup: DedupSettings = DedupSettings()
    filter_model: FilterModelSettings = FilterModelSettings()
    mixing: MixingSettings = MixingSettings()
    output: OutputSettings = OutputSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    drift: DriftSettings = DriftSettings()
    run: RunSettings = RunSettings()
    interval: IntervalSettings | None = None

    @model_validator(mode="after")
    def _sources_are_distinct(self) -> Self:
        seen: set[str] = set()
        named = []
        for i, source in enumerate(self.sources):
            name = source.source_id or (
                self.dataset.source if len(self.sources) == 1 else f"{self.dataset.source}-{i}"
            )
            if name in seen:
                raise ValueError(f"sources.{i}.source_id: '{name}' is used twice; every source needs its own")
            seen.add(name)
            named.append(source.model_copy(update={"source_id": name}))
        object.__setattr__(self, "sources", tuple(named))
        if self.mixing.sampling:
            odd = sorted({s.domain for s in self.sources} - set(self.mixing.sampling))
            if odd:
                raise ValueError(
                    f"mixing.sampling: no ratio for domain(s) {', '.join(odd)} of the sources;"
                    f" it names {', '.join(self.mixing.sampling)}."
                    " Give each a ratio (0 leaves it out on purpose)."
                )
        return self
