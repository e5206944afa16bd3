"""The failure queue as commands and pages ask for it: plain values, no text for people but messages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dataflow_ops.errors import ConfigError
from dataflow_ops.plain_yaml import Unreadable, read_yaml
from dataflow_ops.state.samples.failures import (
    Failure,
    Which,
    change_failures,
    count_failures,
    edit_failure,
    list_failures,
    one_failure,
)
from dataflow_ops.state.samples.store import SampleStore

ROLES: Final = ("system", "developer", "user", "assistant", "tool")
"""Of a message."""
MOST_MESSAGES: Final = 200
MOST_CHARACTERS: Final = 200_000
"""Of an edited prompt in all."""


def list_queue(store: SampleStore, which: Which, limit: int, after: str = "") -> dict[str, Any]:
    """Numbers by state and error, and one page of entries.

    Args:
        store: the samples.
        which: which entries.
        limit: most entries.
        after: last key of the page before.

    Returns:
        ``groups``, ``total``, ``failures``, and ``next``: what ``after`` is for the next page, or None.
    """
    with store.read() as connection:
        groups = count_failures(connection, which)
        found = list_failures(connection, which, limit + 1, after)
    page = found[:limit]
    return {
        "groups": [{"state": state, "error": error, "failures": number} for state, error, number in groups],
        "total": sum(number for _, _, number in groups),
        "failures": [_short(failure) for failure in page],
        "next": page[-1].key if len(found) > limit else None,
    }


def show(store: SampleStore, key: str) -> dict[str, Any]:
    """One entry whole.

    Args:
        store: the samples.
        key: a request key, or the beginning of one.

    Raises:
        StateError: none has such a key, or more than one.
    """
    with store.read() as connection:
        failure = one_failure(connection, key)
    return {
        **_short(failure),
        "retry_of": failure.retry_of,
        "prompt_version": failure.prompt_version,
        "model": failure.model,
        "parameters": dict(failure.parameters),
        "prompt": list(failure.prompt),
        "edited_prompt": None if failure.edited_prompt is None else list(failure.edited_prompt),
        "raw_answer": failure.raw_answer,
    }


def edit(store: SampleStore, key: str, text: str) -> str:
    """Set the messages that are sent when an entry is asked again; return its key.

    Args:
        store: the samples.
        key: a request key, or the beginning of one.
        text: JSON or YAML: a list of messages with role and content.

    Raises:
        ConfigError: the text holds no messages.
        StateError: no such entry, or one that was asked again since.
    """
    messages = read_messages(text)
    with store.write() as connection:
        failure = one_failure(connection, key)
        edit_failure(connection, store.db, failure.key, messages)
    return failure.key


def change(store: SampleStore, which: Which, state: str, who: str) -> dict[str, int]:
    """Requeue or drop entries; task -> how many.

    Args:
        store: the samples.
        which: which of those in the queue; at least one of its parts must say so.
        state: ``REQUEUED`` or ``DROPPED``.
        who: name of the person or service.

    Raises:
        StateError: a key names no entry, or more than one.
    """
    with store.write() as connection:
        whole = tuple(one_failure(connection, key).key for key in which.keys)
        exact = Which(which.task_id, which.state, which.error, whole)
        return change_failures(connection, store.db, exact, state, who)


def read_messages(text: str) -> list[Mapping[str, Any]]:
    """Messages from JSON or YAML.

    Raises:
        ConfigError: says what is wrong.
    """
    try:
        found = read_yaml(text)
    except Unreadable as e:
        raise ConfigError(f"the messages can't be read: {e}") from e
    if not isinstance(found, list):
        raise ConfigError("the messages are a list of {role: …, content: …}")
    return check_messages(found)


def check_messages(prompt: Sequence[Any]) -> list[Mapping[str, Any]]:
    """An edited prompt as it is sent. A call of a tool may stand in it without a text.

    Raises:
        ConfigError: says which message is wrong, and how it must be.
    """
    if not 0 < len(prompt) <= MOST_MESSAGES:
        raise ConfigError(f"a prompt has 1 to {MOST_MESSAGES} messages, not {len(prompt)}")
    total = 0
    found: list[Mapping[str, Any]] = []
    for number, message in enumerate(prompt, 1):
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            raise ConfigError(f"message {number}: its role must be one of {', '.join(ROLES)}")
        content = message.get("content")
        if not isinstance(content, str) and not (content is None and message.get("tool_calls")):
            raise ConfigError(f"message {number}: its content must be a text")
        total += len(content or "")
        found.append(dict(message))
    if total > MOST_CHARACTERS:
        raise ConfigError(f"the prompt has {total:,} characters; {MOST_CHARACTERS:,} at most")
    if not any((message.get("content") or "").strip() for message in found):
        raise ConfigError("the prompt is empty: write what the model is to be asked")
    return found


def _short(failure: Failure) -> dict[str, Any]:
    return {
        "key": failure.key,
        "task": failure.task_id,
        "sample_id": failure.sample_id,
        "draw": failure.draw,
        "state": failure.state,
        "error": failure.error,
        "message": failure.message,
        "attempts": failure.attempts,
        "edited": failure.edited_prompt is not None,
        "created_at": dt.datetime.fromtimestamp(failure.created_at, dt.UTC).isoformat(timespec="seconds"),
    }


def messages_of(entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The messages that would be sent for an entry of :func:`show`."""
    messages: Sequence[Mapping[str, Any]] = entry["edited_prompt"] or entry["prompt"]
    return messages
