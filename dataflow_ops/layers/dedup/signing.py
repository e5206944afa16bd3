"""From stored texts to key texts and signatures: the same for new documents and for recalled ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dataflow_ops.kernels import fold, minhash
from dataflow_ops.kernels.arrow import I64, U32
from dataflow_ops.layers.dedup import shingling
from dataflow_ops.settings import JobSettings


@dataclass(frozen=True, slots=True)
class KeyTexts:
    """Key texts of a batch.

    Attributes:
        folded: the key texts.
        characters: of each; int64.
        dense: how many of them are Han, kana or Hangul; int64.
    """

    folded: fold.Folded
    characters: I64
    dense: I64


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signatures of a batch.

    Attributes:
        units: what shingles were cut from.
        values: uint32, shape ``(n, permutations)``.
        shingles: how many shingles each text has; 0: too short for a signature.
        size: shingle size of each text.
        second: a second size for texts near the line between two sizes; 0: none.
    """

    units: fold.Folded
    values: U32
    shingles: I64
    size: I64
    second: I64


class Signer:
    """Folds and signs texts as one job says."""

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        m = settings.dedup.minhash
        self.permutations = minhash.permutations(m.signature_size, m.seed)
        self.words = settings.dedup.shingle_unit == "word"

    def key_texts(self, texts: Any) -> KeyTexts:
        """Fold stored texts."""
        normal = self._settings.clean.normalization
        folded = fold.fold(texts, fold.fold_table(normal.unicode, normal.lower_case))
        characters, dense = fold.count_characters(folded.data, folded.offsets)
        return KeyTexts(folded, characters, dense)

    def sign(self, texts: Any, keys: KeyTexts) -> Signatures:
        """Sign texts that were folded."""
        normal = self._settings.clean.normalization
        units = keys.folded
        if self.words:
            units = fold.fold(texts, fold.fold_table(normal.unicode, normal.lower_case, True))
        size, second = shingling.sizes(self._settings, keys.characters, keys.dense)
        values, shingles = minhash.signatures(units.data, units.offsets, size, self.permutations, self.words)
        return Signatures(units, values, np.asarray(shingles), size, second)
