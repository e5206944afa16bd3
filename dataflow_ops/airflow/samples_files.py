"""Files that the form names: only what lies below the folder of sample files may be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dataflow_ops.errors import ConfigError


def named_files(folder: Path, lines: Sequence[str]) -> list[str]:
    """Paths of the files that lines of the form name, in their order, each once.

    Args:
        folder: of sample files.
        lines: names or patterns (``**`` allowed) relative to the folder.

    Raises:
        ConfigError: a line leads out of the folder, or names no file.
    """
    found: dict[str, None] = {}
    inside = folder.resolve()
    for line in (one.strip() for one in lines):
        if not line:
            continue
        if Path(line).is_absolute() or ".." in Path(line).parts:
            raise ConfigError(
                f"file {line!r}: name it relative to {folder}, without '..' (DATAFLOW_SAMPLE_FILES says which"
                " folder it is)"
            )
        exact = folder / line
        paths = [exact] if exact.is_file() else sorted(path for path in folder.glob(line) if path.is_file())
        if not paths:
            raise ConfigError(f"file {line!r}: there is none of this name in {folder}; put it there first")
        for path in paths:
            # A link inside the folder may point out of it.
            if not path.resolve().is_relative_to(inside):
                raise ConfigError(f"file {line!r}: it leads out of {folder}; copy it there instead")
            found[str(path)] = None
    return list(found)
