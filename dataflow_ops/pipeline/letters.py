"""Dead letters for the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.store import StateStore


def list_letters(
    home_path: Path, error: str | None, limit: int
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Counts by error, and the first ``limit`` open letters, of the newest run of each data set."""
    state = StateStore(open_home(home_path, create=False).state_url)
    try:
        rows = [
            {
                "id": r.id[:12],
                "level": r.letter.level,
                "step": r.letter.step,
                "source": r.letter.source_id,
                "path": r.letter.path,
                "position": r.letter.position,
                "doc_id": r.letter.doc_id,
                "error": r.letter.error,
                "message": r.letter.message,
                "parser": r.letter.parser,
                "media_type": r.letter.media_type,
                "host": r.letter.host,
            }
            for r in state.dead_letters(error=error, limit=limit, newest=True)
        ]
        return state.count_dead_letters("error", newest=True), rows
    finally:
        state.close()


def change_letters(
    home_path: Path, action: Literal["retry", "drop"], ids: Sequence[str], error: str | None, every: bool
) -> int:
    """Retry or drop letters; return how many.

    The next run plans the chunks of document and file letters under new keys (docs/adr/0008).

    Raises:
        ConfigError: nothing was named, or an id fits no letter.
    """
    if not (ids or error or every):
        raise ConfigError("name letters by id, or use --error NAME or --all")
    state = StateStore(open_home(home_path, create=False).state_url)
    try:
        letters = state.dead_letters(error=error, limit=1_000_000, newest=True)
        if ids:
            for one in ids:
                if not any(r.id.startswith(one) for r in letters):
                    raise ConfigError(
                        f"no open dead letter has the id '{one}'; `dataflow dead-letters list` shows them"
                    )
            letters = [r for r in letters if r.id.startswith(tuple(ids))]
        chosen = [r.id for r in letters]
        if action == "drop":
            return state.drop_dead_letters(chosen)
        return state.retry_dead_letter(chosen)
    finally:
        state.close()
