"""Plain functions on Arrow buffers and numpy arrays: no I/O but for the cache of compiled code."""

from pathlib import Path

from dataflow_ops.kernels import cache_folder

# Before any kernel is compiled, and before numba is asked where it may keep the result.
cache_folder.ensure(Path(__file__).parent)
