"""A door in front of a PostgreSQL server, which a test shuts and opens: the server goes away and returns."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

import sqlalchemy as sa


class Gate:
    """Forwards a port of the loopback to a server.

    Args:
        url: of a database on that server.
    """

    def __init__(self, url: str) -> None:
        parsed = sa.make_url(url)
        self._server = (str(parsed.host), int(parsed.port or 5432))
        self._listener = self._listen(0)
        self._port: int = self._listener.getsockname()[1]
        self.url = parsed.set(port=self._port).render_as_string(hide_password=False)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()

    def shut(self) -> None:
        """Nobody gets in, and whoever is in is cut off."""
        # A thread that waits in accept() keeps the socket open until it is woken.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Cut off whoever is in; who comes next gets in."""
        while self._pairs:
            for side in self._pairs.pop():
                try:
                    side.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # it left by itself

    def open(self) -> None:
        """Let people in again."""
        self._listener = self._listen(self._port)

    def open_after(self, seconds: float) -> threading.Timer:
        """Open in a while, from another thread."""
        timer = threading.Timer(seconds, self.open)
        timer.start()
        return timer

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                inner, _ = listener.accept()
            except OSError:
                return  # it was shut
            outer = socket.create_connection(self._server)
            self._pairs.append((inner, outer))
            for source, target in ((inner, outer), (outer, inner)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass  # cut off: both sides end below
    for side in (source, target):
        try:
            side.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue
