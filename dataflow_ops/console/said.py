"""Sentences that a page may word in its reader's language: each has a code, and values to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from dataflow_ops.errors import DataFlowError

SAID: Final[Mapping[str, str]] = {
    "approved": "{version} is approved.",
    "approved_current": "{version} is approved and current.",
    "approved_lacking": (
        "{version} is approved and current. Not in it yet, as it was published meanwhile: {what}; the next"
        " day's run takes it."
    ),
    "bad_state_approve": "{version} doesn't wait for approval: its state is {stands}.",
    "bad_state_reject": "{version} can't be rejected: its state is {stands}.",
    "bad_state_rollback": "{version} can't become current: its state is {stands}.",
    "current_again": "{version} is current again; no DAG run has started on {left}.",
    "current_again_used": (
        "{version} is current again. These started on {left} and may have to be run again: {used}."
    ),
    "ended_cancel": "the run has ended ({state}): there is nothing to cancel",
    "ended_hurry": "the run has ended ({state}): there is nothing to hurry",
    "ended_pause": "the run has ended ({state}): there is nothing to pause",
    "failures_dropped": "{count} entries dropped: they are not asked again.",
    "failures_dropped_one": "{count} entry dropped: it is not asked again.",
    "failures_none": "Nothing was waiting any more: somebody was quicker.",
    "failures_requeued": "{count} entries wait: the next run of the augmentation asks them again.",
    "failures_requeued_one": "{count} entry waits: the next run of the augmentation asks it again.",
    "increment_never_current": "{version} can't become current: it is an increment, a part of the whole.",
    "is_current": "{version} is current; go back to another version first.",
    "letters_dropped": "{count} letters dropped: no run will read these records again.",
    "letters_dropped_one": "{count} letter dropped: no run will read this record again.",
    "letters_none": "Nothing was open any more: somebody was quicker.",
    "letters_retried": "{count} letters wait for the next run of {dataset}: it reads their chunks anew.",
    "letters_retried_one": "{count} letter waits for the next run of {dataset}: it reads its chunk anew.",
    "never_approved": "{version} has never been approved: approve it instead.",
    "no_report": "no report yet: it is written when the run publishes its version",
    "no_right": (
        "you may not do this: it takes the right to {rights} DAG runs of {where}; ask an administrator"
    ),
    "no_right_all": (
        "you may not do this: it takes the right to {rights} DAG runs of every DAG; ask an administrator"
    ),
    "no_such_failure": "the failure queue of this task has no entry {key}",
    "no_such_sample_task": "data set '{dataset}' has no sample task '{task}'",
    "no_such_version": "'{version}' is no version of data set '{dataset}'; its whole id is needed here",
    "no_version_yet": "data set '{dataset}' has no version yet: its first full run makes one",
    "not_begun": "the run failed before it began: {why}",
    "not_started": "not started: the run appears here when its first task begins",
    "queued_approval": "not started: full runs take turns, and the version of {run} waits for approval",
    "queued_behind": "not started: full runs take turns, and {run} has not ended",
    "overtaken": (
        "{version} was overtaken: {current} became current without it, and to approve it would take {lost}"
        " out of the current version. Do this instead: {instead}. To make it current all the same: {anyway}"
    ),
    "query_empty": "say what to look for: a document id, a URL, or a text",
    "query_long": "the text has {length} characters; paste {most} at most",
    "rejected": "{version} is rejected.",
    "rejected_stays": "{version} is rejected; {current} stays current.",
    "report_gone": "{version} has no report any more; `dataflow report` prints where one would be",
    "rule_idle": "rule '{rule}' removed nothing here; rules that did: {known}",
    "sample_task_ended_cancel": "{task} has ended: there is nothing to cancel",
    "sample_task_ended_pause": "{task} has ended: there is nothing to pause",
    "was_current": "{version} was current already.",
}
"""Code → English. One with ``_one`` is used where ``count`` is one; pages know it by the code without it."""

_Error = TypeVar("_Error", bound=DataFlowError)


def said(code: str, **values: str | int) -> dict[str, Any]:
    """``code`` and ``values`` for a page, and the ``message`` in English for everybody else."""
    return {"code": code, "values": values, "message": worded(code, values)}


def fault(kind: type[_Error], code: str, **values: str | int) -> _Error:
    """An error whose sentence a page can word itself."""
    error = kind(worded(code, values))
    error.said = (code, values)
    return error


def worded(code: str, values: Mapping[str, str | int]) -> str:
    """The English sentence."""
    one = f"{code}_one"
    text = SAID[one if values.get("count") == 1 and one in SAID else code]
    return text.format_map({key: f"{v:,}" if isinstance(v, int) else v for key, v in values.items()})
