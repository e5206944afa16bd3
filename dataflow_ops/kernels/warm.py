"""Compiles every kernel into numba's on-disk cache: ``python -m dataflow_ops.kernels.warm``.

Set-up calls it once, so that no run pays for compilation and no two workers compile the same kernel. A
process that forks others calls ``load()`` first, so that none of them loads what is compiled.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time

import dataflow_ops.kernels


def load() -> None:
    """Import every kernel module and call its ``warm()`` where it has one."""
    for info in pkgutil.iter_modules(dataflow_ops.kernels.__path__):
        if info.name == "warm":
            continue
        module = importlib.import_module(f"dataflow_ops.kernels.{info.name}")
        warm = getattr(module, "warm", None)
        if warm is not None:
            warm()


def main() -> int:
    """Compile or load everything, and say how long it took."""
    began = time.monotonic()
    load()
    print(f"Kernels compiled in {time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
