"""One compaction in a process of its own, which may be told to die: ``HOME [JSON options]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.pipeline.run_once import KillAt, Record


def main() -> int:
    from dataflow_ops.cli.console import ConsoleReporter
    from dataflow_ops.pipeline.compact import compact

    options = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    hooks: KillAt | Record | None = None
    if "kill" in options:
        hooks = KillAt(options["kill"], Path(options["marker"]))
    elif "record" in options:
        hooks = Record(Path(options["record"]))
    done = compact(
        Path(sys.argv[1]), None, options.get("workers", 0), ConsoleReporter(quiet=True), hooks=hooks
    )
    print(json.dumps(done.as_json()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
