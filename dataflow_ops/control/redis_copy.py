"""The fast copy of pause flags in Redis: who waits for a pause hears of it sooner, and nobody relies on it.

The database row is the flag. A key that is there means "look at the database now"; a key that is not there
means nothing at all: Redis may have been flushed, restarted or never told.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from dataflow_ops.control.pause import Flag

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 0.3
"""A Redis that answers no sooner is as good as none: the batch must not wait for it."""
REST_S: Final = 5.0
"""How long a Redis that failed is left alone by those who only look."""
_PREFIX: Final = "dataflow:pause"


def key_of(scope: str, target: str) -> str:
    """Where the copy of one flag lies."""
    return f"{_PREFIX}:{scope}:{target}" if target else f"{_PREFIX}:{scope}"


class RedisCopy:
    """One process's view of the copy. Connects on first use, and anew in every process.

    Args:
        url: ``redis://[:PASSWORD@]HOST:PORT/DB``.
        clock: seconds that only grow.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._client: Any = None
        self._pid = 0
        self._rest_until = 0.0
        self.failures = 0
        """Looks that Redis did not answer, since it last did."""

    def put(self, flag: Flag, since: float) -> None:
        """Copy a flag.

        Raises:
            redis.RedisError: Redis is away.
        """
        value = json.dumps({"who": flag.who, "why": flag.why, "since": since}, ensure_ascii=False)
        self._connected().set(key_of(flag.scope, flag.target), value)

    def drop(self, scope: str, target: str) -> None:
        """Remove the copy of a flag.

        Raises:
            redis.RedisError: Redis is away.
        """
        self._connected().delete(key_of(scope, target))

    def flags(self, run_id: str, dataset: str) -> Mapping[str, dict[str, Any]]:
        """Scope -> what was copied, for those flags that cover a run.

        Raises:
            redis.RedisError: Redis is away.
        """
        scopes = {"run": run_id, "dataset": dataset, "all": ""}
        found = self._connected().mget([key_of(scope, target) for scope, target in scopes.items()])
        return {scope: json.loads(value) for scope, value in zip(scopes, found, strict=True) if value}

    def hints(self, run_id: str, dataset: str) -> bool:
        """See :class:`~dataflow_ops.control.pause.FastCopy`."""
        from redis import RedisError

        if self._clock() < self._rest_until:
            return False
        try:
            found = bool(self.flags(run_id, dataset))
        except (RedisError, OSError, ValueError) as e:
            self._rest_until = self._clock() + REST_S
            self.failures += 1
            if self.failures == 1:
                log.warning("Redis can't be asked for pause flags; the database alone is: %s", e)
            return False
        if self.failures:
            log.info("Redis answers again, after %d looks in vain", self.failures)
            self.failures = 0
        return found

    def close(self) -> None:
        """Close the connection of this process."""
        if self._client is not None and self._pid == os.getpid():
            self._client.close()
        self._client = None

    def _connected(self) -> Any:
        if self._client is None or self._pid != os.getpid():  # a socket must not be shared over a fork
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry

            self._client = redis.Redis.from_url(
                self._url,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                decode_responses=True,
                # One try more on a new connection: the old one may have died with a restarted server.
                retry=Retry(NoBackoff(), 1),
            )
            self._pid = os.getpid()
        return self._client
