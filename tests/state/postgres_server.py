"""A private PostgreSQL server for one test session, on a free port of the loopback interface."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import sqlalchemy as sa

from dataflow_ops.state.migrate import migrate

_START_TRIES = 3
_START_TIMEOUT_S = 30
_TEMPLATE = "migrated_template"


def find_binaries() -> Path | None:
    """The folder that holds initdb and postgres: the newest of Debian's, else the one on PATH."""
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3]), reverse=True
    )
    on_path = shutil.which("initdb")
    for initdb in [*debian, *([Path(on_path)] if on_path else [])]:
        if (initdb.parent / "postgres").exists():
            return initdb.parent
    return None


@dataclass(frozen=True)
class PostgresServer:
    """A running server; trusts whoever comes over the loopback interface."""

    port: int
    user: str

    def url(self, database: str) -> str:
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def database(self, migrated: bool) -> Iterator[str]:
        """The URL of a fresh database, dropped afterwards."""
        name = f"t_{uuid.uuid4().hex[:12]}"
        self._execute(f"CREATE DATABASE {name}" + (f" TEMPLATE {_TEMPLATE}" if migrated else ""))
        try:
            yield self.url(name)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def make_template(self) -> None:
        self._execute(f"CREATE DATABASE {_TEMPLATE}")
        migrate(self.url(_TEMPLATE))

    def _execute(self, statement: str) -> None:
        engine = sa.create_engine(
            self.url("postgres").replace("postgresql://", "postgresql+psycopg://"),
            isolation_level="AUTOCOMMIT",
        )
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
        engine.dispose()


def shared_server(folder: Path, binaries: Path, settings: Mapping[str, str] | None = None) -> PostgresServer:
    """The session's server; whichever process asks first starts it, with settings beside the usual ones."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = folder / "server.json"
        if note.exists():
            known = json.loads(note.read_text())
            return PostgresServer(known["port"], known["user"])
        user = _unprivileged()
        data = folder / "data"
        data.mkdir(mode=0o700)
        if user is not None:
            folder.chmod(0o711)
            os.chown(data, user.pw_uid, user.pw_gid)
        name = pwd.getpwuid(os.getuid()).pw_name if user is None else user.pw_name
        _run(
            [binaries / "initdb", "-D", data, "-U", name, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            user,
            data,
        )
        process, port = _start(binaries, data, user, name, folder / "log", settings or {})
        server = PostgresServer(port, name)
        note.write_text(json.dumps({"port": port, "user": name, "pid": process.pid}))
        server.make_template()
        return server


def stop_server(folder: Path) -> None:
    """Stop the session's server, if one was started, and remove its files."""
    note = folder / "server.json"
    if note.exists():
        pid = json.loads(note.read_text())["pid"]
        try:
            os.kill(pid, signal.SIGINT)
            for _ in range(100):
                _reap(pid)
                os.kill(pid, 0)
                time.sleep(0.05)
            os.kill(pid, signal.SIGQUIT)
        except ProcessLookupError:
            pass  # it is gone, which is what was asked for
    shutil.rmtree(folder, ignore_errors=True)


def restart_server(folder: Path, binaries: Path) -> None:
    """Stop a server of :func:`shared_server`, start it again on its port with its data and usual settings."""
    note = folder / "server.json"
    known = json.loads(note.read_text())
    os.kill(known["pid"], signal.SIGINT)
    for _ in range(_START_TIMEOUT_S * 20):
        _reap(known["pid"])
        try:
            os.kill(known["pid"], 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        raise RuntimeError(f"PostgreSQL (process {known['pid']}) did not stop")
    process, _ = _start(
        binaries, folder / "data", _unprivileged(), known["user"], folder / "log", {}, known["port"]
    )
    note.write_text(json.dumps({**known, "pid": process.pid}))


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # started by another process of the session


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom to run the server as: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL can't run as root, and there is neither a user postgres nor nobody")


def _identity(user: pwd.struct_passwd | None) -> dict[str, object]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _run(command: list[object], user: pwd.struct_passwd | None, cwd: Path) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        capture_output=True,
        text=True,
        **_identity(user),  # type: ignore[call-overload]
    )
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stdout}{done.stderr}")


def _start(
    binaries: Path,
    data: Path,
    user: pwd.struct_passwd | None,
    name: str,
    log: Path,
    more: Mapping[str, str],
    fixed_port: int | None = None,
) -> tuple[subprocess.Popen[bytes], int]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_connections": "200",
        "shared_buffers": "64MB",
        "autovacuum": "off",
        **more,
    }
    # Whoever connects meanwhile may be given the port for an end of its own, for a moment.
    for attempt in range(_START_TRIES if fixed_port is None else 20 * _START_TRIES):
        time.sleep(0.2 if attempt and fixed_port else 0)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = fixed_port or probe.getsockname()[1]
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        with log.open("ab") as out:
            process = subprocess.Popen(
                [str(binaries / "postgres"), "-D", str(data), "-p", str(port), *options],
                cwd=data,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                **_identity(user),  # type: ignore[call-overload]
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(host="127.0.0.1", port=port, user=name, dbname="postgres").close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return process, port
        process.kill()
        process.wait()
    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()[-2000:]}")
