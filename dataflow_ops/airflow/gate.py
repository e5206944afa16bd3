"""The last task of a run: red or green by our state, never by what Airflow thinks of single tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from airflow.sdk.exceptions import AirflowFailException  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.operators import Pausable
from dataflow_ops.airflow.waits import embedded, leave_turn, patient_state

Ending = Literal[
    "done", "done_with_dead_letters", "awaiting_approval", "dry_run", "failed", "cancelled", "unfinished"
]
GREEN: tuple[Ending, ...] = ("done", "done_with_dead_letters", "dry_run")


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a run ended.

    Attributes:
        ending: which end it was.
        message: for a person: what it means, what to do.
    """

    ending: Ending
    message: str


def judge(state: str, detail: str, dead_letters: int = 0) -> Judgement:
    """The end of a run whose tasks have all ended, from the state it is in.

    Args:
        state: state of the run; ``""`` where there is no such run.
        detail: why, as recorded.
        dead_letters: how many wait.
    """
    why = f": {detail}" if detail else ""
    again = "Clear the failed tasks with everything downstream; what is done is skipped."
    match state:
        case "SUCCEEDED":
            return Judgement("done", "Done.")
        case "SUCCEEDED_WITH_DEAD":
            letters = f"{dead_letters:,} dead letter(s) wait: dataflow dead-letters list"
            return Judgement("done_with_dead_letters", f"Done, {letters}")
        case "AWAITING_APPROVAL":
            how = "dataflow versions approve, or the task 'approval'"
            return Judgement("awaiting_approval", f"The version waits for a person{why}. Decide: {how}")
        case "FAILED":
            return Judgement("failed", f"The run failed{why}. {again}")
        case "CANCELLED":
            return Judgement("cancelled", f"The run was cancelled, or its version was rejected{why}")
        case "":
            return Judgement("unfinished", "The run never began: the log of task 'start' says why.")
        case _:
            return Judgement("unfinished", f"Tasks ended before the run did (it is {state}){why}. {again}")


def _looked(sums: Mapping[str, int]) -> str:
    """The answer of a dry run."""
    return (
        f"Dry run, nothing was made. In the sources ({sums['sources']:,}) are: files {sums['files']:,},"
        f" bytes {sums['bytes']:,}, chunks {sums['chunks']:,}. The log of task 'start' lists them by source."
    )


class Gate(Pausable):
    """Fails where the run failed or was left unfinished; says which good end it was where it did not."""

    def work(self, context: Any, run_id: str) -> dict[str, Any]:
        """Return how the run ended.

        Raises:
            AirflowFailException: not well; another attempt would find the same.
        """
        leave_turn(self.home, run_id)
        started = context["ti"].xcom_pull(task_ids="start")
        if started and started["dry_run"]:
            found = Judgement("dry_run", _looked(started["looked"]))
        else:
            found = self._ending(run_id)
            if not started and found.ending in GREEN:
                # The run was cleared, and what state says is how it had ended before.
                found = judge("", "")
        # Airflow's form has its answer by now, unless there was nobody to ask.
        if found.ending not in GREEN and not (found.ending == "awaiting_approval" and embedded()):
            raise AirflowFailException(found.message)
        self.log.info(found.message)
        return {"run_id": run_id, "ending": found.ending, "message": found.message}

    def _ending(self, run_id: str) -> Judgement:
        if not Path(self.home).is_dir():
            return judge("", "")
        with patient_state(self.home) as state:
            row = state.get_run(run_id)
            if row is None:
                return judge("", "")
            letters = sum(state.count_dead_letters("error", run_id=run_id).values())
            found = judge(row.state, row.detail or "", letters)
            if found.ending == "unfinished":
                # Nobody drives it any more: let its state say so.
                state.set_run_state(run_id, "FAILED", "its Airflow tasks ended before it did")
        return found
