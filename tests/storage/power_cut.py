"""A disk that can be switched off: what was not fsynced is forgotten, as a file system is allowed to.

Use::

    disk = PowerCutDisk(root, stop_at=7)          # power goes before (or after) the 7th durable step
    try:
        work(LocalStore(root, disk))
    except PowerCut:
        pass
    disk.power_cut()                              # the folder now holds what survived
    LocalStore(root)                              # a new process looks at it
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from dataflow_ops.storage.disk import Disk


class PowerCut(BaseException):
    """The power is gone. Not an error that any code may catch."""


class PowerCutDisk(Disk):
    """Counts durable steps, can stop at one of them, and knows what would survive.

    Args:
        root: everything below is watched. Files that others make there count as durable.
        stop_at: the step (from 0) at which the power goes; None: never.
        after: stop right after that step instead of before it.
    """

    def __init__(self, root: Path, stop_at: int | None = None, after: bool = False) -> None:
        self.root = root
        self.stop_at = stop_at
        self.after = after
        self.steps: list[str] = []
        self.dead = False
        self._watched: set[int] = set()
        # Kept open, so that an inode number is not given to another file and its bytes stay readable.
        self._handles: list[int] = []
        self._content: dict[int, bytes] = {}
        self._entries: dict[str, dict[str, int]] = {}
        self._made_folders: set[str] = set()
        self._touched: set[str] = set()

    def create(self, path: Path) -> BinaryIO:
        self._before("create", path)
        self._remember(path.parent)
        file = super().create(path)
        self._handles.append(os.open(path, os.O_RDONLY))
        self._watched.add(os.fstat(file.fileno()).st_ino)
        try:
            self._done()
        except PowerCut:
            file.close()
            raise
        return file

    def write(self, file: BinaryIO, data: bytes | memoryview) -> None:
        self._before("write", Path(str(file.name)))
        super().write(file, data)
        self._done()

    def fsync(self, file: BinaryIO) -> None:
        self._before("fsync", Path(str(file.name)))
        super().fsync(file)
        ino = os.fstat(file.fileno()).st_ino
        self._watched.add(ino)
        self._content[ino] = Path(str(file.name)).read_bytes()
        self._done()

    def link(self, source: Path, target: Path) -> None:
        self._before("link", target)
        self._remember(target.parent)
        super().link(source, target)
        self._done()

    def replace(self, source: Path, target: Path) -> None:
        self._before("replace", target)
        self._remember(source.parent)
        self._remember(target.parent)
        super().replace(source, target)
        self._done()

    def unlink(self, path: Path) -> None:
        if not self.dead and not path.exists():
            raise FileNotFoundError(path)
        self._before("unlink", path)
        self._remember(path.parent)
        self._handles.append(os.open(path, os.O_RDONLY))
        super().unlink(path)
        self._done()

    def mkdir(self, path: Path) -> None:
        self._before("mkdir", path)
        self._remember(path.parent)
        super().mkdir(path)
        self._made_folders.add(str(path))
        self._entries[str(path)] = {}
        self._done()

    def fsync_dir(self, path: Path) -> None:
        self._before("fsync_dir", path)
        super().fsync_dir(path)
        self._entries[str(path)] = self._now(path)
        self._done()

    def power_cut(self, keep_names: bool = False) -> None:
        """Roll the folder back to what a power cut may leave.

        Args:
            keep_names: the other thing that file systems do: names survive without having been synced,
                but the bytes behind them do not (half of them come back).
        """
        survivors: dict[str, dict[str, tuple[str, bytes]]] = {}
        self._survive(self.root, keep_names, survivors)
        self._close()
        shutil.rmtree(self.root, ignore_errors=True)
        if not survivors:
            return
        for folder in sorted(survivors):
            os.makedirs(folder, exist_ok=True)
            for name, (kind, data) in survivors[folder].items():
                if kind == "file":
                    Path(folder, name).write_bytes(data)
        self.dead = True

    def _survive(self, folder: Path, keep_names: bool, out: dict[str, dict[str, tuple[str, bytes]]]) -> None:
        if not folder.is_dir():
            return
        current = self._now(folder)
        durable = self._entries.get(str(folder))
        names = dict(current if keep_names or durable is None else durable)
        if keep_names and durable is not None:
            names = {**durable, **current}
        out[str(folder)] = {}
        by_ino = {os.fstat(h).st_ino: h for h in self._handles}
        for name, ino in names.items():
            path = folder / name
            if path.is_dir():
                self._survive(path, keep_names, out)
                continue
            if ino in self._content:
                data = self._content[ino]
            elif ino in self._watched:
                data = self._bytes(by_ino[ino])
                data = data[: len(data) // 2] if keep_names else b""
            elif path.exists() and path.stat().st_ino == ino:
                data = path.read_bytes()
            elif ino in by_ino:
                data = self._bytes(by_ino[ino])
            else:
                continue
            out[str(folder)][name] = ("file", data)

    @staticmethod
    def _bytes(handle: int) -> bytes:
        return os.pread(handle, os.fstat(handle).st_size, 0)

    def _close(self) -> None:
        for handle in self._handles:
            os.close(handle)
        self._handles = []

    def __del__(self) -> None:
        self._close()

    def _remember(self, folder: Path) -> None:
        """Before the first change in a folder: what is there already is durable."""
        self._entries.setdefault(str(folder), self._now(folder))

    @staticmethod
    def _now(folder: Path) -> dict[str, int]:
        return {entry.name: entry.inode() for entry in os.scandir(folder)} if folder.is_dir() else {}

    def _before(self, step: str, path: Path) -> None:
        if self.dead:
            raise PowerCut
        if self.stop_at == len(self.steps) and not self.after:
            self.dead = True
            raise PowerCut
        self.steps.append(f"{step} {path.name}")

    def _done(self) -> None:
        if self.after and self.stop_at == len(self.steps) - 1:
            self.dead = True
            raise PowerCut


class FullDisk(Disk):
    """Has no room after so many bytes, or refuses one kind of step with "no space left"."""

    def __init__(self, room: int = 1 << 60, refuse: str = "", code: int = errno.ENOSPC) -> None:
        self.room = room
        self.refuse = refuse
        self.code = code

    def write(self, file: BinaryIO, data: bytes | memoryview) -> None:
        length = memoryview(data).nbytes
        if self.refuse == "write" or length > self.room:
            super().write(file, memoryview(data)[: self.room])
            self.room = 0
            raise OSError(self.code, os.strerror(self.code))
        self.room -= length
        super().write(file, data)

    def fsync(self, file: BinaryIO) -> None:
        self._refuse("fsync")
        super().fsync(file)

    def link(self, source: Path, target: Path) -> None:
        self._refuse("link")
        super().link(source, target)

    def mkdir(self, path: Path) -> None:
        self._refuse("mkdir")
        super().mkdir(path)

    def create(self, path: Path) -> BinaryIO:
        self._refuse("create")
        return super().create(path)

    def _refuse(self, step: str) -> None:
        if self.refuse == step:
            raise OSError(self.code, os.strerror(self.code))
