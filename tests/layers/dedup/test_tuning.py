"""What tuning counts, against the steps of dedup run over documents and copies together."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pyarrow as pa
import pytest

from dataflow_ops.job_file import parse_job
from dataflow_ops.kernels.bands import match_probability
from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.layers.dedup.edits import copy_of
from dataflow_ops.layers.dedup.tuning import Pairs, Signed, Trial, key_texts, variants
from dataflow_ops.settings import JobSettings
from tests.pipeline import prose


def job(**dedup: object) -> JobSettings:
    return parse_job({"dataset": {"id": "t"}, "dedup": dedup})


def table(texts: list[str]) -> pa.Table:
    ids = [hashlib.sha256(t.encode()).digest()[:16] for t in texts]
    return pa.table(
        {
            "doc_id": pa.array(ids, pa.binary(16)),
            "text": pa.array(texts, pa.large_string()),
            "source_id": pa.array(["s"] * len(texts)),
        }
    )


POOL = prose.sentences()
TEXTS = [prose.note(i, POOL) for i in range(40)] + ["short", "水库的管理员每天清晨沿着堤坝走一圈" * 3]


def measured(settings: JobSettings, kind: str, texts: list[str], name: str = "") -> tuple[int, int]:
    """Found and made, by the job's own setting or the one so named."""
    variant = next(v for v in variants(settings) if (v.name == name if name else v.own))
    trial = Trial(variant)
    documents = table(texts)
    copies = [copy_of(t, d, kind) for t, d in zip(texts, documents["doc_id"].to_pylist(), strict=True)]
    changed = documents.set_column(1, "text", pa.array(copies, pa.large_string()))
    same = np.arange(len(texts))
    least = settings.dedup.verify.min_similarity
    pairs = Pairs(
        same, same, key_texts(settings, documents["text"]), key_texts(settings, changed["text"]), least
    )
    trial.judge(kind, pairs, trial.sign_documents(documents), trial.sign_copies(changed))
    found, made = trial.found[kind]
    return found, made


def by_the_steps(settings: JobSettings, kind: str, texts: list[str]) -> int:
    """Copies that the steps join with their document, each pair put through them by itself."""
    joined = 0
    for text in texts:
        doc_id = table([text])["doc_id"][0].as_py()
        copy = copy_of(text, doc_id, kind)
        if settings.dedup.exact and fold_text(copy) == fold_text(text):
            joined += 1
            continue
        trial = Trial(variants(settings)[0])
        trial.sign_documents(table([text, copy]))
        joined += trial.among_documents().verified
    return joined


@pytest.mark.parametrize("kind", ["edit 5 %", "edit 10 %", "block 10 %", "title", "width"])
def test_a_pair_is_found_when_the_steps_would_join_it(kind: str) -> None:
    found, made = measured(job(), kind, TEXTS)
    assert made == len(TEXTS)
    assert found == by_the_steps(job(), kind, TEXTS)


def test_a_copy_on_the_other_side_of_the_line_between_two_shingle_sizes_is_found() -> None:
    han = "".join(chr(0x4E00 + int(hashlib.sha256(b"%d" % i).hexdigest()[:4], 16) % 5000) for i in range(340))
    text = han + "".join(prose.note(0, POOL).split())[:660]
    copy = text + "".join(prose.note(1, POOL).split())[:60]
    trial = Trial(variants(job())[0])
    one, other = trial.sign_documents(table([text])), trial.sign_copies(table([copy]))
    assert (one.shingles[0], other.shingles[0]) == (5, 13)
    assert one.has.all()
    assert other.has.all()
    zero = np.zeros(1, np.int64)
    keys = [key_texts(job(), table([t])["text"]) for t in (text, copy)]
    trial.judge("x", Pairs(zero, zero, *keys, 0.8), one, other)
    assert trial.found["x"] == [1, 1]


@pytest.mark.parametrize(("equal", "found"), [(16, 0), (17, 1)])
def test_a_pair_whose_signatures_hardly_agree_is_not_compared(equal: int, found: int) -> None:
    """As verify does: 17 of 128 positions for 16 x 8."""
    keys = key_texts(job(), table([TEXTS[0]])["text"])
    trial = Trial(variants(job())[0])
    one = trial.sign_documents(table([TEXTS[0]]))
    changed = one.signatures.copy()
    changed[0, equal:] += 1
    zero = np.zeros(1, np.int64)
    other = dataclasses.replace(one, signatures=changed, sha1=one.sha1 + np.uint8(1))
    trial.judge("x", Pairs(zero, zero, keys, keys, 0.8), one, other)
    assert trial.found["x"] == [found, 1]


def test_below_the_threshold_nothing_is_found() -> None:
    assert measured(job(verify={"min_similarity": 0.99}), "edit 10 %", TEXTS)[0] == 0


def test_without_exact_a_text_too_short_for_a_signature_is_not_found() -> None:
    assert measured(job(), "case", ["short"]) == (1, 1)
    assert measured(job(exact=False), "case", ["short"]) == (0, 1)


def test_more_bands_and_fewer_rows_find_more() -> None:
    found = [measured(job(), "edit 10 %", TEXTS, name)[0] for name in ("8 x 16", "", "32 x 4")]
    assert found[0] < found[1] < found[2]


def test_false_candidates_are_pairs_that_were_compared_and_did_not_verify() -> None:
    shared = "\n".join(POOL[:12])
    template = [shared + "\n" + prose.note(i, POOL[12:], 5) for i in range(12)]
    trial = Trial(variants(job(verify={"min_similarity": 0.95}))[0])
    trial.sign_documents(table([*template, *TEXTS]))
    among = trial.among_documents()
    assert among.compared > 0 == among.verified
    copies = Trial(variants(job())[0])
    copies.sign_documents(table([TEXTS[0], TEXTS[0] + " one more", TEXTS[1]]))
    assert copies.among_documents().verified == 1


def test_batches_change_nothing() -> None:
    whole, parts = Trial(variants(job())[0]), Trial(variants(job())[0])
    texts = [*TEXTS, *(copy_of(t, b"5" * 16, "edit 5 %") for t in TEXTS)]
    one = whole.sign_documents(table(texts))
    several = Signed.joined([parts.sign_documents(table(texts[i : i + 7])) for i in range(0, len(texts), 7)])
    for name in ("sha1", "bands", "has", "signatures", "shingles"):
        assert np.array_equal(getattr(one, name), getattr(several, name)), name
    first, second = whole.among_documents(), parts.among_documents()
    assert (first.compared, first.verified) == (second.compared, second.verified)
    assert first.verified > 10


def test_what_is_tried() -> None:
    tried = variants(job())
    assert [v.own for v in tried] == [True] + [False] * (len(tried) - 1)
    assert [v.name for v in tried] == [
        "16 x 8", "8 x 16", "20 x 6", "25 x 5", "32 x 4",
        "16 x 8, shingle 5", "16 x 8, shingle 9", "16 x 8, shingle 13",
    ]  # fmt: skip
    assert tried[2].changes == ("dedup.minhash.band=20", "dedup.minhash.rows_per_band=6")
    small = variants(job(minhash={"signature_size": 64, "band": 8, "rows_per_band": 8, "shingle_size": 7}))
    assert [v.name for v in small] == ["8 x 8", "8 x 16", "16 x 8", "20 x 6", "25 x 5", "32 x 4"]
    assert small[1].changes[0] == "dedup.minhash.signature_size=128"
    for variant in [*tried, *small]:
        m = variant.settings.dedup.minhash
        assert m.band * m.rows_per_band <= m.signature_size
        assert match_probability(1.0, m.band, m.rows_per_band) == 1.0
