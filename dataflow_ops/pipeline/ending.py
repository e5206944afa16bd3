"""How a run's row says that it ended, whatever ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dataflow_ops.engine.faults import plain
from dataflow_ops.errors import IllegalMove
from dataflow_ops.pipeline.home import Home
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.store import StateStore


def end_run(state: StateStore, run_id: str, to: str, detail: str = "") -> None:
    """Move a run to where it ended, wherever another process that drove it had left it."""
    try:
        state.set_run_state(run_id, to, detail)
    except IllegalMove:
        now = state.get_run(run_id)
        if to == "FAILED" and now is not None and now.state == "CANCELLED":
            return  # what broke because somebody cancelled it is no news
        state.set_run_state(run_id, "start")
        state.set_run_state(run_id, to, detail)


def end_failed(state: StateStore, run_id: str, met: Exception, note: Callable[[str], Any]) -> None:
    """End a run as failed, with the kind of the error and its message.

    What broke it may keep that from being recorded, too: a full disk, a database gone. Then that is noted,
    here and at the error, which stays the one that the caller hears of.

    Args:
        state: open state store.
        run_id: the run.
        met: what ended it.
        note: told what could not be recorded.
    """
    try:
        end_run(state, run_id, "FAILED", told(met))
    except Exception as again:  # noqa: BLE001 - told: whatever it is, it must not hide what came first
        _add(met, f"the run's end could not be recorded: {plain(again)}", note)


@contextmanager
def opening(home: Home, run_id: str, note: Callable[[str], Any]) -> Iterator[None]:
    """Around the opening of a run by whoever is to drive it: one that can't be opened fails with the reason.

    A run that has ended stays as it is.
    """
    try:
        yield
    except Exception as met:
        try:
            with StateStore(home.state_url) as state:
                row = state.get_run(run_id)
                if row is not None and row.state in (*LIVE_RUNS, "FAILED"):
                    end_failed(state, run_id, met, note)
        except Exception as again:  # noqa: BLE001 - as above
            _add(met, f"the run's end could not be recorded: {plain(again)}", note)
        raise


def told(met: Exception) -> str:
    """An error's kind and message, in characters that every database takes."""
    e = plain(met)
    text = f"{type(e).__name__}: {e}".removesuffix(": ")
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _add(met: Exception, text: str, note: Callable[[str], Any]) -> None:
    met.add_note(text)
    note(text)
