from __future__ import annotations

import pytest

from dataflow_ops.clients.retry_after import asked_to_wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 12 "}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": ""}, None),
        ({"retry-after": "¹"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT", "date": "Thu, 01 Jan 1970 00:01:55 GMT"}, 5.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_to_wait(headers, 100.0) == seconds
