"""The relay as a component of the local stack, where webhooks are named."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping

from dataflow_ops.pipeline.webhooks import VARIABLE, file_of, load_webhooks
from dataflow_ops.stack.components import POSTGRES, PREPARE, RELAY
from dataflow_ops.stack.environment import inherited
from dataflow_ops.stack.processes import Component, digest_of
from dataflow_ops.stack.settings import StackSettings


def relay_part(settings: StackSettings, own: Mapping[str, str], shell: Mapping[str, str]) -> Component | None:
    """The component, or None where the home has no webhooks.

    A changed file needs no restart: the relay takes it up itself. Other secrets do.

    Args:
        settings: the settings file.
        own: the stack's own variables.
        shell: the caller's environment: it names the file and holds the secrets.

    Raises:
        ConfigError: the file can't be used, or a secret is not set.
    """
    known = {**shell, **own}
    webhooks = load_webhooks(settings.home, known)
    if not webhooks:
        return None
    command = (sys.executable, "-m", "dataflow_ops.stack.relay_process")
    secrets = {one.secret_env: one.secret(known).decode() for one in webhooks}
    file = {VARIABLE: str(file_of(settings.home, known))}
    # Only a hash of the secrets: the digest is written down beside the process ids.
    marks = sorted(hashlib.sha256(f"{name}={value}".encode()).hexdigest() for name, value in secrets.items())
    return Component(
        RELAY,
        command,
        {**inherited(shell), **own, **secrets, **file, "PYTHONUNBUFFERED": "1"},
        after=(PREPARE, POSTGRES),
        digest=digest_of([command, dict(own), file, marks]),
    )
