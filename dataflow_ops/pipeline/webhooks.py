"""``webhooks.yaml``: which outside systems are told of which events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from dataflow_ops.errors import ConfigError
from dataflow_ops.section import Section
from dataflow_ops.settings_file import read_mapping, validated
from dataflow_ops.state.deliveries import Interest

VARIABLE: Final = "DATAFLOW_WEBHOOKS"
FILE: Final = "webhooks.yaml"
_LEAST_SECRET: Final = 16

Topic = Annotated[str, Field(pattern=r"^[a-z0-9_.*]+$", max_length=40)]


class Webhook(Section):
    """One endpoint.

    Attributes:
        name: under which its deliveries are kept; another name gets all events again.
        url: where they are sent.
        topics: patterns; ``*`` stands for any characters.
        secret_env: environment variable that holds the key of the signatures.
        since: events before this are not sent; a time without a zone is UTC.
        timeout_s: longest time for one request, seconds.
        concurrency: requests at the same time.
        max_attempts: tries that may have arrived, until an event is a dead delivery.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,79}$")]
    url: str
    topics: Annotated[tuple[Topic, ...], Field(min_length=1)]
    secret_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    since: datetime | None = None
    timeout_s: Annotated[float, Field(ge=0.1, le=60)] = 10.0
    concurrency: Annotated[int, Field(ge=1, le=64)] = 8
    max_attempts: Annotated[int, Field(ge=1, le=1000)] = 50

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            well = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            well = False
        if not well or not value.isprintable() or " " in value:
            raise ValueError("must be an address such as https://host/path")
        if parts.username or parts.password:
            raise ValueError("holds a password; requests are signed, with the key that secret_env names")
        return value

    @property
    def interest(self) -> Interest:
        """What the state is asked for."""
        at = self.since
        if at is not None and at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return Interest(self.name, self.topics, 0.0 if at is None else at.timestamp())

    def secret(self, environment: Mapping[str, str]) -> bytes:
        """The key of its signatures.

        Raises:
            ConfigError: the variable is not set, or too short to be a secret.
        """
        value = environment.get(self.secret_env, "")
        if len(value.encode()) < _LEAST_SECRET:
            what = "is not set" if not value else f"is shorter than {_LEAST_SECRET} bytes"
            raise ConfigError(
                f"webhook {self.name}: the variable {self.secret_env} {what};"
                f" export {self.secret_env}=$(openssl rand -hex 32), and give the receiver the same"
            )
        return value.encode()


class Webhooks(Section):
    """The whole file."""

    webhooks: tuple[Webhook, ...] = ()

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [one.name for one in self.webhooks]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two webhooks are called {', '.join(twice)}")
        return self


def file_of(home: Path, environment: Mapping[str, str]) -> Path:
    """Where the webhooks of a home are named: :data:`VARIABLE`, else :data:`FILE` in the home."""
    named = environment.get(VARIABLE)
    return Path(named).expanduser().absolute() if named else home.absolute() / FILE


def load_webhooks(home: Path, environment: Mapping[str, str]) -> tuple[Webhook, ...]:
    """The webhooks of a home; none where it has no file.

    Raises:
        ConfigError: the file that the variable names is not there; it can't be read, is not YAML, or has a
            key or value that is not allowed.
    """
    path = file_of(home, environment)
    if not path.exists():
        if environment.get(VARIABLE):
            raise ConfigError(f"{path}: no such file, though {VARIABLE} names it")
        return ()
    raw = read_mapping(path, "expected `webhooks:` with a list; docs/webhooks.md has an example")
    return validated(Webhooks, raw, str(path)).webhooks
