"""The failure queue of an augmentation: what a model did not answer well, to be read, edited and answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dataflow_ops.console.place import NotThere
from dataflow_ops.console.said import fault, said
from dataflow_ops.console.sample_desk import SampleDesk
from dataflow_ops.errors import DatabaseUnavailable, StateError
from dataflow_ops.samples.augment import queue
from dataflow_ops.state.samples.failures import Which, edit_failure

PAGE: Final = 20


def failures(
    desk: SampleDesk, dataset: str, task_id: str, error: str, after: str, *, with_text: bool
) -> dict[str, Any]:
    """Numbers by state and error, and a page of entries.

    Args:
        desk: open.
        dataset: data set of the task.
        task_id: the augmentation.
        error: of one error only; empty for all.
        after: last key of the page before; empty for the first.
        with_text: whether messages may be shown, which may quote an answer.

    Raises:
        NotThere: no such task.
    """
    desk.task(dataset, task_id)
    found = queue.list_queue(desk.store, Which(task_id=task_id, error=error or None), PAGE, after)
    if not with_text:
        found["failures"] = [{**one, "message": None} for one in found["failures"]]
    return found


def failure(desk: SampleDesk, dataset: str, task_id: str, key: str) -> dict[str, Any]:
    """One entry with all that was sent and came back.

    Args:
        desk: open.
        dataset: data set of the task.
        task_id: the augmentation.
        key: whole request key of the entry.

    Raises:
        NotThere: no such task, or no such entry of it.
    """
    desk.task(dataset, task_id)
    try:
        found = queue.show(desk.store, key)
    except DatabaseUnavailable:
        raise
    except StateError as e:
        raise fault(NotThere, "no_such_failure", key=key[:12]) from e
    if (found["task"], found["key"]) != (task_id, key):
        raise fault(NotThere, "no_such_failure", key=key[:12])
    return found


def edit(desk: SampleDesk, dataset: str, task_id: str, key: str, prompt: Sequence[Mapping[str, Any]]) -> None:
    """Set what is sent when the entry is asked again.

    Raises:
        NotThere: no such task, or no such entry of it.
        ConfigError: not a list of messages.
        StateError: it was answered since.
    """
    failure(desk, dataset, task_id, key)
    messages = queue.check_messages(prompt)
    with desk.store.write() as connection:
        edit_failure(connection, desk.store.db, key, messages)


def change(
    desk: SampleDesk, dataset: str, task_id: str, state: str, error: str, key: str, who: str
) -> dict[str, Any]:
    """Put entries back (``REQUEUED``) or give them up (``DROPPED``); what was done, in words.

    Args:
        desk: open.
        dataset: data set of the task.
        task_id: the augmentation.
        state: which of both.
        error: those of one error; empty for all.
        key: one entry; empty for all that fit.
        who: name of the person.

    Raises:
        NotThere: no such task, or no such entry of it.
    """
    desk.task(dataset, task_id)
    if key:
        failure(desk, dataset, task_id, key)
    which = Which(task_id=task_id, error=error or None, keys=(key,) if key else ())
    number = sum(queue.change(desk.store, which, state, who).values())
    if number == 0:
        return {"changed": 0, **said("failures_none")}
    again = state == "REQUEUED"
    return {"changed": number, **said("failures_requeued" if again else "failures_dropped", count=number)}
