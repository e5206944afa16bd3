"""Token counts of texts: by the training tokenizer, or by a marked estimate where there is none."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dataflow_ops.errors import ConfigError
from dataflow_ops.kernels.arrow import I64, string_buffers

_BATCH_BYTES = 1 << 20
"""Texts encoded at once: an encoding costs about a hundred bytes a token while it lives."""


class Tokenizer(Protocol):
    """Counts tokens; both implementations are deterministic and hold no state between calls."""

    estimated: bool

    def count(self, texts: Any) -> I64:
        """Tokens of each text (string Array or ChunkedArray of n rows, nulls as empty): int64, shape (n,)."""

    def identity(self) -> Mapping[str, object]:
        """What the counts depend on, for fingerprints and the manifest; no paths."""


class EstimateTokenizer:
    """Estimate from counts of byte-class pairs, about 1.5 µs for a text of 3.8 KB.

    The weights (thousandths of a token) were fitted by non-negative least squares, rows weighted by
    1/sqrt(tokens), against the byte-pair vocabulary of Qwen (151,643 ranks) on 2,660 documents: Debian
    manuals and help pages in English and Chinese, and source code. On 2,660 others the total is off by
    -0.8 % (English), -1.0 % (Chinese) and +1.3 % (code), the median document by 3.3, 5.4 and 5.2 %.
    Kana, Hangul and the two-byte scripts (Cyrillic, Arabic, Greek, Hebrew), which those documents
    lack, are set from single paragraphs and good to about a fifth. The same vocabulary splits numbers
    into digits; one that keeps them together yields fewer tokens.
    """

    estimated = True
    version = 1
    weights: Mapping[str, int] = {
        "word starts": 1009,
        "lower to upper case": 757,
        "digits": 1137,
        "letters after digits": 1923,
        "further spaces of a run": 12,
        "line breaks and tabs": 808,
        "starts of punctuation": 953,
        "further punctuation": 138,
        "Han": 766,
        "CJK and full-width punctuation": 211,
        "kana": 600,
        "Hangul": 850,
        "Latin letters with accents": 1159,
        "other two-byte characters": 400,
        "other characters": 774,
    }

    def __init__(self) -> None:
        self._pairs: I64 | None = None

    def count(self, texts: Any) -> I64:
        """See :class:`Tokenizer`; a text that is not empty counts at least one token."""
        # Imported here: numba takes half a second, and most processes never count.
        from dataflow_ops.kernels.bytepairs import pair_weights, weigh

        if self._pairs is None:
            self._pairs = pair_weights(self.weights)
        thousandths = weigh(texts, self._pairs)
        _, offsets = string_buffers(texts)
        return np.maximum((thousandths + 500) // 1000, (np.diff(offsets) > 0).astype(np.int64))

    def identity(self) -> Mapping[str, object]:
        """See :class:`Tokenizer`."""
        return {"name": "estimate", "version": self.version, "estimated": True}


class HfTokenizer:
    """A Hugging Face ``tokenizer.json``.

    Special strings (``<|endoftext|>``) that stand in a text are ordinary text there and never count as
    the special token: their meaning belongs to the training framework, not to a page that mentions them.

    Args:
        path: the ``tokenizer.json``.

    Raises:
        ConfigError: the file is missing or is no tokenizer, or a special string cannot be told from text.

    """

    estimated = False

    def __init__(self, path: Path | str) -> None:
        try:
            raw = Path(path).read_bytes()
        except OSError as e:
            raise ConfigError(f"mixing.tokenizer: {path} can't be read ({e.strerror})") from e
        # One worker process per core already; its threads would fight with the others.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._sha256 = hashlib.sha256(raw).hexdigest()
        self._tokenizer = _load(raw, str(path))

    def count(self, texts: Any) -> I64:
        """See :class:`Tokenizer`."""
        counts = [
            len(encoding)
            for batch in _batches(texts)
            for encoding in self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
        ]
        return np.asarray(counts, dtype=np.int64)

    def identity(self) -> Mapping[str, object]:
        """See :class:`Tokenizer`: the SHA-256 of the file."""
        return {"name": "huggingface", "sha256": self._sha256, "estimated": False}


def load_tokenizer(path: str) -> Tokenizer:
    """The tokenizer that ``mixing.tokenizer`` asks for; the estimate where the path is empty."""
    return HfTokenizer(path) if path else EstimateTokenizer()


def _batches(texts: Any) -> Iterator[list[str]]:
    """Cut texts into lists of about :data:`_BATCH_BYTES`."""
    column = pa.chunked_array([texts]) if isinstance(texts, pa.Array) else texts
    _, offsets = string_buffers(column)
    start = 0
    while start < len(column):
        end = int(np.searchsorted(offsets, offsets[start] + _BATCH_BYTES, side="right")) - 1
        end = min(max(end, start + 1), len(column))
        yield [text or "" for text in column.slice(start, end - start).to_pylist()]
        start = end


def _load(raw: bytes, where: str) -> Any:
    """Build the tokenizer so that no text can give the id of a special token."""
    from tokenizers import Tokenizer as Backend

    try:
        spec = json.loads(raw)
        special = [
            t
            for t in spec.get("added_tokens") or []
            if t.get("special") and not _is_unknown(spec["model"], t)
        ]
        spec["truncation"] = spec["padding"] = None
        backend = Backend.from_str(json.dumps(spec))
        backend.encode_special_tokens = True
        leaks = [t for t in special if _emits(backend, t)]
        if leaks:
            # Unigram and word vocabularies hold the string as a piece of its own: out of reach with it.
            for token in leaks:
                _rename(spec["model"], token["content"], f"\x00special {token['id']}\x00")
            spec["added_tokens"] = [t for t in spec["added_tokens"] if t not in leaks]
            backend = Backend.from_str(json.dumps(spec))
            backend.encode_special_tokens = True
            leaks = [t for t in leaks if _emits(backend, t)]
    except Exception as e:  # the library raises plain Exception for all that it can't read
        raise ConfigError(f"mixing.tokenizer: {where} is not a tokenizer.json ({e})") from e
    if leaks:
        names = ", ".join(t["content"] for t in leaks)
        raise ConfigError(f"mixing.tokenizer: {where}: text reading {names} would count as special tokens")
    return backend


def _emits(backend: Any, token: Mapping[str, Any]) -> bool:
    text = str(token["content"])
    ids = [
        i
        for sample in (text, f"a {text} b", f"a{text}b")
        for i in backend.encode(sample, add_special_tokens=False).ids
    ]
    return token["id"] in ids


def _is_unknown(model: Mapping[str, Any], token: Mapping[str, Any]) -> bool:
    """Whether this is the id that stands for what the vocabulary lacks: legal in any text."""
    return token["content"] == model.get("unk_token") or (
        isinstance(model["vocab"], list) and token["id"] == model.get("unk_id")
    )


def _rename(model: dict[str, Any], old: str, new: str) -> None:
    vocab = model["vocab"]
    if isinstance(vocab, list):
        for piece in vocab:
            if piece[0] == old:
                piece[0] = new
    elif old in vocab:
        model["vocab"] = {new if piece == old else piece: number for piece, number in vocab.items()}
