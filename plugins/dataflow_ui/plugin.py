"""What Airflow loads. Workers and the scheduler load it too, so the web app is made only when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from dataflow_ops.airflow import listener

PREFIX = "/dataflow"
"""Under which the web app is mounted."""


class DataFlowPlugin(AirflowPlugin):
    """The web app, the run's tab, the page in the navigation.

    The host shows ``name`` and keeps the component under ``globalThis[name]`` (at first it takes it from
    ``globalThis.AirflowPlugin``), so the two names must differ; so must the two routes.
    """

    name = "dataflow"
    listeners = [listener]  # noqa: RUF012  (Airflow's interface)
    react_apps = [  # noqa: RUF012  (Airflow's interface)
        {
            "name": "DataFlow run",
            "bundle_url": "dataflow/static/run.js",
            "destination": "dag_run",
            "url_route": "dataflow-run",
        },
        {
            "name": "DataFlow",
            "bundle_url": "dataflow/static/product.js",
            "destination": "nav",
            "url_route": "dataflow",
        },
    ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The web app, one for all who ask. FastAPI is imported here: by the API server alone."""
        from dataflow_ui.app import make_app

        return [{"app": make_app(), "url_prefix": PREFIX, "name": "DataFlow"}]
