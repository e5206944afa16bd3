"""DataFlow's home, opened once in each process of the API server, and asked for by the routes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from dataflow_ops.airflow.object_store import use_connection
from dataflow_ops.console.place import Place, open_place


class House:
    """Opens the home at the first question: a server process is forked after the app was made.

    Args:
        path: the home folder; ``DATAFLOW_HOME`` when ``None``.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._place: Place | None = None

    def place(self) -> Place:
        """The opened home.

        Raises:
            ConfigError: there is none; or its database was made by a newer program.
        """
        with self._lock:
            if self._place is None:
                use_connection()
                path = self._path or Path(os.environ.get("DATAFLOW_HOME", ".dataflow"))
                self._place = open_place(path)
            return self._place

    def close(self) -> None:
        """Give connections and threads back."""
        with self._lock:
            if self._place is not None:
                self._place.close()
            self._place = None


def place_of(request: Request) -> Place:
    """For routes: ``place: PlaceDep``."""
    house: House = request.app.state.house
    return house.place()


PlaceDep = Annotated[Place, Depends(place_of)]
