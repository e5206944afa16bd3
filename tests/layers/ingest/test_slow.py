from __future__ import annotations

import socket

import pytest

from dataflow_ops.errors import FetchFailed, Paused
from dataflow_ops.layers.ingest import slow
from dataflow_ops.layers.ingest.slow import waited_for


def test_it_gives_and_raises_what_the_call_does() -> None:
    assert waited_for(lambda: 3, lambda: None) == 3

    def fails() -> None:
        raise FetchFailed("gone")

    with pytest.raises(FetchFailed, match="gone"):
        waited_for(fails, lambda: None)


def test_a_silent_server_keeps_no_pause_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server takes the connection and never says a word; the client would wait for minutes."""
    monkeypatch.setattr(slow, "ASK_EVERY_S", 0.05)
    asked = []

    def pause() -> None:
        asked.append(True)
        if len(asked) == 3:
            raise Paused("enough")

    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname(), timeout=240) as client, pytest.raises(Paused):
            waited_for(lambda: client.recv(1), pause)
        assert len(asked) == 3
