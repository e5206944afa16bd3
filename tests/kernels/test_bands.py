import numpy as np
import pytest

from dataflow_ops.kernels import bands as b


def test_equal_bands_meet_and_others_do_not() -> None:
    rng = np.random.default_rng(1)
    signatures = rng.integers(0, 2**32, (2, 128), dtype=np.uint32)
    signatures[1, 8:16] = signatures[0, 8:16]
    sizes = np.array([13, 13], np.int64)
    one, two = b.band_hashes(signatures, 16, 8, sizes)
    assert np.flatnonzero(one == two).tolist() == [1]
    assert len(np.unique(b.band_hashes(np.ones((1, 128), np.uint32), 16, 8, sizes[:1]))) == 16


def test_kinds_of_signature_never_meet() -> None:
    signatures = np.ones((2, 128), np.uint32)
    hashes = b.band_hashes(signatures, 16, 8, np.array([5, 13], np.int64))
    words = b.band_hashes(signatures, 16, 8, np.array([5, 13], np.int64), words=True)
    assert len(np.unique(np.concatenate([hashes, words]))) == 4 * 16


def test_bands_must_fit() -> None:
    with pytest.raises(ValueError, match="need 144 positions"):
        b.band_hashes(np.ones((1, 128), np.uint32), 18, 8, np.array([5], np.int64))


def test_s_curve() -> None:
    assert [round(b.match_probability(s, 16, 8), 2) for s in (0.5, 0.7, 0.8, 0.9)] == [0.06, 0.61, 0.95, 1.0]
    assert b.match_probability(b.similarity_at(0.3, 16, 8), 16, 8) == pytest.approx(0.3)


def test_run_hashes_know_order_and_length() -> None:
    values = np.array([1, 2, 2, 1, 1, 2, 3, 1, 2], np.uint64)
    a, c, d, e = b.hash_runs(values, np.array([0, 2, 4, 7, 9], np.int64))
    assert a == e
    assert len({int(a), int(c), int(d)}) == 3


def test_mixing_spreads_small_numbers() -> None:
    top = b.mix_rows(np.arange(4096, dtype=np.uint64)) >> np.uint64(60)
    assert np.bincount(top.astype(np.int64), minlength=16).min() > 150
