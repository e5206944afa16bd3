"""DataFlow's home folder: where state and stored bytes are, unless the environment says otherwise."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from dataflow_ops.clients.s3 import NOTED, S3Access, access_from_environment
from dataflow_ops.errors import ConfigError, DatabaseUnavailable
from dataflow_ops.storage.opening import Root, root_of

FULL = (errno.ENOSPC, errno.EDQUOT)
"""A full disk is another fault: it is told as such."""


@dataclass(frozen=True, slots=True)
class Home:
    """An opened home.

    Attributes:
        path: the folder.
        root: storage root (``DATAFLOW_ROOT``: a folder or ``s3://bucket/prefix``; else the stack's of this
            home, else the home itself).
        state_url: SQLAlchemy URL (``DATAFLOW_STATE_URL``, else the stack's of this home, else ``state.db``).
        redis_url: where pause flags have a fast copy (``DATAFLOW_REDIS_URL``); ``None`` for none.
        cold: below which folder maintenance is to keep the cold tier (``DATAFLOW_COLD``); ``None``: where
            the home remembers it, if it has one.
    """

    path: Path
    root: Root
    state_url: str
    redis_url: str | None = None
    cold: Path | None = None


def open_home(path: Path, *, create: bool = True, patience_s: float = 0.0) -> Home:
    """Create the folder if need be and bring its database to the newest schema.

    Args:
        path: the folder.
        create: make it where it is not there.
        patience_s: how long to wait for a database that is away.

    Raises:
        ConfigError: ``create`` is False and there is no such home, or it can't be made or written.
    """
    from dataflow_ops.state.migrate import migrate

    path = path.absolute()
    stack = _stack(path)
    url = os.environ.get("DATAFLOW_STATE_URL") or stack.get("state_url") or f"sqlite:///{path / 'state.db'}"
    if not create and not path.is_dir():
        raise ConfigError(
            f"{path}: no DataFlow home here; `dataflow run JOB` makes one, or name another with --home"
            " (`dataflow stack up` prints the platform's)"
        )
    root = root_of(os.environ.get("DATAFLOW_ROOT") or stack.get("root") or str(path), _access(stack))
    for folder in (path, *((root,) if isinstance(root, Path) else ())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            if e.errno in FULL:
                raise
            raise ConfigError(
                f"{folder}: the folder can't be made ({e.strerror}); work where you may write, or name"
                " another folder with --home"
            ) from e
    if (create or url.startswith("sqlite")) and not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(f"{path}: you may not write here; name another folder with --home")
    try:
        migrate(url, patience_s)
    except DatabaseUnavailable as e:
        if url != stack.get("state_url"):
            raise
        raise DatabaseUnavailable(f"{e}; is the stack up? `dataflow stack up --home {path}` starts it") from e
    redis_url = os.environ.get("DATAFLOW_REDIS_URL") or stack.get("redis_url")
    cold = os.environ.get("DATAFLOW_COLD")
    return Home(path, root, url, redis_url, Path(cold).absolute() if cold else None)


def _access(stack: dict[str, str]) -> S3Access | None:
    """How a stack reaches its object store, unless the environment names one."""
    if os.environ.get("DATAFLOW_S3_ENDPOINT") or not stack.get("s3_endpoint"):
        return None
    noted = {variable: stack[name] for name, variable in NOTED.items() if name in stack}
    return replace(
        access_from_environment({**os.environ, **noted}),
        access_key=stack.get("s3_access_key", ""),
        secret_key=stack.get("s3_secret_key", ""),
        session_token=stack.get("s3_session_token", ""),
    )


def _stack(path: Path) -> dict[str, str]:
    """Where the state of a home is that a stack keeps (``dataflow stack up`` wrote it down), else nothing.

    So a line copied from the web page works in any terminal of the stack's owner.
    """
    note = path / "stack" / "connect.json"
    try:
        found = json.loads(note.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as e:
        raise ConfigError(
            f"{note}: a stack keeps this home's state, but the note of where can't be read ({e}); work as the"
            " stack's owner, or set DATAFLOW_STATE_URL"
        ) from e
    return {name: str(value) for name, value in found.items() if value}
