"""Who holds a lease or a claim, and whether that process still runs. Light: small processes import it."""

from __future__ import annotations

import os
import socket

import psutil


def owner_name() -> str:
    """Name of this process for leases: host, process id, start time (process ids are used again)."""
    started = int(psutil.Process().create_time() * 100)
    return f"{socket.gethostname()}:{os.getpid()}:{started}"


def owner_is_gone(owner: str | None) -> bool:
    """Whether the owner of a lease was a process of this host that no longer runs."""
    if owner is None:
        return False
    host, _, rest = owner.rpartition(":")[0].rpartition(":")
    started = owner.rpartition(":")[2]
    if host != socket.gethostname() or not rest.isdigit() or not started.isdigit():
        return False
    try:
        process = psutil.Process(int(rest))
        return int(process.create_time() * 100) != int(started) or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
