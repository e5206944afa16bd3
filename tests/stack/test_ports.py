from __future__ import annotations

import os
import socket

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.ports import check_ports, free_port
from dataflow_ops.stack.settings import Ports, StackSettings


def test_a_taken_port_is_told_with_who_has_it_and_what_to_change() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        port = other.getsockname()[1]
        settings = StackSettings(ports=Ports(web=port, postgres=free_port(), redis=free_port()))
        with pytest.raises(ConfigError) as caught:
            check_ports(settings, ["postgres", "redis", "api-server"])
        told = str(caught.value)
        assert f"port {port} for api-server is taken" in told
        assert str(os.getpid()) in told
        assert "ports.web" in told
        assert "--port" in told
        assert "postgres" not in told


def test_the_port_of_what_runs_already_is_not_looked_at() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        settings = StackSettings(
            ports=Ports(postgres=other.getsockname()[1], web=free_port(), redis=free_port())
        )
        check_ports(settings, ["redis", "api-server", "worker-1"])


def test_a_host_that_is_not_this_machine_is_told() -> None:
    with pytest.raises(ConfigError, match="check host"):
        check_ports(StackSettings(host="192.0.2.1"), ["redis"])
