"""``dataflow``: the command line. The commands are imported where an interruption is expected already."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point; whoever presses Ctrl-C while the program still loads gets a word instead of a trace."""
    try:
        from dataflow_ops.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)  # what a shell gives it; cli.options may not have been reached


if __name__ == "__main__":
    main()
