"""Where numba keeps compiled kernels when it finds no folder itself.

Numba writes beside the source file, else below the user's cache folder; where it may write neither (an
install shared by users without a home), it refuses to compile at all. Then a folder below the system's
temporary one serves.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Final

VARIABLE: Final = "NUMBA_CACHE_DIR"


def ensure(package: Path) -> None:
    """Set ``NUMBA_CACHE_DIR`` where numba could write nowhere; a value that is set stays.

    Worker processes inherit the variable.

    Args:
        package: folder of the kernels.

    """
    if os.environ.get(VARIABLE) or _writable(package / "__pycache__") or _writable(_user_cache()):
        return
    os.environ[VARIABLE] = _private_folder()
    if config := sys.modules.get("numba.core.config"):
        config.reload_config()


def _user_cache() -> Path:
    """Numba's folder below the user's caches."""
    caches = (
        "~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    )
    return Path(os.path.expanduser(caches)) / "numba"


def _writable(folder: Path) -> bool:
    """Whether a file can be made there: numba's own test, since permissions alone don't tell."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private_folder() -> str:
    """A folder that nobody else can write to, as numba runs what it finds there; the same at each call."""
    folder = Path(tempfile.gettempdir()) / f"dataflow-numba-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not (stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022):
            return tempfile.mkdtemp(prefix="dataflow-numba-")
    return str(folder)
