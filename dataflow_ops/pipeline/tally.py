"""What the attempts of one step came to, and whether the step should go on handing out tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

from dataflow_ops import errors
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.errors import DataFlowError, StateError
from dataflow_ops.state.records import PauseFlag
from dataflow_ops.values import Counts, Numbers, TaskSpec


class RunFailed(DataFlowError):
    """A step of the run could not be completed; what is done stays done, run again to go on."""


class RunPaused(DataFlowError):
    """A pause flag stopped the run at a batch boundary; resume goes on from there.

    Attributes:
        flag: the flag that held, where it is known.
    """

    def __init__(self, message: str, flag: PauseFlag | None = None) -> None:
        super().__init__(message)
        self.flag = flag


@dataclass(slots=True)
class StepReport:
    """What a step did in this run.

    Attributes:
        step: its name.
        tasks: how many partitions it has.
        skipped: tasks that were done already (by an earlier run or attempt).
        ran: tasks run now.
        dead: partitions given up.
        counts: over all tasks, skipped ones included.
        seconds: wall time now.
    """

    step: str
    tasks: int = 0
    skipped: int = 0
    ran: int = 0
    dead: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Planned:
    """A step of which done and open are told apart.

    Attributes:
        todo: tasks to be run, in order.
        numbers: the run's ranges.
        report: counts of what was skipped.
    """

    todo: list[TaskSpec]
    numbers: Numbers
    report: StepReport


@dataclass(slots=True)
class Tally:
    """Sorts the endings of attempts.

    Attributes:
        report: counts what is finished.
        paused: a task was given back at a batch boundary.
        fault: the first systemic one.
        changed: the first task whose source changed under its eyes.
        damaged: keys of tasks whose outputs must be made again, in order of discovery.
    """

    report: StepReport
    paused: bool = False
    fault: TaskOutcome | None = None
    changed: TaskOutcome | None = None
    damaged: dict[str, None] = field(default_factory=dict)

    def add(self, outcome: TaskOutcome) -> None:
        """Take one ending."""
        report = self.report
        report.seconds += outcome.seconds
        if outcome.ending in ("done", "skipped"):
            report.ran += outcome.ending == "done"
            report.skipped += outcome.ending == "skipped"
            report.counts += outcome.counts or Counts()
        elif outcome.ending == "paused":
            self.paused = True
        elif outcome.systemic:
            self.fault = self.fault or outcome
        elif outcome.message.startswith("SourceChanged"):
            self.changed = self.changed or outcome
        elif outcome.damaged:
            self.damaged[outcome.damaged] = None
        elif outcome.ending == "dead":
            report.dead.append(outcome.spec.partition)

    @property
    def broken(self) -> bool:
        """Whether something happened that the tasks left can't mend."""
        return bool(self.fault or self.changed or self.damaged)

    @property
    def stops(self) -> bool:
        """Whether no other task of the step should begin now."""
        return self.paused or self.broken


def error_of(outcome: TaskOutcome) -> DataFlowError:
    """The error that a systemic outcome tells of, for whoever called the run."""
    name, _, text = outcome.message.partition(": ")
    kind = getattr(errors, name, None)
    where = f"{outcome.spec.step}/{outcome.spec.partition}"
    if isinstance(kind, type) and issubclass(kind, DataFlowError):
        return kind(f"{where}: {text}")
    return StateError(f"{where}: {outcome.message}")
