"""How each step shows in Airflow, and where it runs: one line a step. Plain data, light to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "gpu"
LLM: Final = "llm"
URGENT: Final = "urgent"
"""Queue and pool of urgent runs: a worker of its own, so that they never wait for a slot."""
QUEUES: Final = (CPU, MEMORY, GPU, LLM, URGENT)
POOL: Final = "default_pool"
LAYER_TITLES: Final[dict[str, str]] = {
    "ingest": "Ingest · 采集",
    "parse": "Parse · 解析",
    "filter": "Filter · 过滤",
    "dedup": "Dedup · 去重",
    "score": "Score · 评分",
    "mix": "Mix · 配比",
    "export": "Export · 导出",
}
"""Names of task groups and of a choice in the form."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One step as Airflow's users see it.

    Attributes:
        title: a few words, for the grid.
        what: one sentence.
        queue: of its tasks.
    """

    title: str
    what: str
    queue: str = CPU


SHOWN: Final[dict[str, Shown]] = {
    "fetch": Shown("Fetch files", "Brings what is not local, resumable, and checks it."),
    "parse": Shown("Parse to text", "Bytes to text: decode, repair, normalise. A bad document is set aside."),
    "filter": Shown("Filter by rules", "Measures every document and applies the quality rules."),
    "sign": Shown("Sign", "Exact keys and MinHash signatures of what was kept."),
    "supersede": Shown("Replace", "Which documents of the version below are replaced by files read again."),
    "exact": Shown("Exact duplicates", "Groups documents with the same text."),
    "match": Shown("Match candidates", "Finds groups that may be near duplicates.", MEMORY),
    "gather": Shown("Gather texts", "Brings the candidates' texts together."),
    "recall": Shown("Recall texts", "Brings texts of the version below together.", MEMORY),
    "verify": Shown("Verify pairs", "Compares the candidates' texts.", MEMORY),
    "unite": Shown("Unite groups", "Joins verified pairs into groups.", MEMORY),
    "collect": Shown("Collect texts", "Brings together the texts of groups that are still to be compared."),
    "confirm": Shown("Confirm groups", "Every removed document must match the one that stays."),
    "score": Shown("Score quality", "Perplexity by the quality model; without one, nothing is done."),
    "label": Shown("Label", "Domain, language, difficulty and tokens."),
    "plan": Shown("Plan the mix", "Which documents fill each domain's share.", MEMORY),
    "scatter": Shown("Scatter", "Sorts the chosen documents by shard."),
    "export": Shown("Write shards", "Writes the shards."),
}


def shown(step: str) -> Shown:
    """How a step shows; under its own name where the table says nothing."""
    return SHOWN.get(step) or Shown(step, "")


def queue_of(task_id: str) -> str:
    """The queue of a task of a corpus's DAG, from its id (``<layer>.<step>``, ``publish``, …)."""
    group, _, name = task_id.rpartition(".")
    return CPU if group == "ranges" else shown(name).queue
