"""Passwords and keys: made once, kept where only their owner reads them, never printed."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.layout import Layout, read_json, write_json


def _word() -> str:
    return secrets.token_hex(16)


def _long() -> str:
    return secrets.token_hex(32)


def _fernet() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


@dataclass(frozen=True)
class Keys:
    """All secrets of one stack. Hexadecimal, but for the Fernet key: they need no quoting in URLs."""

    postgres_password: str
    redis_password: str
    admin_password: str
    jwt_secret: str
    api_secret_key: str
    fernet_key: str
    s3_access_key: str
    s3_secret_key: str

    def __repr__(self) -> str:
        return "Keys(…)"


MAKERS: dict[str, Callable[[], str]] = {
    "postgres_password": _word,
    "redis_password": _word,
    "admin_password": lambda: secrets.token_urlsafe(12),
    "jwt_secret": _long,
    "api_secret_key": _long,
    "fernet_key": _fernet,
    "s3_access_key": _word,
    "s3_secret_key": _long,
}


def make_keys() -> Keys:
    """Fresh secrets."""
    return Keys(**{name: make() for name, make in MAKERS.items()})


def load_keys(layout: Layout) -> Keys:
    """The stack's secrets; what is missing is made and saved, what is there never changes.

    Raises:
        ConfigError: the file is damaged, or others may read it.
    """
    path = layout.secrets
    try:
        found = read_json(path)
    except ValueError as e:
        raise ConfigError(
            f"{path}: damaged ({e}); restore it from a backup, or remove the stack with"
            " `dataflow stack down --purge`"
        ) from e
    if found is not None and path.stat().st_mode & 0o077:
        raise ConfigError(f"{path}: others may read it; `chmod 600 {path}`, and change what was seen")
    known = {field.name for field in fields(Keys)}
    kept = {name: str(value) for name, value in (found or {}).items() if name in known}
    keys = Keys(**{name: kept.get(name) or make() for name, make in MAKERS.items()})
    if asdict(keys) != kept:
        write_json(path, asdict(keys))
    return keys
