"""PostgreSQL and Redis as private servers of one stack: their files and command lines."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from dataflow_ops.errors import StackError
from dataflow_ops.stack.account import Account
from dataflow_ops.stack.environment import DATABASE_USER
from dataflow_ops.stack.keys import Keys
from dataflow_ops.stack.layout import Layout, write_private
from dataflow_ops.stack.settings import StackSettings

POSTGRES_TUNING = {"max_connections": "300", "shared_buffers": "128MB", "log_min_duration_statement": "5s"}
"""Every process of the stack keeps some connections. Durability stays as PostgreSQL has it: on."""
REDIS_TUNING = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": '""',
    "maxmemory-policy": "noeviction",
}
"""The log of writes is on, snapshots are off: after a restart queued tasks are still there, but for the last
second. Without it each would sit in ``queued`` until Airflow gives up waiting for it."""

_LOOPBACK = ("127.0.0.1", "localhost")
_LISTENERS = (
    "local all all reject\nhost all all 127.0.0.1/32 scram-sha-256\nhost all all ::1/128 scram-sha-256\n"
)


def plain_environment() -> dict[str, str]:
    """All that a server needs of ours."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def create_cluster(initdb: str, data: Path, account: Account | None, keys: Keys) -> bool:
    """Make PostgreSQL's data folder unless it was completed before; whether it was made.

    It is made beside its final name and moved there when complete, so a killed call leaves nothing that
    looks finished.

    Raises:
        StackError: initdb failed.
    """
    if (data / "PG_VERSION").is_file():
        return False
    making = data.with_name(f"{data.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.parent.mkdir(parents=True, exist_ok=True)
    making.mkdir(mode=0o700)
    password = making / "password"
    write_private(password, keys.postgres_password)
    cluster = making / "cluster"
    cluster.mkdir(mode=0o700)
    if account is not None:
        for path in (making, password, cluster):
            os.chown(path, account.uid, account.gid)
    command = [initdb, "-D", str(cluster), "-U", DATABASE_USER, "-A", "scram-sha-256", "-E", "UTF8"]
    done = subprocess.run(
        [*command, "--locale=C", f"--pwfile={password}"],
        cwd=making,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else [],
    )
    if done.returncode:
        raise StackError(f"initdb failed; nothing was made:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    shutil.rmtree(data, ignore_errors=True)
    os.replace(cluster, data)
    shutil.rmtree(making)
    return True


def postgres_command(postgres: str, data: Path, settings: StackSettings) -> list[str]:
    """The server in the foreground: over TCP only, since a socket's path has a length limit."""
    options = {
        "listen_addresses": settings.host,
        "unix_socket_directories": "",
        "hba_file": str(data / "pg_hba.conf"),
        **POSTGRES_TUNING,
    }
    pairs = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return [postgres, "-D", str(data), "-p", str(settings.ports.postgres), *pairs]


def write_access(data: Path, settings: StackSettings, account: Account | None) -> None:
    """Who may connect: this machine; others of the same networks only where ``host`` lets them come in."""
    lines = _LISTENERS
    if settings.host not in _LOOPBACK:
        lines += "host all all samenet scram-sha-256\n"
    path = data / "pg_hba.conf"
    write_private(path, lines)
    if account is not None:
        os.chown(path, account.uid, account.gid)


def write_redis(layout: Layout, settings: StackSettings, keys: Keys) -> Path:
    """Redis' configuration: in a file, since others can read command lines."""
    path = layout.redis / "redis.conf"
    write_private(
        path,
        f"bind {settings.host}\n"
        f"port {settings.ports.redis}\n"
        f"requirepass {keys.redis_password}\n"
        f'dir "{layout.redis}"\n'
        "daemonize no\n" + "".join(f"{name} {value}\n" for name, value in REDIS_TUNING.items()),
    )
    return path
