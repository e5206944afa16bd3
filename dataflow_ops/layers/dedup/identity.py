"""What a signature was made with. Signatures of another kind must never be compared."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from importlib.metadata import version

import pyarrow as pa

from dataflow_ops.errors import FingerprintMismatch
from dataflow_ops.kernels import bands, fold, minhash, similarity
from dataflow_ops.layers.dedup import shingling
from dataflow_ops.settings import JobSettings


def key_fingerprint(settings: JobSettings) -> Mapping[str, object]:
    """What shapes a key text."""
    normal = settings.clean.normalization
    return {
        "fold": fold.VERSION,
        "unicodedata": unicodedata.unidata_version,
        "nfkc": normal.unicode,
        "lower_case": normal.lower_case,
    }


def signature_fingerprint(settings: JobSettings) -> Mapping[str, object]:
    """What shapes a signature, and so its bands."""
    m = settings.dedup.minhash
    return {
        **key_fingerprint(settings),
        "minhash": minhash.VERSION,
        "shingling": shingling.VERSION,
        "permutations": m.signature_size,
        "seed": m.seed,
        "shingle_size": m.shingle_size,
        "shingle_unit": settings.dedup.shingle_unit,
    }


def band_fingerprint(settings: JobSettings) -> Mapping[str, object]:
    """What shapes band hashes."""
    m = settings.dedup.minhash
    return {
        **signature_fingerprint(settings),
        "bands": bands.VERSION,
        "band": m.band,
        "rows": m.rows_per_band,
    }


def similarity_fingerprint(settings: JobSettings) -> Mapping[str, object]:
    """What shapes a verified similarity."""
    m = settings.dedup.minhash
    return {
        **key_fingerprint(settings),
        "similarity": similarity.VERSION,
        "rapidfuzz": version("rapidfuzz"),
        "min_similarity": settings.dedup.verify.min_similarity,
        "prefilter": [m.signature_size, m.band, m.rows_per_band],
    }


def signature_id(settings: JobSettings) -> str:
    """Short name of :func:`signature_fingerprint`, written beside every signature."""
    text = json.dumps(dict(signature_fingerprint(settings)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_signatures(expected: str, table: pa.Table, where: str) -> None:
    """Refuse signatures made with other permutations, seeds, shingles or folding.

    Args:
        expected: :func:`signature_id` of what they will be compared with.
        table: rows with a ``made_by`` column.
        where: what the table is, for the message.

    Raises:
        FingerprintMismatch: names both fingerprints.
    """
    for found in sorted(set(table.column("made_by").unique().to_pylist())):
        if found != expected:
            raise FingerprintMismatch(
                f"{where}: signatures made by {found} can't be compared with signatures made by {expected};"
                " they differ in permutations, seed, shingles or folding. Sign both sides with one job file."
            )
