"""DataFlow's home folder: where state and stored bytes are, unless the environment says otherwise."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.errors import ConfigError

FULL = (errno.ENOSPC, errno.EDQUOT)
"""A full disk is another fault: it is told as such."""


@dataclass(frozen=True, slots=True)
class Home:
    """An opened home.

    Attributes:
        path: the folder.
        root: storage root (``DATAFLOW_ROOT``, default the folder itself).
        state_url: SQLAlchemy URL (``DATAFLOW_STATE_URL``, default ``state.db`` in the folder).
    """

    path: Path
    root: Path
    state_url: str


def open_home(path: Path, *, create: bool = True) -> Home:
    """Create the folder if need be and bring its database to the newest schema.

    Raises:
        ConfigError: ``create`` is False and there is no such home, or it can't be made or written.
    """
    from dataflow_ops.state.migrate import migrate

    path = path.absolute()
    url = os.environ.get("DATAFLOW_STATE_URL", f"sqlite:///{path / 'state.db'}")
    if not create and not path.is_dir():
        raise ConfigError(
            f"{path}: no DataFlow home here; `dataflow run JOB` makes one, or name another with --home"
        )
    root = Path(os.environ.get("DATAFLOW_ROOT", path)).absolute()
    for folder in (path, root):
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
    migrate(url)
    return Home(path, root, url)
