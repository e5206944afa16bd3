"""Actions in Airflow's audit log: who did what, on which run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.log import Log
from airflow.utils.session import create_session
from fastapi import Depends

from dataflow_ui.rights import Right, Subject, asked_about, needs

PREFIX = "dataflow."


def acts(event: str, *more: Right) -> Callable[..., Subject]:
    """A dependency for a POST: the user may act (and has ``more`` rights), and the attempt is written down.

    It is written before the action is tried, as Airflow does it: what then fails was tried all the same.

    Args:
        event: what is done, e.g. ``pause``.
        more: further rights that it takes.
    """

    def write(
        user: GetUserDep,
        subject: Subject = Depends(needs("act", *more)),  # noqa: B008
        asked: dict[str, Any] = Depends(asked_about),  # noqa: B008
    ) -> Subject:
        with create_session() as session:
            session.add(
                Log(
                    event=PREFIX + event,
                    owner=user.get_name(),
                    owner_display_name=user.get_name(),
                    extra=json.dumps(asked, ensure_ascii=False, default=str)[:10_000],
                    dag_id=subject.dag_ids[0],
                    run_id=subject.dag_run or None,
                )
            )
        return subject

    return write
