from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.clients.webhook import Answer, Target, headers, judge, message_of, send
from tests.pipeline.receiver import SECRET, Receiver, Script, verifier

NOW = 1_796_000_000.0


def _send(script: Script, timeout_s: float = 0.5) -> tuple[Answer, Receiver]:
    message = message_of(17, "run.failed", "r1", {"detail": "坏了\u2028 \ud800"}, 1_796_000_000.25)

    async def once(url: str) -> Answer:
        async with httpx.AsyncClient(trust_env=False) as client:
            return await send(client, Target(url, SECRET.encode(), timeout_s), message, time.time)

    with Receiver(script) as receiver:
        return asyncio.run(once(receiver.url)), receiver


def test_a_message_arrives_signed_with_its_key() -> None:
    answer, receiver = _send(lambda event, number: 204)
    assert (answer.verdict, receiver.faults) == ("accepted", [])
    assert receiver.applied == [
        {
            "id": 17,
            "key": "17-1796000000250000",
            "topic": "run.failed",
            "subject": "r1",
            "created_at": "2026-11-30T00:53:20.250Z",
            "payload": {"detail": "坏了\u2028 ?"},
        }
    ]


@pytest.mark.parametrize(
    ("script", "verdict", "told"),
    [
        (200, "accepted", ""),
        (500, "again", "answered 500: it broke: 坏了"),
        (410, "refused", "answered 410: it broke: 坏了"),
        ((301, {"Location": "/elsewhere"}), "again", "answered 301: moved to /elsewhere; correct its url"),
        ((429, {"Retry-After": "7"}), "busy", "answered 429: it broke: 坏了"),
        ("hang", "again", "no answer within 0.5 s"),
        ("drip", "again", "no answer within 0.5 s"),
        ("cut", "again", "the connection broke"),
    ],
)
def test_what_a_receiver_may_do(script: object, verdict: str, told: str) -> None:
    began = time.monotonic()
    answer, receiver = _send(lambda event, number: script)  # type: ignore[return-value, arg-type]
    assert answer.verdict == verdict
    assert answer.told.startswith(told)
    assert receiver.faults == []
    assert time.monotonic() - began < 15  # the limit of 0.5 s is one for the whole request


@pytest.mark.parametrize("status", [200, 204, 500])
def test_a_connection_serves_again(status: int) -> None:
    async def some(url: str) -> list[str]:
        async with httpx.AsyncClient(trust_env=False) as client:
            target = Target(url, SECRET.encode())
            messages = [message_of(n, "t", "s", {}, NOW) for n in range(5)]
            return [(await send(client, target, message, time.time)).verdict for message in messages]

    with Receiver(lambda event, number: status) as receiver:
        verdicts = asyncio.run(some(receiver.url))
    assert verdicts == ["again" if status == 500 else "accepted"] * 5
    assert len(receiver.connections) == 1


def test_nobody_there_is_no_try() -> None:
    with Receiver() as receiver:
        url = receiver.url

    async def once() -> Answer:
        async with httpx.AsyncClient(trust_env=False) as client:
            target = Target(url, SECRET.encode())
            return await send(client, target, message_of(1, "t", "s", {}, NOW), time.time)

    answer = asyncio.run(once())
    assert answer.verdict == "away"
    assert answer.told.startswith("can't be reached: ")
    assert "All connection attempts failed" not in answer.told  # which says nothing of why


@given(st.integers(100, 599), st.sampled_from([None, "5", "soon"]))
def test_every_status_has_a_meaning(status: int, wait: str | None) -> None:
    answer = judge(status, {} if wait is None else {"retry-after": wait}, "", NOW)
    if status in (408, 425):
        expected = "again"
    elif status == 429 or (status == 503 and wait == "5"):
        expected = "busy"
    elif 400 <= status < 500:
        expected = "refused"
    else:
        expected = "accepted" if 200 <= status < 300 else "again"
    assert answer.verdict == expected
    if answer.verdict in ("again", "busy") and not 300 <= status < 400:
        assert answer.wait_s == (5.0 if wait == "5" else None)


def test_nobody_is_waited_for_longer_than_a_day() -> None:
    assert judge(429, {"retry-after": "99999999999"}, "", NOW).wait_s == 86_400.0


@given(
    st.integers(1, 2**40),
    st.text(max_size=50),
    st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
    st.floats(0, 4e9),
)
def test_the_documented_verifier_takes_ours_and_nothing_else(
    event_id: int, subject: str, payload: dict[str, str], at: float
) -> None:
    is_ours = verifier()
    message = message_of(event_id, "run.failed", subject, payload, at)
    assert message_of(event_id, "run.failed", subject, payload, at) == message
    sent = headers(message, SECRET.encode(), int(time.time()))
    assert is_ours(SECRET, sent, message.body)
    assert not is_ours(SECRET + "x", sent, message.body)
    assert not is_ours(SECRET, sent, message.body + b" ")
    old = headers(message, SECRET.encode(), int(time.time()) - 3600)
    assert not is_ours(SECRET, old, message.body)
    forged = {**old, "X-DataFlow-Timestamp": str(int(time.time()))}
    assert not is_ours(SECRET, forged, message.body)


def test_keys_differ_between_databases_that_count_from_one() -> None:
    one, other = (message_of(1, "run.planned", "r1", {}, at).key for at in (NOW, NOW + 0.001))
    assert one != other


def test_a_secret_is_not_shown() -> None:
    assert SECRET not in repr(Target("http://h/", SECRET.encode()))
