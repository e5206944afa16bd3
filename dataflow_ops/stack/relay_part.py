"""The relay as a component of the local stack, where webhooks are named."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from typing import Final

from dataflow_ops.pipeline.webhooks import VARIABLE, file_of, load_webhooks
from dataflow_ops.stack.components import POSTGRES, PREPARE, RELAY
from dataflow_ops.stack.environment import inherited
from dataflow_ops.stack.plan import versions
from dataflow_ops.stack.processes import Component, digest_of
from dataflow_ops.stack.settings import StackSettings

ARGUMENTS: Final = ("-m", "dataflow_ops.stack.relay_process")


def relay_part(settings: StackSettings, own: Mapping[str, str], shell: Mapping[str, str]) -> Component | None:
    """The component, or None where the home has no webhooks.

    A changed file needs no restart: the relay takes it up itself. Other secrets and another
    version of the program do.

    Args:
        settings: the settings file.
        own: the stack's own variables.
        shell: the caller's environment: it names the file and holds the secrets.

    Raises:
        ConfigError: the file can't be used, or a secret is not set.
    """
    known = {**_named(settings), **shell, **own}
    webhooks = load_webhooks(settings.home, known)
    if not webhooks:
        return None
    command = (sys.executable, *ARGUMENTS)
    secrets = {one.secret_env: one.secret(known).decode() for one in webhooks}
    file = {VARIABLE: str(file_of(settings.home, known))}
    # Only a hash of the secrets: the digest is written down beside the process ids.
    marks = sorted(hashlib.sha256(f"{name}={value}".encode()).hexdigest() for name, value in secrets.items())
    return Component(
        RELAY,
        command,
        {**inherited(shell), **own, **secrets, **file, "PYTHONUNBUFFERED": "1"},
        after=(PREPARE, POSTGRES),
        digest=digest_of([command, dict(own), file, marks, versions()]),
    )


def container_secrets(settings: StackSettings) -> tuple[str, ...] | None:
    """Variables that the relay's container needs, or None where ``stack.yaml`` names no webhooks.

    Raises:
        ConfigError: the file can't be used.
    """
    found = load_webhooks(settings.home, _named(settings)) if settings.webhooks is not None else ()
    return tuple(sorted({one.secret_env for one in found})) if found else None


def _named(settings: StackSettings) -> dict[str, str]:
    return {} if settings.webhooks is None else {VARIABLE: str(settings.webhooks)}
