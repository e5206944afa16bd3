"""Setting and clearing pause flags: the row first, then its fast copy."""

from __future__ import annotations

import logging

from dataflow_ops.control.redis_copy import RedisCopy
from dataflow_ops.state.pauses import Pauses
from dataflow_ops.state.records import PauseFlag

log = logging.getLogger(__name__)


class PauseFlags:
    """Pause flags as people set them: the command line, the web page and backfills alike.

    Args:
        state: the open state store; its row is the flag.
        redis_url: where the fast copy goes; ``None`` for none.
    """

    def __init__(self, state: Pauses, redis_url: str | None) -> None:
        self._state = state
        self._copy = RedisCopy(redis_url) if redis_url else None

    def pause(self, scope: str, target: str, who: str, why: str) -> PauseFlag:
        """Ask a run, all runs of a data set, or everything to pause. Asking again renews who and why.

        Args:
            scope: ``run``, ``dataset`` or ``all``.
            target: run id or data set; empty for ``all``.
            who: name of the person or service.
            why: for people.

        Raises:
            ConfigError: the scope is unknown or does not go with the target.
        """
        flag = self._state.set_pause(scope, target, who, why)
        self._tell(flag, scope, target)
        return flag

    def resume(self, scope: str, target: str, who: str) -> bool:
        """Take a flag back; return whether there was one. Others may hold still: ask :meth:`effective`.

        Args:
            scope: ``run``, ``dataset`` or ``all``.
            target: run id or data set; empty for ``all``.
            who: name of the person or service.

        Raises:
            ConfigError: the scope is unknown or does not go with the target.
        """
        gone = self._state.clear_pause(scope, target, who)
        # Also where there was no row: a copy that was left behind would make everybody ask for ever.
        self._tell(None, scope, target)
        return gone

    def effective(self, run_id: str, dataset: str) -> PauseFlag | None:
        """The narrowest flag that holds for a run, from the database alone."""
        return self._state.paused(run_id, dataset)

    def _tell(self, flag: PauseFlag | None, scope: str, target: str) -> None:
        if self._copy is None:
            return
        from redis import RedisError

        try:
            if flag is not None:
                self._copy.put(flag, flag.created_at)
            else:
                self._copy.drop(scope, target)
        except (RedisError, OSError, ValueError) as e:
            name = f"pause flag {scope} {target}".strip()
            if flag is not None:
                # Workers look at the row every second whatever Redis says.
                log.warning("%s is in the database; Redis was not told: %s", name, e)
            else:
                # A hint that is left behind makes workers look at the row, and nothing else.
                log.warning("the copy of %s could not be removed; it is taken back all the same: %s", name, e)
        finally:
            self._copy.close()
