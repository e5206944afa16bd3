from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels import minhash as m
from dataflow_ops.kernels.arrow import string_buffers

PERMS = m.permutations(128, 1)


def sign(
    texts: list[str], size: int, words: bool = False, perms: m.Permutations = PERMS
) -> tuple[m.U32, m.I64]:
    data, offsets = string_buffers(pa.array(texts, pa.large_string()))
    return m.signatures(data, offsets, np.full(len(texts), size, np.int64), perms, words)


def shingles(text: str, size: int) -> set[str]:
    return {text[i : i + size] for i in range(len(text) - size + 1)}


def variants(seed: int, n: int) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz水库的管理员每天清晨沿着堤坝"))
    one, two = [], []
    for _ in range(n):
        base = letters[rng.integers(0, len(letters), 600)]
        other = base.copy()
        cut = rng.integers(0, 500)
        other[:cut] = letters[rng.integers(0, len(letters), cut)]
        one.append("".join(base))
        two.append("".join(other))
    return one, two


def test_estimates_exact_jaccard_as_well_as_theory_says() -> None:
    one, two = variants(1, 300)
    estimate = (sign(one, 5)[0] == sign(two, 5)[0]).mean(axis=1)
    exact = np.array(
        [
            len(shingles(a, 5) & shingles(b, 5)) / len(shingles(a, 5) | shingles(b, 5))
            for a, b in zip(one, two, strict=True)
        ]
    )
    error = np.sqrt(((estimate - exact) ** 2).mean())
    theory = np.sqrt((exact * (1 - exact) / 128).mean())
    assert error < 1.15 * theory
    assert abs((estimate - exact).mean()) < 0.006


def test_agrees_with_datasketch() -> None:
    one, two = variants(2, 60)
    ours = (sign(one, 7)[0] == sign(two, 7)[0]).mean(axis=1)
    theirs = []
    for a, b in zip(one, two, strict=True):
        sketches = []
        for text in (a, b):
            sketch = MinHash(128, seed=3)
            sketch.update_batch([s.encode() for s in shingles(text, 7)])
            sketches.append(sketch)
        theirs.append(sketches[0].jaccard(sketches[1]))
    # Two independent estimates: their difference has twice the variance of one, at most 2 / (4 * 128).
    assert np.sqrt(((ours - np.array(theirs)) ** 2).mean()) < 1.2 * np.sqrt(2 / (4 * 128))


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    st.integers(1, 30),
    st.booleans(),
    st.lists(st.integers(0, 300), max_size=5),
)
def test_pieces_equal_one_pass(text: str, size: int, words: bool, cuts: list[int]) -> None:
    whole, count = sign([text], size, words)
    signer = m.Signer(size, PERMS, words)
    bounds = sorted({0, len(text), *(min(c, len(text)) for c in cuts)})
    for a, b in pairwise(bounds):
        signer.update(text[a:b].encode())
    signature, seen = signer.finish()
    assert seen == count[0]
    assert np.array_equal(signature, whole[0])
    if not words:
        assert seen == max(0, len(text) - size + 1)


@pytest.mark.parametrize("length", [2047, 2048, 2049, 2060, 5000, 100_000])
def test_block_borders_lose_no_shingle(length: int) -> None:
    rng = np.random.default_rng(length)
    text = "".join(np.array(list("abcdefgh水"))[rng.integers(0, 9, length)])
    perms = m.permutations(16, 5)
    got = sign([text], 13, perms=perms)[0][0]
    # The signature of a union is the minimum of the signatures: every shingle signed alone.
    parts = sign(sorted(shingles(text, 13))[:100_000], 13, perms=perms)[0]
    assert np.array_equal(got, parts.min(axis=0))


def test_short_texts_have_no_signature() -> None:
    signatures, count = sign(["abc", "", "abcd"], 4)
    assert count.tolist() == [0, 0, 1]
    assert (signatures[:2] == 0xFFFFFFFF).all()


def test_words() -> None:
    a, b, c = sign(["one two three four", "one  two three four ", "onetwo three four"], 2, True)[0]
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert sign(["水库 的管理员"], 2, True)[1].tolist() == [5]


def test_seed_and_size_decide() -> None:
    assert np.array_equal(m.permutations(128, 1).a, PERMS.a)
    assert not np.array_equal(m.permutations(128, 2).a, PERMS.a)
    assert (PERMS.a & 1).all()
    assert len(np.unique(PERMS.a)) == 128


def test_long_text_needs_no_memory_of_its_size() -> None:
    signer = m.Signer(13, PERMS)
    piece = b"The reservoir above the old mill froze early that winter. " * 20_000
    for _ in range(20):
        signer.update(piece)
    signature, seen = signer.finish()
    assert seen == 20 * len(piece) - 12
    assert np.array_equal(
        signature, sign(["The reservoir above the old mill froze early that winter. " * 3], 13)[0][0]
    )


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([1, 16, 128]))
def test_agreements_are_numpys(seed: int, n: int, width: int) -> None:
    draw = np.random.default_rng(seed)
    signatures = draw.integers(0, 3, (n, width)).astype(np.uint32)
    many, one = draw.integers(0, n, 2 * n), int(draw.integers(0, n))
    wanted = np.count_nonzero(signatures[many] == signatures[one], axis=1)
    assert m.agreements(signatures, many, one).tolist() == wanted.tolist()
