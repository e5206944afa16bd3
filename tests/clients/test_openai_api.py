from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.clients.endpoint_errors import (
    CallStopped,
    EndpointAway,
    EndpointError,
    EndpointRefused,
    QuestionRefused,
    UnreadableAnswer,
)
from dataflow_ops.clients.openai_answers import Completion, UnreadableBody, read_completion
from dataflow_ops.clients.openai_api import OpenAiApi, Patience, check_base_url, read_key
from dataflow_ops.errors import ConfigError
from tests.samples.augment.model_server import ModelServer, answer_to, completion, model_server

BODY = {"model": "m", "messages": [{"role": "user", "content": "你好, say it better"}], "max_tokens": 9}
QUICK = Patience(connect_s=2, read_s=0.4, total_s=0.6, tries=4, base_s=0.001, most_wait_s=5)


class Gate:
    """Waits for nothing, remembers what it was asked for."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.admitted: list[tuple[int, int]] = []
        self.held: list[float] = []
        self.rested: list[float] = []
        self._stop_after = stop_after

    def admit(self, tokens: int, lost: int) -> None:
        self.admitted.append((tokens, lost))

    def hold(self, seconds: float) -> None:
        self.held.append(seconds)

    def rest(self, seconds: float) -> None:
        self.rested.append(seconds)
        if self._stop_after is not None and len(self.rested) >= self._stop_after:
            raise CallStopped("stopped")


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client() as client:
        yield client


def scripted(*what: str) -> Callable[[str, int], str]:
    return lambda key, nth: what[min(nth, len(what) - 1)]


def ask(
    http: httpx.Client, server: ModelServer, gate: Gate | None = None, key: str = "k1", **more: object
) -> Completion:
    api = OpenAiApi(http, server.url, str(more.pop("api_key", "")), QUICK, draw=lambda: 0.5)
    return api.complete(BODY, key, gate or Gate(), 100)


def test_an_answer(http: httpx.Client) -> None:
    with model_server(api_key="sk-secret") as server:
        found = ask(http, server, api_key="sk-secret")
    assert (found.text, found.finish_reason, found.tries, found.lost) == (answer_to(BODY), "stop", 1, 0)
    assert found.prompt_tokens == len("你好, say it better") // 4 + 1
    (call,) = server.calls
    assert call.body == BODY
    assert call.headers["Idempotency-Key"] == "k1"


@pytest.mark.parametrize(
    ("fault", "lost", "held"),
    [
        ("broken", 0, 0),
        ("limit", 0, 1),
        ("limit_date", 0, 1),
        ("cut", 1, 0),
        ("cut_early", 1, 0),
        ("hang", 1, 0),
    ],
)
def test_what_may_pass_is_tried_again(http: httpx.Client, fault: str, lost: int, held: int) -> None:
    gate = Gate()
    with model_server(scripted(fault, fault, "answer"), slow_s=0.7) as server:
        found = ask(http, server, gate)
    assert (found.text, found.tries, found.lost) == (answer_to(BODY), 3, 2 * lost)
    assert (len(gate.held), len(gate.rested)) == (2 * held, 2)
    assert gate.admitted == [(100, 0), (100, lost), (100, 2 * lost)]
    # The same bytes under the same key, each time.
    time.sleep(0.4 if fault == "hang" else 0)
    assert server.conflicts == []
    assert {call.key for call in server.calls} == {"k1"}


def test_tries_are_bounded(http: httpx.Client) -> None:
    gate = Gate()
    with model_server(scripted("broken")) as server, pytest.raises(EndpointAway) as caught:
        ask(http, server, gate)
    assert (caught.value.tries, caught.value.lost, len(server.calls)) == (4, 0, 4)
    assert caught.value.raw == b"<html>Internal Server Error</html>"
    assert "500" in str(caught.value)
    assert len(gate.rested) == 3  # nobody waits after the last


def test_back_off_doubles_with_full_jitter(http: httpx.Client) -> None:
    gate = Gate()
    patience = Patience(tries=6, base_s=1, cap_s=6)
    with model_server(scripted("broken")) as server, pytest.raises(EndpointAway):
        OpenAiApi(http, server.url, "", patience, draw=lambda: 0.5).complete(BODY, "k", gate, 1)
    assert gate.rested == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_nobody_comes_back_before_retry_after(http: httpx.Client) -> None:
    gate = Gate()
    with model_server(scripted("limit", "answer")) as server:
        ask(http, server, gate)
    assert gate.held == [0.2]
    assert gate.rested[0] >= 0.2


def test_a_wait_that_is_too_long_is_not_waited(http: httpx.Client) -> None:
    transport = httpx.MockTransport(
        lambda _: httpx.Response(429, headers={"Retry-After": "9000"}, stream=httpx.ByteStream(b""))
    )
    gate = Gate()
    with httpx.Client(transport=transport) as client, pytest.raises(EndpointAway, match="9,000 s"):
        OpenAiApi(client, "http://h/v1", "", QUICK).complete(BODY, "k", gate, 1)
    assert len(gate.admitted) == 1


@pytest.mark.parametrize(
    ("fault", "error", "about_all"),
    [("too_long", QuestionRefused, False), ("unauthorized", EndpointRefused, True)],
)
def test_what_does_not_pass_is_asked_once(
    http: httpx.Client, fault: str, error: type[EndpointError], about_all: bool
) -> None:
    with model_server(scripted(fault)) as server, pytest.raises(error) as caught:
        ask(http, server)
    assert len(server.calls) == 1
    assert type(caught.value) is error
    assert (caught.value.about_all, caught.value.lost) == (about_all, 0)


@pytest.mark.parametrize("status", [404, 302])
def test_a_wrong_address_is_no_fault_of_the_question(status: int) -> None:
    transport = httpx.MockTransport(
        lambda _: httpx.Response(status, headers={"Location": "http://else/"}, stream=httpx.ByteStream(b""))
    )
    with httpx.Client(transport=transport) as client, pytest.raises(EndpointRefused, match=str(status)):
        OpenAiApi(client, "http://h/v1", "", QUICK).complete(BODY, "k", Gate(), 1)


@pytest.mark.parametrize("fault", ["json", "encoding", "gzip_lie"])
def test_bytes_that_can_not_be_read_are_kept(http: httpx.Client, fault: str) -> None:
    with model_server(scripted(fault)) as server, pytest.raises(UnreadableAnswer) as caught:
        ask(http, server)
    assert len(server.calls) == 1
    assert (caught.value.tries, caught.value.lost) == (1, 1)
    expected = {
        "json": completion(answer_to(BODY), BODY)[:-20],
        "encoding": completion("很好的回答", BODY).decode().encode("gbk"),
        "gzip_lie": completion(answer_to(BODY), BODY),
    }
    assert caught.value.raw == expected[fault]


def test_gzip_that_nobody_asked_for_is_read(http: httpx.Client) -> None:
    with model_server(scripted("gzip")) as server:
        assert ask(http, server).text == answer_to(BODY)


def test_no_connection(http: httpx.Client) -> None:
    with model_server() as server:
        pass
    with pytest.raises(EndpointAway, match="can't be reached") as caught:
        ask(http, server)
    assert (caught.value.tries, caught.value.lost) == (4, 0)


def test_a_stop_ends_the_waiting(http: httpx.Client) -> None:
    with model_server(scripted("broken")) as server, pytest.raises(CallStopped):
        ask(http, server, Gate(stop_after=2))
    assert len(server.calls) == 2


def test_the_key_is_kept_nowhere(http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with model_server(api_key="another") as server, pytest.raises(EndpointRefused) as caught:
        ask(http, server, api_key="sk-secret-1")
    assert b"***" in caught.value.raw
    told = f"{caught.value!r} {caught.value} {caught.value.raw!r} {caught.value.__cause__!r} {caplog.text}"
    assert "sk-secret-1" not in told
    assert "sk-secret-1" not in repr(OpenAiApi(http, server.url, "sk-secret-1"))


@pytest.mark.parametrize("key", ["e", "say it better"])
def test_an_answer_that_holds_the_key_is_not_touched(http: httpx.Client, key: str) -> None:
    with model_server() as server:
        found = ask(http, server, api_key=key)
    assert key in answer_to(BODY)
    assert found.text == answer_to(BODY)


def test_a_slow_drip_ends_at_the_total(http: httpx.Client) -> None:
    class Drip(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(100):
                time.sleep(0.05)
                yield b" "

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Drip()))
    with (
        httpx.Client(transport=transport) as client,
        pytest.raises(EndpointAway, match="not complete") as caught,
    ):
        OpenAiApi(client, "http://h/v1", "", Patience(total_s=0.1, tries=1)).complete(BODY, "k", Gate(), 1)
    assert caught.value.lost == 1


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_key(None) == ""
    monkeypatch.setenv("SOME_KEY", " sk-1\n")
    assert read_key("SOME_KEY") == "sk-1"
    monkeypatch.setenv("SOME_KEY", "ключ")
    with pytest.raises(ConfigError, match="SOME_KEY") as caught:
        read_key("SOME_KEY")
    assert "ключ" not in str(caught.value)
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(ConfigError, match="SOME_KEY"):
        read_key("SOME_KEY")


@pytest.mark.parametrize("url", ["ftp://h/v1", "h/v1", "https://ann:pw@h/v1", "https://h/v1?key=pw", ""])
def test_addresses_that_would_tell_a_secret(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_base_url(url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{"message": {"content": [{"image": 1}]}}]}',
        b'{"error": {"message": "overloaded"}}',
        b'{"choices": [{"message": {"content": NaN}}]}',
        b"[" * 100_000,
        b"\xff\xfe{}",
    ],
)
def test_what_is_no_answer(raw: bytes) -> None:
    with pytest.raises(UnreadableBody):
        read_completion(raw, "application/json")


@pytest.mark.parametrize(
    ("content", "text"), [("null", ""), ('"a"', "a"), ('[{"type": "text", "text": "a"}, "b"]', "ab")]
)
def test_forms_of_content(content: str, text: str) -> None:
    raw = b'\xef\xbb\xbf{"choices": [{"message": {"content": %s}}], "usage": {"prompt_tokens": true}}'
    found = read_completion(raw % content.encode(), "application/json; charset=UTF-8")
    assert (found.text, found.prompt_tokens, found.completion_tokens) == (text, None, None)


def test_a_declared_encoding_is_taken() -> None:
    raw = json.dumps({"choices": [{"message": {"content": "更好"}}]}, ensure_ascii=False).encode("gbk")
    assert read_completion(raw, "application/json; charset=gbk").text == "更好"
    for declared in ("", "; charset=utf-8", "; charset=nonsense"):
        with pytest.raises(UnreadableBody):
            read_completion(raw, f"application/json{declared}")


@given(
    st.binary(max_size=60), st.sampled_from(["", "x; charset=utf-16", "x; charset=idna", "x; charset=hex"])
)
def test_any_bytes_are_an_answer_or_a_typed_error(raw: bytes, content_type: str) -> None:
    try:
        read_completion(raw, content_type)
    except UnreadableBody:
        pass
    else:
        pytest.fail("no 60 bytes are an answer")
