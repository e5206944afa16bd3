"""Airflow's own API server with the plugin in it, FAB's users and tokens, on SQLite: a process of its own.

    python -m tests.ui.airflow_server PORT ROUTES

ROUTES is a file that it writes: every route of the plugin's app, as JSON ``[[method, path], …]``.

Airflow reads its settings when it is first imported, so tests of several settings can't share a process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PASSWORD = "pass"
ROLES = {
    "Elsewhere": [
        ("can_read", "DAG Runs"),
        ("can_edit", "DAG Runs"),
        ("can_create", "DAG Runs"),
        ("can_read", "DAG:other__full"),
        ("can_edit", "DAG:other__full"),
        ("can_read", "Website"),
    ],
    "Texts": [
        ("can_read", "DAG Runs"),
        ("can_read", "DAG:tiny__full"),
        ("can_create", "DAG Run:tiny__full"),
    ],
    "Hands": [
        ("can_read", "DAG Runs"),
        ("can_edit", "DAG Runs"),
        ("can_read", "DAG:tiny__full"),
        ("can_edit", "DAG:tiny__full"),
    ],
}
"""Role → permissions: all rights on another data set, texts only, acting without texts."""
USERS = {
    "admin": "Admin",
    "op": "Op",
    "user": "User",
    "viewer": "Viewer",
    "elsewhere": "Elsewhere",
    "texts": "Texts",
    "hands": "Hands",
    "nobody": "Public",
}
DAGS = ("tiny__full", "tiny__incremental", "other__full")


def prepare() -> None:
    """Database, permissions of the DAGs, roles, users."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session

    initdb()
    with create_session() as session:
        session.add(DagBundleModel(name="dags-folder"))
        session.flush()
        session.add_all(DagModel(dag_id=name, bundle_name="dags-folder") for name in DAGS)
    with get_application_builder() as builder:
        manager = builder.sm
        manager.sync_roles()
        for dag_id in DAGS:
            manager.sync_perm_for_dag(dag_id)
        for name, permissions in ROLES.items():
            role = manager.add_role(name)
            for action, resource in permissions:
                manager.add_permission_to_role(role, manager.create_permission(action, resource))
        for name, role_name in USERS.items():
            role = manager.find_role(role_name)
            assert manager.add_user(name, name, name, f"{name}@example.org", role, PASSWORD), name


def main() -> None:
    """Serve until killed."""
    import uvicorn

    prepare()
    from airflow.api_fastapi.app import create_app

    app = create_app()
    Path(sys.argv[2]).write_text(json.dumps(routes(app)))
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")


def routes(app: Any) -> list[tuple[str, str]]:
    """What is mounted under the plugin's prefix, mounted files with method ``MOUNT``."""
    (mounted,) = [route.app for route in app.routes if getattr(route, "path", "") == "/dataflow"]
    found = []
    for route in mounted.routes:
        found += [(method, route.path) for method in sorted(getattr(route, "methods", None) or ["MOUNT"])]
    return found


if __name__ == "__main__":
    main()
