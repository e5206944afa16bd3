"""The plan: every component with command and environment, written down for the supervisor to keep alive."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.account import Account
from dataflow_ops.stack.components import POSTGRES, PREPARE, REDIS, STORE, airflow_parts, prepare_variables
from dataflow_ops.stack.keys import Keys
from dataflow_ops.stack.layout import Layout, read_json, write_json
from dataflow_ops.stack.object_store import server_variables, weed_command
from dataflow_ops.stack.processes import Component, digest_of
from dataflow_ops.stack.servers import plain_environment, postgres_command
from dataflow_ops.stack.settings import StackSettings


def build(
    settings: StackSettings,
    layout: Layout,
    keys: Keys,
    programs: Mapping[str, str],
    data: Path,
    account: Account | None,
    own: Mapping[str, str],
    shell: Mapping[str, str],
) -> list[Component]:
    """All components of the local stack, in the order in which they start.

    Args:
        settings: the settings file.
        layout: where files go.
        keys: secrets.
        programs: paths of server programs; ``weed`` where there is to be an object store.
        data: PostgreSQL's folder.
        account: whom PostgreSQL runs as, None for the caller.
        own: the stack's own variables.
        shell: what is kept of the caller's shell.
    """
    server = postgres_command(programs["postgres"], data, settings)
    redis = [programs["redis-server"], str(layout.redis / "redis.conf")]
    extra = prepare_variables(settings, keys.admin_password, str(settings.workers.count))
    once = [sys.executable, "-m", "dataflow_ops.airflow.prepare"]
    uid, gid = (None, None) if account is None else (account.uid, account.gid)
    stores = (STORE,) if "weed" in programs else ()
    components = [
        Component(
            POSTGRES,
            tuple(server),
            plain_environment(),
            uid=uid,
            gid=gid,
            stop=signal.SIGINT,  # "fast": SIGTERM would wait for clients
            digest=digest_of(server),
        ),
        Component(REDIS, tuple(redis), plain_environment(), digest=digest_of([redis, settings.ports.redis])),
        *(_store(name, settings, layout, keys, programs["weed"]) for name in stores),
        Component(
            PREPARE,
            tuple(once),
            {**shell, **own, **extra},
            after=(POSTGRES, *stores),
            once=True,
            digest=digest_of([once, extra, stores, versions()]),
        ),
    ]
    for part in airflow_parts(settings):
        command = (sys.executable, "-m", "airflow", *part.arguments)
        components.append(
            Component(
                part.name,
                command,
                {**shell, **own, **part.extra},
                after=(PREPARE, POSTGRES, REDIS, *stores),
                digest=digest_of([command, dict(own), part.extra, versions()]),
            )
        )
    return components


def _store(name: str, settings: StackSettings, layout: Layout, keys: Keys, weed: str) -> Component:
    command = weed_command(weed, layout.store, settings.host, settings.ports.object_store)
    environment = {**plain_environment(), **server_variables(keys)}
    return Component(name, tuple(command), environment, digest=digest_of(command))


def versions() -> dict[str, str]:
    """What the databases' schemas depend on."""
    from importlib.metadata import version

    from dataflow_ops import __version__

    airflow = {name: version(name) for name in ("apache-airflow", "apache-airflow-providers-fab")}
    return {"dataflow-ops": __version__, **airflow}


def save(components: Sequence[Component], layout: Layout, grace_s: float) -> None:
    """Write the plan down; the supervisor takes it up by itself."""
    write_json(layout.plan, {"grace_s": grace_s, "components": [asdict(c) for c in components]})


def load(layout: Layout) -> tuple[list[Component], float]:
    """The plan and how long a component may take to end; empty where nothing was ever started.

    Raises:
        ConfigError: the file is damaged.
    """
    try:
        found = read_json(layout.plan)
        if found is None:
            return [], 0.0
        components = [
            Component(**{**raw, "command": tuple(raw["command"]), "after": tuple(raw["after"])})
            for raw in found["components"]
        ]
        return components, float(found["grace_s"])
    except (ValueError, TypeError, KeyError) as e:
        raise ConfigError(f"{layout.plan}: damaged ({e}); `dataflow stack up` writes it again") from e
