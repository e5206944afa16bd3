"""Whom PostgreSQL runs as: it refuses root, so root lends it an unprivileged account and one folder."""

from __future__ import annotations

import hashlib
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.errors import ConfigError

_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """An account to give up root for."""

    name: str
    uid: int
    gid: int


def unprivileged() -> Account | None:
    """None where this process is not root and needs nobody else.

    Raises:
        ConfigError: root, on a machine without a suitable account.
    """
    if os.geteuid() != 0:
        return None
    for name in _ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise ConfigError(
        "PostgreSQL must not run as root, and there is neither an account `postgres` nor `nobody`;"
        " start the stack as an ordinary user"
    )


def data_folder(stack: Path, account: Account | None) -> Path:
    """Where PostgreSQL's files go: in the stack's folder, unless the account can't get there.

    That happens when root works below its own closed home; then the files lie under ``/var/lib``.
    """
    inside = stack / "postgres"
    if account is None or _can_enter(stack, account):
        return inside
    mark = hashlib.sha256(str(stack).encode()).hexdigest()[:12]
    return Path("/var/lib/dataflow-stack") / mark / "postgres"


def _can_enter(folder: Path, account: Account) -> bool:
    return (
        subprocess.run(
            ["test", "-x", str(folder)],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            cwd="/",
            check=False,
        ).returncode
        == 0
    )
