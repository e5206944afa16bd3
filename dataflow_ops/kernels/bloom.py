"""Bloom filter in blocks of 512 bits: one cache line a question, 0.65 % false positives at 11 bits a key.

A filter says "surely not" or "perhaps". It never says "surely not" of a key that was added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from dataflow_ops.kernels.arrow import U64
from dataflow_ops.kernels.bands import mix64

VERSION = 1
BITS_PER_KEY = 11
PROBES = 6
BLOCK_BITS = 512
_WORDS = BLOCK_BITS // 64
MAX_BLOCKS = 1 << 32


@dataclass(frozen=True, slots=True)
class Bloom:
    """A filter over uint64 keys.

    Attributes:
        words: the bits, uint64 of shape ``(blocks * 8,)``; changed in place by :meth:`add`.
    """

    words: U64

    @classmethod
    def sized(cls, capacity: int) -> Bloom:
        """An empty filter for so many keys at :data:`BITS_PER_KEY` bits each.

        Raises:
            ValueError: the capacity is negative, or beyond 2**41 bits.
        """
        return cls(np.zeros(blocks_for(capacity) * _WORDS, np.uint64))

    @classmethod
    def of_bytes(cls, data: bytes | memoryview) -> Bloom:
        """A filter as :meth:`to_bytes` gave it; read-only, without a copy.

        Raises:
            ValueError: the length is no whole number of blocks, or zero.
        """
        if len(data) == 0 or len(data) % (BLOCK_BITS // 8):
            raise ValueError(f"{len(data)} bytes are no whole number of blocks of {BLOCK_BITS // 8}")
        return cls(np.frombuffer(data, "<u8"))

    def to_bytes(self) -> bytes:
        """The bits, little-endian."""
        return self.words.astype("<u8", copy=False).tobytes()

    def as_array(self) -> Any:
        """A ``large_binary`` array of one value, what :meth:`to_bytes` gives, without a copy."""
        data = pa.py_buffer(self.words.astype("<u8", copy=False))
        ends = pa.py_buffer(np.array([0, data.size], np.int64))
        return pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, data])

    @property
    def capacity(self) -> int:
        """Keys at which the filter is as full as it is meant to get."""
        return len(self.words) * 64 // BITS_PER_KEY

    def add(self, keys: U64) -> None:
        """Add keys: uint64 of shape ``(n,)``, of any distribution."""
        _add(self.words, np.ascontiguousarray(keys))

    def may_contain(self, keys: U64) -> np.ndarray:
        """Which keys may have been added: bool of shape ``(n,)``; False means surely not."""
        out = np.empty(len(keys), np.bool_)
        _ask(self.words, np.ascontiguousarray(keys), out)
        return out


def blocks_for(capacity: int) -> int:
    """Blocks of a filter for so many keys, at least one.

    Raises:
        ValueError: the capacity is negative, or beyond 2**32 blocks.
    """
    blocks = max(1, -(-capacity * BITS_PER_KEY // BLOCK_BITS))
    if capacity < 0 or blocks > MAX_BLOCKS:
        raise ValueError(f"a filter for {capacity:,} keys is not possible; slice it by the keys' first bits")
    return blocks


@numba.njit(cache=True, inline="always")
def _place(key, blocks):  # type: ignore[no-untyped-def]
    """First word of a key's block, and the bits that choose places in it.

    The key is mixed first: keys of one slice agree in their first bits, and those would choose few blocks.
    """
    h = mix64(key + np.uint64(0x9E3779B97F4A7C15))
    block = ((h >> np.uint64(32)) * blocks) >> np.uint64(32)
    # The block follows from the upper half alone; the places must not follow from the same bits.
    return block * np.uint64(8), mix64(h ^ np.uint64(0xD6E8FEB86659FD93))


@numba.njit(cache=True)
def _add(words, keys):  # type: ignore[no-untyped-def]
    blocks = np.uint64(len(words) // 8)
    for i in range(len(keys)):
        first, bits = _place(keys[i], blocks)
        for _ in range(PROBES):
            place = bits & np.uint64(511)
            words[first + (place >> np.uint64(6))] |= np.uint64(1) << (place & np.uint64(63))
            bits >>= np.uint64(9)


@numba.njit(cache=True)
def _ask(words, keys, out):  # type: ignore[no-untyped-def]
    blocks = np.uint64(len(words) // 8)
    for i in range(len(keys)):
        first, bits = _place(keys[i], blocks)
        found = True
        for _ in range(PROBES):
            place = bits & np.uint64(511)
            if not (words[first + (place >> np.uint64(6))] >> (place & np.uint64(63))) & np.uint64(1):
                found = False
                break
            bits >>= np.uint64(9)
        out[i] = found


def warm() -> None:
    """Compile the kernels of this module, for memory of Arrow (read-only) and of numpy."""
    made = Bloom.sized(1)
    keys = np.arange(2, dtype=np.uint64)
    made.add(keys)
    made.may_contain(keys)
    keys.flags.writeable = False
    made.add(keys)
    made.may_contain(keys)
    Bloom.of_bytes(made.to_bytes()).may_contain(keys)
