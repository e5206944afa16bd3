"""Health check of one container: ``python -m dataflow_ops.stack.probe NAME``, in the stack's environment."""

from __future__ import annotations

import os
import sys
import time

from dataflow_ops.stack.components import API, REDIS
from dataflow_ops.stack.health import healthy


def main(name: str) -> int:
    """0 where the component is well, else 1 and a line that says what was seen."""
    # What it is judged by must be asked too: Airflow's health page, and the broker for workers.
    asked = [name, *(other for other in (REDIS, API) if other != name)]
    now = time.time()
    well, seen = healthy(asked, os.environ, dict.fromkeys(asked, now - 600))[name]
    sys.stdout.write(f"{name}: {seen}\n")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
