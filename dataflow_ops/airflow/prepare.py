"""What must be done once before Airflow's processes start: databases, first user, roles, pools.

``python -m dataflow_ops.airflow.prepare``, with the stack's environment. Every step may be repeated. One
process does it all, since importing Airflow costs more than most of the steps.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from dataflow_ops.stack.databases import create_databases
from dataflow_ops.stack.object_store import make_bucket

LOOKERS = ("Viewer", "User")
"""Roles of Airflow's that read runs and are not told of plugins."""


def main() -> int:
    """Prepare everything; exit code."""
    from dataflow_ops.state.migrate import migrate

    _step("databases", create_databases, os.environ["DATAFLOW_STATE_URL"], ("airflow", "dataflow"))
    _step("DataFlow's schema", migrate, os.environ["DATAFLOW_STATE_URL"])
    _step("Airflow's schema", _airflow, "db", "migrate")
    _step("first user", _user, os.environ["DATAFLOW_STACK_USER"], os.environ["DATAFLOW_STACK_PASSWORD"])
    _step("roles", _roles)
    _step("pools", _pools)
    bucket = os.environ.get("DATAFLOW_STACK_BUCKET")
    if bucket:
        _step("bucket", make_bucket, bucket, os.environ)
    return 0


def _step(what: str, call: Any, *arguments: object) -> None:
    began = time.monotonic()
    call(*arguments)
    sys.stderr.write(f"{what}: done in {time.monotonic() - began:.1f} s\n")
    sys.stderr.flush()


def _airflow(*arguments: str) -> None:
    from airflow.cli.cli_parser import get_parser

    parsed = get_parser().parse_args(list(arguments))
    parsed.func(parsed)


def _user(name: str, password: str) -> None:
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder
    from airflow.utils.providers_configuration_loader import providers_configuration_loaded

    @providers_configuration_loaded
    def ensure() -> None:
        with get_application_builder() as builder:
            manager = builder.sm
            known = manager.find_user(name)
            if known is not None:
                manager.reset_password(known.id, password)
                return
            role = manager.find_role("Admin")
            if not manager.add_user(name, name, "", f"{name}@localhost", role, password):
                raise SystemExit(f"the user {name} could not be created; the lines above say why")

    ensure()


def _roles() -> None:
    """Let those who may look at runs see that our pages exist: Airflow lists plugins to operators alone.

    What the pages show is decided by the rights on each data set's DAGs.
    """
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder
    from airflow.utils.providers_configuration_loader import providers_configuration_loaded

    @providers_configuration_loaded
    def ensure() -> None:
        with get_application_builder() as builder:
            manager = builder.sm
            seen = manager.create_permission("can_read", "Plugins")
            for name in LOOKERS:
                manager.add_permission_to_role(manager.find_role(name), seen)

    ensure()


def pool_sizes(environment: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Slots and description by pool, from the variables that the stack sets for the preparation."""
    workers, each, elsewhere, urgent = (
        int(environment[f"DATAFLOW_STACK_{name}"])
        for name in ("WORKERS", "CONCURRENCY", "SLOTS_ELSEWHERE", "URGENT_SLOTS")
    )
    return {
        "default_pool": (max(1, workers * each + elsewhere), "As many slots as workers have"),
        "urgent": (urgent, "Slots of the worker that only takes urgent tasks"),
    }


def _pools() -> None:
    from airflow.models.pool import Pool

    for name, (slots, text) in pool_sizes(os.environ).items():
        Pool.create_or_update_pool(name, slots=slots, description=text, include_deferred=False)


if __name__ == "__main__":
    sys.exit(main())
