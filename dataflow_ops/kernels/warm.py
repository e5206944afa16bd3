"""Compiles every kernel into numba's on-disk cache: ``python -m dataflow_ops.kernels.warm``.

Set-up calls it once, so that no run pays for compilation and no two workers compile the same kernel.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time

import dataflow_ops.kernels


def main() -> int:
    """Import every kernel module and call its ``warm()`` where it has one."""
    began = time.monotonic()
    for info in pkgutil.iter_modules(dataflow_ops.kernels.__path__):
        if info.name == "warm":
            continue
        module = importlib.import_module(f"dataflow_ops.kernels.{info.name}")
        warm = getattr(module, "warm", None)
        if warm is not None:
            warm()
    print(f"Kernels compiled in {time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
