from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.errors import FileError, SourceChanged, TruncatedFile, UnreadableFile
from dataflow_ops.layers.parse.streams import HashedReader, blocks


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(data)


CODECS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zst}
DATA = os.urandom(120) * 5 + b"row\n" * 100


def read(stored: bytes, path: str) -> tuple[bytes, FileError | None]:
    got: list[bytes] = []
    try:
        for block in blocks(HashedReader(io.BytesIO(stored), path, ""), path):
            got.append(block)
    except FileError as e:
        return b"".join(got), e
    return b"".join(got), None


@pytest.mark.parametrize("suffix", CODECS)
@given(st.lists(st.binary(max_size=5000), min_size=1, max_size=4), st.integers(0, 600))
def test_any_number_of_members_with_padding(suffix: str, members: list[bytes], zeros: int) -> None:
    stored = b"".join(map(CODECS[suffix], members)) + b"\x00" * zeros
    assert read(stored, f"a.{suffix}") == (b"".join(members), None)


@pytest.mark.parametrize("suffix", CODECS)
def test_cut_at_every_byte_is_never_a_short_success(suffix: str) -> None:
    stored = CODECS[suffix](DATA)
    for cut in range(1, len(stored)):
        got, error = read(stored[:cut], f"a.{suffix}")
        assert isinstance(error, TruncatedFile), cut
        assert error.offset == len(got)
        assert DATA.startswith(got)


@pytest.mark.parametrize("suffix", CODECS)
def test_second_member_cut(suffix: str) -> None:
    stored = CODECS[suffix](DATA)
    got, error = read(stored + stored[: len(stored) // 2], f"a.{suffix}")
    assert got.startswith(DATA)
    assert isinstance(error, TruncatedFile)


@pytest.mark.parametrize("suffix", CODECS)
def test_damage_is_found(suffix: str) -> None:
    stored = bytearray(CODECS[suffix](DATA))
    stored[len(stored) // 2] ^= 0x55
    _, error = read(bytes(stored), f"a.{suffix}")
    assert isinstance(error, FileError)


@pytest.mark.parametrize("suffix", CODECS)
def test_trailing_garbage_is_said_after_the_data_were_given(suffix: str) -> None:
    got, error = read(CODECS[suffix](DATA) + b"garbage", f"a.{suffix}")
    assert got == DATA
    assert isinstance(error, UnreadableFile)
    assert error.offset == len(DATA)


@pytest.mark.parametrize("suffix", CODECS)
def test_a_name_that_lies(suffix: str) -> None:
    got, error = read(b"plain text", f"a.{suffix}")
    assert got == b""
    assert isinstance(error, UnreadableFile)
    assert "named as" in str(error)


@pytest.mark.parametrize("suffix", CODECS)
def test_compressed_under_a_plain_name(suffix: str) -> None:
    assert read(CODECS[suffix](DATA), "a.jsonl") == (DATA, None)


def test_empty_files() -> None:
    assert read(b"", "a.gz") == (b"", None)
    assert read(gzip.compress(b""), "a.gz") == (b"", None)


@pytest.mark.parametrize("suffix", CODECS)
def test_a_bomb_comes_in_bounded_blocks(suffix: str) -> None:
    size = 30 << 20
    stored = CODECS[suffix](bytes(size))
    lengths = [len(b) for b in blocks(HashedReader(io.BytesIO(stored), "a", ""), "a")]
    assert sum(lengths) == size
    assert max(lengths) <= (64 << 20 if suffix == "zst" else 1 << 20)


def test_zstd_window_is_capped_with_advice() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    _, error = read(writer.compress(b"abc" * 1000) + writer.flush(), "a.zst")
    assert isinstance(error, UnreadableFile)
    assert "--long=27" in str(error)


def test_hash_is_checked_over_the_whole_file() -> None:
    good = hashlib.sha256(DATA).hexdigest()
    reader = HashedReader(io.BytesIO(DATA), "a", good)
    reader.read(10)
    reader.verify()
    with pytest.raises(SourceChanged, match="changed after it was fetched"):
        HashedReader(io.BytesIO(DATA + b"x"), "a", good).verify()
    assert HashedReader(io.BytesIO(DATA), "a", good).seekable().read() == DATA
