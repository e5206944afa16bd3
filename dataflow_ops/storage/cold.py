"""The cold tier of a storage root: a folder elsewhere that holds, under the same names, what is seldom read.

``<root>/cold`` is a symbolic link to it, so every process that opens the root finds what was moved, whatever
its environment says. The folder behind the link has a name of its own for this root: where it is not there,
the place is away, and nothing that is missing here may be taken for lost.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from dataflow_ops.errors import ColdAway, ConfigError

COLD = "cold"
"""The link below the root, and the first part of the URIs under which the tier alone can be listed."""
TIERED = ("data/", "raw/")
"""What may lie there. Everything else lies in the root and nowhere else."""
OWNER = "home.txt"
"""In the tier: the path of the storage root that it belongs to."""
_NAME = re.compile(r"dataflow-cold-[0-9a-f]{12}")


class ColdTier:
    """The cold tier of one root, if it has one.

    Args:
        root: the storage root.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / COLD

    def exists(self) -> bool:
        """Whether the root has a cold tier.

        Raises:
            ColdAway: it has, and the place can't be reached.
        """
        if os.path.isdir(self.folder):
            return True
        if not os.path.lexists(self.folder):
            return False
        raise ColdAway(
            f"{_told(self.folder)}, where files of this home were moved to, can't be reached: mount it and"
            " run again. Nothing is lost, and nothing is made again meanwhile. If it lies elsewhere now:"
            " dataflow maintenance --cold FOLDER"
        )

    def path(self, uri: str) -> Path | None:
        """Where a file lies in the tier, by the URI that it has everywhere; None where it does not.

        Raises:
            ColdAway: that can't be told.
        """
        if not uri.startswith(TIERED) or not self.exists():
            return None
        path = self.folder / uri
        if os.path.isfile(path):
            return path
        # A place that went away in between is not one without the file.
        self.exists()
        return None


def attach(root: Path, folder: Path) -> None:
    """Give a root its cold tier below a folder, or tell it that the tier lies there now. Twice is once.

    Args:
        root: the storage root.
        folder: an existing folder; several homes may share it.

    Raises:
        ConfigError: no such folder; or the root has a tier, and it is not in this one.
        ColdAway: it is, and can't be reached.
    """
    if not folder.is_dir():
        raise ConfigError(f"--cold {folder}: no such folder; make it, or mount what it lies on")
    folder, link = folder.resolve(), root / COLD
    if not os.path.lexists(link):
        own = folder / f"dataflow-cold-{secrets.token_hex(6)}"
        _made(folder, own.mkdir)
        _point(link, own)
        return
    if not link.is_symlink():
        raise ConfigError(f"{link} is no link to a cold folder: it was put there by somebody else; move it")
    named = Path(os.readlink(link))
    if not _NAME.fullmatch(named.name):
        raise ConfigError(f"{link} links to {named}, which is no cold folder of a home; remove the link")
    there = folder / named.name
    if there == named and ColdTier(root).exists():
        return
    if not there.is_dir():
        raise ConfigError(
            f"--cold {folder}: the files that this home has moved are in {named}; to use another place, move"
            f" the folder {named.name} there first"
        )
    _point(link, there)


def claim(root: Path) -> None:
    """Note in the tier of a root whose it is; of a home that was copied with its link, only one may clear up.

    Raises:
        ConfigError: another home, which is still there, has the same tier.
        ColdAway: it can't be reached.
    """
    tier = ColdTier(root)
    if not tier.exists():
        return
    note, own = tier.folder / OWNER, str(root.resolve())
    known = note.read_text(encoding="utf-8") if note.exists() else ""
    if known == own:
        return
    other = Path(known, COLD)
    if known and other.exists() and other.samefile(tier.folder) and not Path(known).samefile(root):
        raise ConfigError(
            f"{own} is a copy of {known}, and both link to the same cold folder: what one of them clears away"
            f" the other would miss. Copy {tier.folder.resolve()} to {COLD} in one of them, in place of the"
            " link"
        )
    beside = note.with_name(f"{OWNER}.tmp_{os.getpid()}_{secrets.token_hex(4)}")
    beside.write_text(own, encoding="utf-8")
    os.replace(beside, note)


def _point(link: Path, to: Path) -> None:
    beside = link.with_name(f"{COLD}.tmp_{os.getpid()}_{secrets.token_hex(4)}")
    _made(link.parent, lambda: beside.symlink_to(to))
    os.replace(beside, link)
    for folder in (link.parent, to.parent):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _made(folder: Path, make: Callable[[], None]) -> None:
    try:
        make()
    except PermissionError as e:
        raise ConfigError(f"{folder}: you may not write here; name another folder with --cold") from e


def _told(link: Path) -> str:
    return os.readlink(link) if link.is_symlink() else str(link)
