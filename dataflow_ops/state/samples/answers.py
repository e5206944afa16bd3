"""What models answered, by the dialogues that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from dataflow_ops.state.sample_tables import generation

_g = generation.c
COLUMNS = (
    _g.row_identifier,
    _g.task_id,
    _g.turn_taking,
    _g.draw,
    _g.prompt_name,
    _g.model,
    _g.answer,
    _g.result_as,
    _g.score,
)


def answers_between(
    connection: sa.Connection, prompt_versions: Sequence[str], file: str, first: int, last: int
) -> list[sa.Row[*tuple[Any, ...]]]:
    """Answers of some prompts about the records of a file, in an order that follows from them alone.

    Args:
        connection: to read with.
        prompt_versions: whichever task asked: what was answered for another is not asked again.
        file: id of the file.
        first: ``row_identifier`` of the first record.
        last: of the last one.

    Returns:
        Rows of :data:`COLUMNS`.
    """
    query = (
        sa.select(*COLUMNS)
        .where(
            _g.dataset_file_id == file,
            _g.row_identifier.between(first, last),
            _g.prompt_version.in_(prompt_versions),
        )
        .order_by(_g.row_identifier, _g.prompt_name, _g.turn_taking, _g.draw, _g.request_key)
    )
    return list(connection.execute(query))
