"""The stand-alone ``verify.py`` that lies beside every version."""

from __future__ import annotations

from importlib import resources


def verify_script() -> bytes:
    """The text of ``verify.py``: needs Python 3.9 and pyarrow, and zstandard for ``jsonl.zst``."""
    return resources.files("dataflow_ops.layers.export").joinpath("verify_template.py").read_bytes()
