"""The relay as a process of the stack (``python -m …``), without what the command line loads beside it.

It finds home, state, webhooks and secrets in the environment, and says in its log what a person should know.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from dataflow_ops.errors import DataFlowError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.relay import Relay
from dataflow_ops.pipeline.relay_lane import Tally

_PATIENCE_S = 60.0
_TOLD_EVERY_S = 300.0


def main() -> int:
    """Relay until SIGTERM; exit code."""
    told_at, told = time.monotonic(), ""

    def progress(tallies: Mapping[str, Tally]) -> None:
        nonlocal told_at, told
        text = "; ".join(f"{name}: {tally.told}" for name, tally in sorted(tallies.items()))
        if text != told and time.monotonic() - told_at > _TOLD_EVERY_S:
            told_at, told = time.monotonic(), text
            _say(text)

    try:
        home = open_home(Path(os.environ["DATAFLOW_HOME"]), create=False, patience_s=_PATIENCE_S)
        Relay(home, os.environ, log=_say, progress=progress).run(_PATIENCE_S)
    except DataFlowError as e:
        _say(f"error: {e}")
        return 1
    _say("ended")
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
