"""Errors of ours as answers: the sentence that says what to do, and a status that fits."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from dataflow_ops.console.place import NotThere
from dataflow_ops.errors import (
    ConfigError,
    CorruptOutput,
    DatabaseUnavailable,
    DataFlowError,
    IllegalMove,
    StateError,
    StorageFull,
    VersionError,
)
from dataflow_ui.rights import NoRight

log = logging.getLogger(__name__)

STATUS: tuple[tuple[type[DataFlowError], int], ...] = (
    (NoRight, 403),
    (NotThere, 404),
    (ConfigError, 400),
    (VersionError, 409),
    (IllegalMove, 409),
    (DatabaseUnavailable, 503),
    (StorageFull, 507),
    (CorruptOutput, 409),
    (StateError, 409),
)
"""The first that fits; whatever is not here is a fault of ours: 500."""


def add_error_handlers(app: FastAPI) -> None:
    """Let an app answer errors of ours with ``{"detail": sentence}``.

    Beside it stand ``code`` and ``values``, where a page can word it in its reader's language.
    """

    @app.exception_handler(DataFlowError)
    async def answer(_: Request, error: Exception) -> JSONResponse:
        status = next((code for kind, code in STATUS if isinstance(error, kind)), 500)
        if status >= 500:
            log.error("%s: %s", type(error).__name__, error, exc_info=error)
        body: dict[str, Any] = {"detail": str(error)}
        if isinstance(error, DataFlowError) and error.said is not None:
            body["code"], body["values"] = error.said
        return JSONResponse(body, status)
