"""Key texts, their hashes and band hashes: what makes two dialogues candidates for being the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dataflow_ops.kernels import bands, digest, minhash
from dataflow_ops.kernels.arrow import I64, U32, U64, string_buffers
from dataflow_ops.layers.dedup.signing import Signer
from dataflow_ops.samples.cleaning.settings import SampleCleanSettings


@dataclass(frozen=True, slots=True)
class Keys:
    """Of n dialogues.

    Attributes:
        texts: key texts.
        exact: hash of each; uint64, shape ``(n,)``.
        bands: band hashes of those that are compared for being alike; uint64.
        owners: whose each band hash is; int64, ascending.
    """

    texts: Sequence[str]
    exact: U64
    bands: U64
    owners: I64


class Keymaker:
    """Makes the keys of dialogues as one clean-up says.

    Args:
        settings: of the clean-up.
    """

    def __init__(self, settings: SampleCleanSettings) -> None:
        job = settings.job()
        self._signer = Signer(job)
        self._minhash = job.dedup.minhash
        self._near = job.dedup.near
        self._least = settings.near.min_characters

    def texts(self, texts: Sequence[str]) -> Sequence[str]:
        """Key texts alone."""
        folded: list[str] = self._signer.key_texts(_column(texts)).folded.array().to_pylist()
        return folded

    def keys(self, texts: Sequence[str]) -> Keys:
        """Keys of some dialogues.

        Args:
            texts: what of each is compared.
        """
        column = _column(texts)
        key_texts = self._signer.key_texts(column)
        folded = key_texts.folded
        exact = digest.leading_u64(digest.sha1_rows(folded.data, folded.offsets))
        hashes, owners = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if self._near:
            signed = self._signer.sign(column, key_texts)
            long_enough = key_texts.characters >= self._least
            able = np.flatnonzero(long_enough & (signed.shingles > 0))
            hashes, owners = self._hash(signed.values[able], signed.size[able], able)
            # Texts near the line between two shingle sizes have hashes of both.
            border = np.flatnonzero(long_enough & (signed.second > 0))
            if len(border):
                data, offsets = string_buffers(signed.units.array().take(pa.array(border)))
                other, found = minhash.signatures(
                    data, offsets, signed.second[border], self._signer.permutations, self._signer.words
                )
                able = np.flatnonzero(found > 0)
                more, of = self._hash(other[able], signed.second[border][able], border[able])
                hashes, owners = np.concatenate([hashes, more]), np.concatenate([owners, of])
                by_owner = np.argsort(owners, kind="stable")
                hashes, owners = hashes[by_owner], owners[by_owner]
        return Keys(folded.array().to_pylist(), exact, hashes, owners)

    def _hash(self, signatures: U32, sizes: I64, owners: I64) -> tuple[U64, I64]:
        m = self._minhash
        hashes = bands.band_hashes(signatures, m.band, m.rows_per_band, sizes, self._signer.words)
        return hashes.reshape(-1), np.repeat(owners, m.band).astype(np.int64)


def _column(texts: Sequence[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.large_string())])
