"""Telling an orchestrator that a version was published or is current again, so that others start on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dataflow_ops.errors import ConfigError, VersionError

if TYPE_CHECKING:  # DAG files import this
    from dataflow_ops.pipeline.version_shelf import VersionShelf

KEYS: Final = (
    "dataset",
    "version",
    "base",
    "manifest",
    "mode",
    "data_date",
    "documents",
    "tokens",
    "current",
)
"""What an event says. ``manifest`` is relative to the storage root; ``base``: version that it builds on."""
APPROVAL: Final = "approval"
"""Task of a DAG run that waits for a person's answer, and then tells by itself."""

How = Literal["sent", "by_dag_run", "nobody", "no_airflow", "not_sent"]


@dataclass(frozen=True, slots=True)
class Announced:
    """What became of an event.

    Attributes:
        how: ``sent`` · ``by_dag_run``: its DAG run waits for the decision, and tells · ``nobody``: Airflow
            knows no such asset, so no DAG starts on it · ``no_airflow``: this home has none · ``not_sent``:
            Airflow is away.
        message: for a person; empty where there is nothing to say.
    """

    how: How
    message: str = ""


def asset_name(dataset: str) -> str:
    """Name of a data set's asset. Its address is what Airflow makes of it (with a slash at the end)."""
    return f"dataflow://{dataset}"


def event_of(versions: VersionShelf, version: str | None, dataset: str | None = None) -> dict[str, Any]:
    """What an event of a published version says: :data:`KEYS`.

    Raises:
        VersionError: no such version, or nobody has let it through.
    """
    from dataflow_ops.pipeline.version_states import PUBLISHED

    found = versions.show(version, dataset)
    if found["state"] != PUBLISHED:
        raise VersionError(
            f"{found['version']} is not published: `dataflow versions approve` lets it through"
        )
    known = {**found, "manifest": f"versions/{found['version']}/manifest.json"}
    return {key: known[key] or None if key == "data_date" else known[key] for key in KEYS}


def announce(home_path: Path, version: str | None, dataset: str | None = None) -> Announced:
    """Send the event of a published version through Airflow's API, unless its DAG run is about to.

    Args:
        home_path: home folder; the stack's login lies there.
        version: id, or a start of one; the current one for None.
        dataset: of this data set.

    Raises:
        VersionError: no such version, or nobody has let it through.
    """
    from dataflow_ops.clients.airflow_api import ENDED, AirflowApi, AirflowAway, AirflowRefused, find_login
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home_path) as versions:
        event = event_of(versions, version, dataset)
        run = versions.run_of(event["version"], event["dataset"])
    origin = json.loads(run.origin) if run is not None and run.origin else {}
    asked = (str(origin.get("dag_id") or ""), str(origin.get("run_id") or ""))
    again = f"`dataflow versions announce {event['version']}` sends it"
    try:
        login = find_login(home_path)
        if login is None:
            return Announced("no_airflow")
        with AirflowApi(login) as api:
            if not api.is_healthy():
                return Announced(
                    "not_sent", f"No asset event was sent: Airflow is not up. Once it is: {again}."
                )
            if all(asked):
                there = api.dag_run(*asked)
                if there is not None and there.state not in ENDED and api.is_task_open(*asked, APPROVAL):
                    return Announced(
                        "by_dag_run", "Its DAG run, which waited for this, sends the asset event."
                    )
            name = asset_name(event["dataset"])
            if not api.emit(name, event):
                return Announced("nobody", f"Airflow knows no asset {name}: no DAG starts on it.")
    except (AirflowAway, AirflowRefused, ConfigError) as e:
        return Announced("not_sent", f"No asset event was sent: {e}. Once that is mended: {again}.")
    return Announced("sent", f"Airflow was told: DAGs that wait for {name} start.")
