"""Documents and columns far beyond the usual size."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.kernels.minhash import Signer, permutations
from dataflow_ops.protocols import OutputSpec
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.storage.row_groups import MAX_BYTES
from tests.cases.product import CASES, Product

ROOT = Path(__file__).parents[2]
HUNDRED_MILLION = 100_000_000


@pytest.mark.slow
def test_a_document_of_a_hundred_million_characters(tmp_path: Path) -> None:
    draw = random.Random(1)
    words = (CASES / "text/en_prose_ok.txt").read_text("utf-8").split()
    length = 0
    with open(tmp_path / "big.txt", "w", encoding="ascii") as out:
        while length < HUNDRED_MILLION:
            length += out.write(" ".join(draw.choices(words, k=200)) + f" {length}\n")
    product = Product(
        tmp_path,
        [{"source_id": "a", "path": str(tmp_path / "big.txt")}],
        {"clean": {"boilerplate_filter": {"max_text_len": 2 * HUNDRED_MILLION}}},
    )
    command = [sys.executable, "-m", "tests.cases.measured_run", product.job, product.home, "dedup"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    peaks = json.loads(ended.stdout.splitlines()[-1])
    assert set(peaks) >= {"parse", "filter", "sign", "confirm"}
    # run.memory_budget_mb; filter keeps every word of a text that a job of its own will leaves whole.
    assert max(peak for step, peak in peaks.items() if step != "filter") < 1500 << 20, peaks

    (row,) = product.rows("sign", "signatures")
    signer = Signer(13, permutations(128, 1))
    with open(tmp_path / "big.txt", encoding="ascii") as lines:
        for line in lines:  # of ASCII text every line folds by itself
            signer.update(fold_text(line).encode())
    in_blocks, shingles = signer.finish()
    assert shingles > 0.7 * HUNDRED_MILLION
    assert np.frombuffer(row["signature"], np.uint32).tolist() == in_blocks.tolist()


@pytest.mark.slow
def test_a_text_column_above_two_gibibytes_in_one_chunk(tmp_path: Path) -> None:
    """Written in pieces, read in bounded pieces and at once; offsets beyond 32 bits in the kernels too."""
    text = ((CASES / "text/en_prose_ok.txt").read_text("utf-8") * 700)[:500_000]
    rows = (1 << 31) // len(text) + 200
    store = ChunkStore(LocalStore(tmp_path))
    spec = OutputSpec("text", pa.schema([("number", pa.int32()), ("text", pa.large_string())]))
    writer = store.writer("parse", "0" * 16, "ab" * 32, 1, {"text": spec})
    for first in range(0, rows, 100):
        numbers = list(range(first, min(first + 100, rows)))
        texts = [f"{n:08d}{text[8:]}" for n in numbers]
        writer.append("text", pa.table([numbers, texts], schema=spec.schema))
    (output,) = writer.finish()

    seen = 0
    for batch in store.batches(output):
        assert batch.nbytes <= MAX_BYTES + (1 << 20)
        assert batch["number"].to_pylist() == list(range(seen, seen + batch.num_rows))
        seen += batch.num_rows
    assert seen == rows

    whole = store.read(output)
    data, offsets = string_buffers(whole["text"])
    assert offsets[-1] == len(data) == rows * len(text) > 1 << 31
    assert bytes(data[-len(text) : -len(text) + 8]) == b"%08d" % (rows - 1)
    assert pc.all(pc.equal(pc.utf8_slice_codeunits(whole["text"], 8), text[8:])).as_py()


def test_a_pair_of_half_a_million_characters(tmp_path: Path) -> None:
    """Its comparison takes at most 20 ms (tests/kernels/test_similarity.py); here: it is made and right."""
    draw = random.Random(2)
    words = (CASES / "text/en_prose_ok.txt").read_text("utf-8").split()
    taken = [f"{draw.choice(words)}{draw.randrange(50)}" for _ in range(90_000)]
    texts = [" ".join(taken)[:499_000], " ".join(w for i, w in enumerate(taken) if i % 100)[:490_000]]
    lines = "".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in enumerate(texts))
    (tmp_path / "pair.jsonl").write_text(lines, encoding="utf-8")
    product = Product(
        tmp_path,
        [{"source_id": "a", "kind": "jsonl", "path": str(tmp_path / "pair.jsonl")}],
        {"clean": {"quality_rules": {"enabled": False}}},
    )
    assert product.run().code == 0
    (left,) = product.exported()
    assert (left["source_record_id"], left["copies"]) == ("0", 1)
    (fate,) = [row for row in product.rows("scatter", "fates") if row["fate"] == "duplicate"]
    assert 0.95 < fate["similarity"] < 1
