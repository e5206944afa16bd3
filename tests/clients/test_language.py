from __future__ import annotations

import socket

import pyarrow as pa
import pytest

from dataflow_ops.clients.language import BundledDetector, _sample

TEXTS = {
    "en": "The committee met on Thursday to discuss the results of last year's survey of river water.",
    "zh": "委员会周四开会，讨论了去年河水调查的结果，并决定明年继续进行这项工作。",
    "de": "Der Ausschuss traf sich am Donnerstag, um die Ergebnisse der Untersuchung zu besprechen.",
    "fr": "Le comité s'est réuni jeudi pour discuter des résultats de l'enquête sur l'eau des rivières.",
    "ru": "Комитет собрался в четверг, чтобы обсудить результаты прошлогоднего исследования речной воды.",
    "ja": "委員会は木曜日に集まり、昨年の川の水の調査結果について話し合いました。",
}


@pytest.fixture(scope="module")
def detector() -> BundledDetector:
    return BundledDetector()


def test_languages(detector: BundledDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a detector must not reach out")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    names, scores = BundledDetector().detect(pa.array(list(TEXTS.values())))
    assert names == list(TEXTS)
    assert scores.min() > 0.5
    assert scores.max() <= 1.0


def test_capitals_and_line_breaks_change_nothing(detector: BundledDetector) -> None:
    text = TEXTS["en"]
    names, _ = detector.detect(pa.array([text.upper(), text.replace(" ", "\r\n\t")], pa.large_string()))
    assert names == ["en", "en"]


def test_a_foreign_header_does_not_decide(detector: BundledDetector) -> None:
    page = "Copyright (c) 1993 The Regents of the University. All rights reserved. " * 6 + TEXTS["zh"] * 60
    assert detector.detect(pa.array([page]))[0] == ["zh"]


def test_texts_without_words_are_undetermined(detector: BundledDetector) -> None:
    names, scores = detector.detect(pa.array(["", None, " \n\t "]))
    assert names == ["und"] * 3
    assert scores.tolist() == [0, 0, 0]
    assert detector.detect(pa.array([], pa.string()))[0] == []


def test_answers_do_not_depend_on_neighbours(detector: BundledDetector) -> None:
    texts = list(TEXTS.values())
    together = detector.detect(pa.array(texts))[1].tolist()
    assert together == [detector.detect(pa.array([t]))[1][0] for t in texts]


def test_the_sample_is_bounded_and_reaches_the_end() -> None:
    sample = _sample("a" * 5000 + "b" * 5000, 100)
    assert len(sample) == 403
    assert sample.endswith("b" * 100)
    assert _sample("short", 100) == "short"


def test_identity_names_the_model_by_its_bytes(detector: BundledDetector) -> None:
    assert len(str(detector.identity()["sha256"])) == 64
