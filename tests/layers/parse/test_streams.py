from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random

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


def checksum_at(suffix: str, stored: bytes) -> int:
    """A byte of the member's checksum: all its data stand before it."""
    return {"gz": len(stored) - 6, "bz2": len(stored) - 4, "xz": len(stored) - 28, "zst": len(stored) - 2}[
        suffix
    ]


@pytest.mark.parametrize("suffix", CODECS)
@pytest.mark.parametrize("before", [0, 3])
def test_a_wrong_checksum_keeps_what_was_unpacked(suffix: str, before: int) -> None:
    whole = CODECS[suffix](DATA)
    stored = bytearray(whole)
    stored[checksum_at(suffix, whole)] ^= 0x55
    got, error = read(whole * before + bytes(stored) + whole, f"a.{suffix}")
    assert got == DATA * (before + 1)
    assert isinstance(error, UnreadableFile)
    assert error.offset == len(got)


def test_bzip2_keeps_all_blocks_before_the_damage_and_nothing_after() -> None:
    rows = b"".join(b"row %d\n" % i for i in range(40_000))
    stored = bz2.compress(rows, 1)
    given = set()
    for at in range(len(stored) - 15_000, len(stored), 311):
        # The byte with a block's last bits has the first ones of what follows too.
        before, through = (read(stored[:cut], "a.bz2")[0] for cut in (at, at + 1))
        damaged = stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :]
        kept, error = read(damaged, "a.bz2")
        assert isinstance(error, UnreadableFile)
        assert error.offset == len(kept)
        assert kept in (before, through)
        assert rows.startswith(kept)
        given.add(len(kept))
    assert len(given) > 1
    assert min(given) > len(rows) - 300_000


@pytest.mark.parametrize("cut", range(1, 11))
def test_bzip2_cut_in_its_end_mark_keeps_everything(cut: int) -> None:
    assert read(bz2.compress(DATA)[:-cut], "a.bz2")[0] == DATA


@pytest.mark.parametrize("suffix", CODECS)
def test_damage_far_into_a_file_is_read_up_to(suffix: str) -> None:
    member = random.Random(1).randbytes(200_000)
    packed = CODECS[suffix](member)
    stored = bytearray(packed * 4)
    stored[len(packed) * 2 + checksum_at(suffix, packed)] ^= 0x55
    got, error = read(bytes(stored), f"a.{suffix}")
    assert got == member * 3
    assert isinstance(error, UnreadableFile)
    assert error.offset == len(got)


def test_damage_is_reported_after_the_hash_was_checked() -> None:
    stored = gzip.compress(DATA)[:-1] + b"\xff"
    reader = HashedReader(io.BytesIO(stored), "a.gz", "0" * 64)
    with pytest.raises(SourceChanged):
        list(blocks(reader, "a.gz"))


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
