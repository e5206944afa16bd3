"""Moving a file from a storage root to its cold tier, in two steps that may be far apart.

First a checked copy is published there; readers still take the one in the root. Once it is old enough for
every reader of the first one to have ended, and its bytes hash right once more, the one in the root goes.
Killed anywhere, the file can be read, and the same call goes on.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.storage.blob import HASH_BLOCK, sha256_of
from dataflow_ops.storage.cold import COLD
from dataflow_ops.storage.disk import Disk
from dataflow_ops.storage.local import LocalStore

Moved = Literal["copied", "waits", "moved", "damaged"]


class Mover:
    """Moves files of one root.

    Args:
        root: a storage root with a cold tier.
        grace_s: seconds for which both copies are kept.
        disk: the durable operations; tests pass one that stops on purpose.
    """

    def __init__(self, root: Path, grace_s: float, disk: Disk | None = None) -> None:
        self._root = root
        self._grace_s = grace_s
        self._disk = disk or Disk()
        # By way of the link: where it leads nowhere, no folder is made in its place.
        self._cold = LocalStore(root / COLD, self._disk)

    def move(self, uri: str, sha256: str, mtime_ns: int) -> Moved:
        """Take the next step with one file.

        Args:
            uri: of a file in the root.
            sha256: hex digest that it must have.
            mtime_ns: modification time that the copy gets.

        Returns:
            ``copied``: it lies in both tiers now · ``waits``: it did before, for less than the grace period ·
            ``moved``: it lies in the cold tier alone · ``damaged``: it does not hash as it must, and stays.

        Raises:
            OSError: a tier can't be read or written.
            StorageFull: no space left in the cold tier.
        """
        copied = self._cold.stat(uri) is None
        if copied and not self._copy(uri, sha256, mtime_ns):
            return "damaged"
        if self._grace_s and time.time() - os.stat(self._cold.root / uri).st_ctime < self._grace_s:
            return "copied" if copied else "waits"
        with self._cold.open(uri) as file:
            whole = sha256_of(file)[0] == sha256
        if not whole:
            # What is kept must be the copy that is whole.
            return "copied" if self._copy(uri, sha256, mtime_ns) else "damaged"
        self._disk.unlink(self._root / uri)
        return "moved"

    def sweep(self, older_than_s: float) -> int:
        """Remove temporaries that a killed process left in the cold tier; returns how many."""
        return self._cold.sweep(older_than_s)

    def _copy(self, uri: str, sha256: str, mtime_ns: int) -> bool:
        staged = self._cold.stage(uri)
        try:
            with open(self._root / uri, "rb") as file:
                while block := file.read(HASH_BLOCK):
                    staged.write(block)
            if staged.finish() != sha256:
                return False
            os.utime(staged.path, ns=(mtime_ns, mtime_ns))
            # A copy there that has rotted is put aside.
            self._cold.publish(staged.path, uri, sha256, recorded=sha256)
        except CorruptOutput:
            return False
        finally:
            staged.discard()
        return True
