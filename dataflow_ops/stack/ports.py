"""Ports that somebody else holds are told before anything starts."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.components import API, POSTGRES, REDIS, STORE
from dataflow_ops.stack.object_store import PORTS
from dataflow_ops.stack.settings import StackSettings

_KEYS = {API: "web", POSTGRES: "postgres", REDIS: "redis", STORE: "object_store"}


def check_ports(settings: StackSettings, to_start: Iterable[str]) -> None:
    """Every port that a component is about to listen on is free.

    Args:
        settings: the stack's.
        to_start: components that do not run yet.

    Raises:
        ConfigError: one is taken, or the host's address is not this machine's; says what to change.
    """
    faults = []
    for name in to_start:
        key = _KEYS.get(name)
        if key is None:
            continue
        first = getattr(settings.ports, key)
        for port in range(first, first + (PORTS if name == STORE else 1)):
            host = settings.host if port == first else "127.0.0.1"
            fault = _fault(host, port)
            if fault == errno.EADDRINUSE:
                other = " or use --port" if key == "web" else ""
                faults.append(
                    f"port {port} for {name} is taken{_holder(port)}; change ports.{key} in stack.yaml{other}"
                )
            elif fault:
                faults.append(
                    f"{name} can't listen on {host}:{port} ({errno.errorcode.get(fault, fault)});"
                    f" check host and ports.{key} in stack.yaml"
                )
    if faults:
        raise ConfigError("\n".join(faults))


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _fault(host: str, port: int) -> int:
    with socket.socket() as probe:
        # As the servers do: connections that linger after an end are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except socket.gaierror:
            return errno.EADDRNOTAVAIL
        except OSError as e:
            return e.errno or errno.EIO
    return 0


def _holder(port: int) -> str:
    """Who listens there, where the system tells."""
    import psutil

    try:
        for connection in psutil.net_connections("tcp"):
            address = connection.laddr
            if connection.status == psutil.CONN_LISTEN and address and address[1] == port and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (process {connection.pid})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return ""
    return ""
