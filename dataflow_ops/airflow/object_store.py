"""An Airflow connection as the way into object storage; the rest of the program reads the environment."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any, Final

CONNECTION: Final = "DATAFLOW_S3_CONN_ID"
"""Variable that names the connection: of type Amazon Web Services, or Generic with the same fields."""


def use_connection(environment: MutableMapping[str, str] = os.environ) -> None:
    """Resolve the connection that ``DATAFLOW_S3_CONN_ID`` names, for this process and its children.

    Login and password become the credentials; ``endpoint_url``, ``region_name``, ``aws_session_token`` and
    ``path_style`` of its extra fields are used. Without the variable nothing changes.

    Raises:
        ConfigError: there is no such connection, or it names half of the credentials.
    """
    name = environment.get(CONNECTION, "").strip()
    if not name:
        return
    environment.update(variables_of(name, _connection(name)))


def variables_of(name: str, connection: Any) -> dict[str, str]:
    """What a connection says, in the names that :mod:`dataflow_ops.clients.s3` and boto3 read.

    Args:
        name: of the connection, for messages.
        connection: Airflow's.

    Raises:
        ConfigError: it names half of the credentials.
    """
    from dataflow_ops.errors import ConfigError

    extra = connection.extra_dejson
    if bool(connection.login) != bool(connection.password):
        raise ConfigError(
            f"connection '{name}' has {'a login' if connection.login else 'a password'} alone: give both"
            " (access key and secret key), or neither where the instance has a role"
        )
    found = {
        "AWS_ACCESS_KEY_ID": connection.login,
        "AWS_SECRET_ACCESS_KEY": connection.password,
        "AWS_SESSION_TOKEN": extra.get("aws_session_token"),
        "DATAFLOW_S3_ENDPOINT": extra.get("endpoint_url"),
        "DATAFLOW_S3_REGION": extra.get("region_name"),
        "DATAFLOW_S3_PATH_STYLE": str(extra["path_style"]).lower() if "path_style" in extra else None,
    }
    return {variable: str(value) for variable, value in found.items() if value}


def _connection(name: str) -> Any:
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowException

    from dataflow_ops.errors import ConfigError

    try:
        return BaseHook.get_connection(name)
    except AirflowException as e:
        raise ConfigError(
            f"{CONNECTION} names the connection '{name}', and Airflow has none of that name: add it under"
            " Admin, Connections, or correct the variable"
        ) from e
