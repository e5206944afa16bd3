"""What other DAGs wait for: an event for every version that is published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.pipeline.announce import KEYS, asset_name


def asset_of(dataset: str) -> Asset:
    """The asset of a data set; ``schedule=[Asset("dataflow://web")]`` starts on it: the name is the address,
    since Airflow refuses another name for the same one.
    """
    return Asset(name=asset_name(dataset), uri=asset_name(dataset), group="dataflow")


def tell(operator: Any, context: Any, published: Mapping[str, Any]) -> None:
    """Emit the event of a published version when the task ends.

    It goes out at least once: a task that is tried again after its version was published tells it again.
    """
    for asset in operator.outlets:
        context["outlet_events"][asset].extra = {key: published[key] for key in KEYS}


def tell_nothing(operator: Any) -> None:
    """Emit no event: a training DAG must not start on a version that waits for a person."""
    # Airflow reads what a task leaves in this list once it has run.
    operator.outlets = []
