"""The web app behind both pages."""

from __future__ import annotations

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI

from dataflow_ui.files import code_files
from dataflow_ui.product_routes import router as product_router
from dataflow_ui.run_routes import router as run_router


def make_app() -> FastAPI:
    """All routes. Nobody gets past them without being signed in; only the code of the pages is open."""
    app = FastAPI(
        title="DataFlow",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(get_user)],
    )
    app.mount("/static", code_files(), name="static")
    app.include_router(run_router)
    app.include_router(product_router)
    return app
