"""Good manners towards the hosts that pages come from: pauses between requests, and robots.txt."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

import httpx

from dataflow_ops.errors import FetchFailed

_ROBOTS_BYTES = 500 << 10
"""RFC 9309 §2.5: at least 500 KiB of robots.txt are to be read."""


class Hosts:
    """What is known of each host while one task runs.

    Args:
        client: makes the requests.
        user_agent: sent with each, and looked up in robots.txt.
        delay_s: seconds between two requests to one host.
        clock: monotonic seconds.
        sleep: waits.
    """

    def __init__(
        self,
        client: httpx.Client,
        user_agent: str,
        delay_s: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._client = client
        self._user_agent = user_agent
        self._delay_s = delay_s
        self._clock = clock
        self._sleep = sleep
        self._free_at: dict[str, float] = {}
        self._robots: dict[str, RobotFileParser | str] = {}

    def wait(self, url: str) -> None:
        """Return when the host may be asked again; counts as a request to it."""
        host = urlsplit(url).netloc
        pause = self._free_at.get(host, 0.0) - self._clock()
        if pause > 0:
            self._sleep(pause)
        self._free_at[host] = self._clock() + self._delay_s

    def postpone(self, url: str, seconds: float) -> None:
        """Ask the host nothing for so long (Retry-After)."""
        host = urlsplit(url).netloc
        self._free_at[host] = max(self._free_at.get(host, 0.0), self._clock() + seconds)

    def allows(self, url: str) -> bool:
        """Whether the host's robots.txt lets this user agent fetch the URL.

        RFC 9309: without a robots.txt (any 4xx) all is allowed; while it can't be had nothing is.

        Raises:
            FetchFailed: robots.txt can't be had (server error, no connection).
        """
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._robots:
            self._robots[site] = self._read(site)
        rules = self._robots[site]
        if isinstance(rules, str):
            raise FetchFailed(f"{site}/robots.txt can't be had ({rules}), so nothing may be fetched there")
        return rules.can_fetch(self._user_agent, url)

    def _read(self, site: str) -> RobotFileParser | str:
        rules = RobotFileParser()
        url = f"{site}/robots.txt"
        self.wait(url)
        try:
            with self._client.stream(
                "GET", url, headers={"User-Agent": self._user_agent}, follow_redirects=True
            ) as response:
                if response.status_code >= 500:
                    return f"HTTP {response.status_code}"
                if response.status_code >= 400:
                    rules.parse([])
                    return rules
                body = bytearray()
                for block in response.iter_bytes():
                    body += block
                    if len(body) >= _ROBOTS_BYTES:
                        break
        except httpx.HTTPError as e:
            return f"{type(e).__name__}: {e}"
        rules.parse(bytes(body[:_ROBOTS_BYTES]).decode("utf-8", "replace").splitlines())
        return rules
