"""What a task has done so far, kept equal to its rows in the database, whatever was killed in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dataflow_ops.samples.augment.calls import Outcome
from dataflow_ops.state.samples.generations import Known, Spent, Usage


@dataclass(slots=True)
class Tally:
    """Counts of a task.

    Attributes:
        answered: results of this task.
        failed: its requests whose last word is the failure queue.
        reused: requests that another task had settled before.
        usage: of what is in the rows.
        cut: of tries that were stopped and left no row.
        recorded: what the task's own row holds, so that only the difference is added.
    """

    answered: int = 0
    failed: int = 0
    reused: int = 0
    usage: Usage = field(default_factory=Usage)
    cut: Usage = field(default_factory=Usage)
    recorded: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, spent: Spent, counts: Mapping[str, float]) -> Tally:
        """From the sums over the rows of a task, and from what its row says of the rest."""
        cut = Usage(lost_tokens=int(counts.get("cut_tokens", 0)), lost_cost=counts.get("cut_cost", 0.0))
        reused = int(counts.get("reused", 0))
        return cls(spent.answered, spent.failed, reused, spent.usage, cut, dict(counts))

    @property
    def used(self) -> Usage:
        """All that counts against the budget."""
        return self.usage + self.cut

    @property
    def settled(self) -> int:
        """Requests that have ended."""
        return self.answered + self.failed + self.reused

    def add(self, outcome: Outcome) -> None:
        """A question has ended."""
        if outcome.how == "answered":
            self.answered += 1
            # A failure that is answered now leaves the queue, one that failed again is replaced in it.
            self.failed -= outcome.request.retry_of is not None
        elif outcome.how == "failed":
            self.failed += outcome.request.retry_of is None
        if outcome.how in ("answered", "failed"):
            self.usage += outcome.usage
        else:
            self.cut += outcome.usage

    def reuse(self, task_id: str, known: Iterable[Known]) -> None:
        """Requests of a batch that were settled before; those of this task are counted already."""
        self.reused += sum(one.task_id != task_id for one in known)

    def counts(self) -> dict[str, float]:
        """By name, as the task's row keeps them."""
        usage, cut = self.usage, self.cut
        return {
            "answered": self.answered,
            "failed": self.failed,
            "reused": self.reused,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": usage.cost,
            "lost_tokens": usage.lost_tokens,
            "lost_cost": usage.lost_cost,
            "cut_tokens": cut.lost_tokens,
            "cut_cost": cut.lost_cost,
        }

    def difference(self) -> dict[str, float]:
        """What is to be added to the task's row."""
        return {name: value - self.recorded.get(name, 0) for name, value in self.counts().items()}

    def reread(self, spent: Spent, counts: Mapping[str, float]) -> None:
        """Take over the sums over the task's rows, and what its own row holds."""
        self.answered, self.failed, self.usage = spent.answered, spent.failed, spent.usage
        self.reused, self.recorded = int(counts.get("reused", 0)), dict(counts)

    def recorded_now(self) -> None:
        """The difference was added."""
        self.recorded = self.counts()
