"""The client of the endpoint that a template names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from dataflow_ops.clients.openai_api import OpenAiApi, read_key
from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.augment.templates import Template


@contextmanager
def opened_api(template: Template) -> Iterator[OpenAiApi]:
    """A client with as many connections as questions are asked at once; closed at the end.

    Raises:
        ConfigError: no address is known, or the variable of the key is not set.
    """
    endpoint, most = template.endpoint, template.limits.concurrency
    if endpoint.base_url is None:
        raise ConfigError(
            f"template {template.name}: say where the model answers: endpoint.base_url in it, the variable"
            " DATAFLOW_MODEL_URL, or --base-url URL on the command line"
        )
    key = read_key(endpoint.api_key_env)
    limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
    with httpx.Client(limits=limits) as http:
        yield OpenAiApi(http, endpoint.base_url, key, endpoint.patience)
