"""The pages' code: static files, without any data in them."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "static"

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
"""Types that the machine's own table may not know; a browser refuses a module of another type."""


class CodeFiles(StaticFiles):
    """Files that a browser asks about again each time (ETag): an upgrade shows at the next load."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Serve one file."""
        response = await super().get_response(path, scope)
        kind = TYPES.get(Path(path).suffix)
        if kind is not None and response.status_code == 200:
            response.headers["content-type"] = kind
        response.headers["cache-control"] = "no-cache"
        response.headers["x-content-type-options"] = "nosniff"
        return response


def code_files() -> CodeFiles:
    """The application to mount."""
    return CodeFiles(directory=FOLDER, check_dir=False)
