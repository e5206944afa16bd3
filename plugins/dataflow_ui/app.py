"""The web app behind both pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI

from dataflow_ops.console.sample_pace import Pace
from dataflow_ui.failures import add_error_handlers
from dataflow_ui.files import code_files
from dataflow_ui.house import House
from dataflow_ui.product_routes import router as product_router
from dataflow_ui.rights import asked_about
from dataflow_ui.run_routes import router as run_router
from dataflow_ui.sample_routes import router as sample_router
from dataflow_ui.sample_task_routes import router as sample_task_router


def make_app(home: Path | None = None) -> FastAPI:
    """All routes. Nobody gets past them without being signed in; only the code of the pages is open.

    Args:
        home: DataFlow's home folder; ``DATAFLOW_HOME`` when ``None``.
    """
    house = House(home)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        house.close()

    app = FastAPI(
        title="DataFlow",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(get_user), Depends(asked_about)],
        lifespan=lifespan,
    )
    app.state.house = house
    app.state.pace = Pace()
    app.mount("/static", code_files(), name="static")
    app.include_router(run_router)
    app.include_router(product_router)
    app.include_router(sample_router)
    app.include_router(sample_task_router)
    add_error_handlers(app)
    return app
