"""The pause watch of a process that works on a run."""

from __future__ import annotations

from dataflow_ops.control.pause import PauseSource, PauseWatch
from dataflow_ops.control.redis_copy import RedisCopy
from dataflow_ops.engine.context import RunContext


def pause_watch(state: PauseSource, context: RunContext) -> PauseWatch:
    """A watch over the flags of a run, beside the fast copy where there is one."""
    copy = RedisCopy(context.redis_url) if context.redis_url else None
    return PauseWatch(state, context.run_id, context.settings.dataset.id, copy)
