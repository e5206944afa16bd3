"""``tune-dedup``: which bands, rows and shingles find most on the user's own documents, and at what cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.kernels import warm
from dataflow_ops.kernels.bands import match_probability
from dataflow_ops.layers.dedup.edits import EDITS, SMALL, copy_of
from dataflow_ops.layers.dedup.tuning import Pairs, Signed, Trial, key_texts, variants
from dataflow_ops.pipeline.opened import OpenRun, open_run
from dataflow_ops.pipeline.tune_sample import Sample, draw, labelled
from dataflow_ops.settings import JobSettings

SAMPLE = 20_000
LABELLED = "labelled"
_SIMILARITIES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_AT_ONCE, _BYTES_AT_ONCE = 1_000, 32 << 20
_WARM = 16
_FEW = 1_000
_NEAR_BEST = 0.02
_CHEAPER = 0.9
"""A setting costs less than another where it costs less than so much of it."""
Progress = Callable[[int, int], None]


def tune(
    home_path: Path, job_path: Path, n: int, labels: Path | None, run_id: str | None, progress: Progress
) -> dict[str, Any]:
    """Measure settings of the near-duplicate search on documents of a run.

    Args:
        home_path: home folder.
        job_path: job file, whose settings are held against others.
        n: documents to draw.
        labels: file of known duplicates, measured instead of made copies.
        run_id: whose documents; None: the data set's newest finished full run, or day where there is none.
        progress: hears ``(done, in all)`` in documents times settings.

    Returns:
        S-curves, a row for each setting, and a recommendation; JSON-able.

    Raises:
        ConfigError: there is no such run, nothing was kept, the labels can't be used, or near duplicates
            are switched off.
        CorruptOutput: what the run stored is gone or damaged.

    """
    job = load_job(job_path)
    if not job.dedup.near:
        raise ConfigError(f"{job_path}: dedup.near is off; there are no bands to tune")
    with open_run(home_path, job.dataset.id, run_id, "filter") as run:
        # Sources rank domains (dedup.priority); those on a command line stand in the run alone.
        job = job.model_copy(update={"sources": run.settings.sources})
        sample = draw(run, n) if labels is None else labelled(run, labels)
        told, run_name, kept, newer = run.told, run.row.run_id, _kept(run), run.notes
    trials = [Trial(variant) for variant in variants(job)]
    _warm(job, sample.documents)
    if labels is None:
        _on_copies(job, sample.documents, trials, progress)
    else:
        _on_labels(job, sample, trials, progress)
    # Labelled documents are no fair draw: how often they meet says nothing of the others.
    times = kept / sample.documents.num_rows if labels is None else 1.0
    rows = [_row(trial, times) for trial in trials]
    small = SMALL if labels is None else (LABELLED,)
    return {
        "run": run_name,
        "told": told,
        "documents": sample.documents.num_rows,
        "documents_of_run": kept,
        "pairs": int(sample.left.size),
        "min_similarity": job.dedup.verify.min_similarity,
        "curve": _curve(trials),
        "settings": rows,
        "recommendation": recommend(rows, small),
        "notes": [*newer, *sample.notes, *_few(sample.documents.num_rows, labels is None)],
    }


def _few(n: int, made: bool) -> list[str]:
    """A word on how little a share of few documents says."""
    if not made or n >= _FEW:
        return []
    points = 100 * 1.96 * (0.25 / n) ** 0.5
    return [
        f"{n:,} documents are few: a share found here may be off by {points:.0f} points, and times by more;"
        " --run RUN takes a larger run"
    ]


def _kept(run: OpenRun) -> int:
    """Documents that the filter kept, by what is recorded of its outputs."""
    rows = {k: sum(o.rows for _, o in run.reader.outputs("filter", k)) for k in ("verdicts", "rejects")}
    return rows["verdicts"] - rows["rejects"]


def _warm(job: JobSettings, documents: pa.Table) -> None:
    """Load compiled code before any clock runs."""
    warm.load()
    trial = Trial(variants(job)[0])
    trial.sign_documents(documents.slice(0, _WARM))
    trial.among_documents()


def _batches(documents: pa.Table) -> Iterator[pa.Table]:
    start = 0
    while start < documents.num_rows:
        count = min(_AT_ONCE, documents.num_rows - start)
        while count > 1 and documents.slice(start, count)["text"].nbytes > _BYTES_AT_ONCE:
            count = (count + 1) // 2
        yield documents.slice(start, count)
        start += count


def _on_copies(job: JobSettings, documents: pa.Table, trials: list[Trial], progress: Progress) -> None:
    least, done = job.dedup.verify.min_similarity, 0
    for number, batch in enumerate(_batches(documents)):
        # Who comes first finds the texts out of the cache; all come first alike.
        first = number % len(trials)
        turns = [*trials[first:], *trials[:first]]
        signed = [trial.sign_documents(batch) for trial in turns]
        keys = key_texts(job, batch["text"])
        ids, texts = batch["doc_id"].to_pylist(), batch["text"].to_pylist()
        same = np.arange(batch.num_rows)
        for kind in EDITS:
            copies = [copy_of(text, doc_id, kind) for text, doc_id in zip(texts, ids, strict=True)]
            at = batch.schema.get_field_index("text")
            table = batch.set_column(at, "text", pa.array(copies, pa.large_string()))
            pairs = Pairs(same, same, keys, key_texts(job, table["text"]), least)
            for trial, of in zip(turns, signed, strict=True):
                trial.judge(kind, pairs, of, trial.sign_copies(table))
        done += batch.num_rows * len(trials)
        progress(done, documents.num_rows * len(trials))


def _on_labels(job: JobSettings, sample: Sample, trials: list[Trial], progress: Progress) -> None:
    keys = key_texts(job, sample.documents["text"])
    pairs = Pairs(sample.left, sample.right, keys, keys, job.dedup.verify.min_similarity)
    for number, trial in enumerate(trials):
        signed = Signed.joined([trial.sign_documents(batch) for batch in _batches(sample.documents)])
        trial.judge(LABELLED, pairs, signed, signed)
        progress((number + 1) * sample.documents.num_rows, len(trials) * sample.documents.num_rows)


def _row(trial: Trial, times: float) -> dict[str, Any]:
    """What was measured of one setting.

    Args:
        trial: after all its copies.
        times: as many documents as these are in the run. A document meets at most so many times more
            candidates there, so comparing costs at most so much more; signing and finding buckets do not.

    """
    among, m = trial.among_documents(), trial.variant.settings.dedup.minhash
    n = trial.documents
    sign, match, verify = (1e6 * s / n for s in (trial.sign_s, among.match_s, among.verify_s))
    return {
        "name": trial.variant.name,
        "own": trial.variant.own,
        "set": list(trial.variant.changes),
        "band": m.band,
        "rows_per_band": m.rows_per_band,
        "shingle_size": m.shingle_size,
        "recall": {kind: found / made for kind, (found, made) in trial.found.items()},
        "compared": among.compared,
        "verified": among.verified,
        "false_per_document": (among.compared - among.verified) / n,
        "sign_us": sign,
        "match_us": match,
        "verify_us": verify,
        "estimated_us": sign + match + times * verify,
    }


def _curve(trials: list[Trial]) -> list[dict[str, Any]]:
    """Chance to become candidates by Jaccard similarity, for each banding."""
    shapes: dict[str, tuple[int, int]] = {}
    for trial in trials:
        m = trial.variant.settings.dedup.minhash
        shapes.setdefault(f"{m.band} x {m.rows_per_band}", (m.band, m.rows_per_band))
    return [
        {"jaccard": s, "probability": {name: match_probability(s, *shape) for name, shape in shapes.items()}}
        for s in _SIMILARITIES
    ]


def recommend(rows: list[dict[str, Any]], kinds: tuple[str, ...]) -> dict[str, Any]:
    """The cheapest setting within 2 points of the best recall, unless the job's own is as good.

    Args:
        rows: of settings, the job's own among them.
        kinds: of copies by whose mean recall it is decided.

    Returns:
        ``name``, ``set`` (what to change) and a ``sentence``.

    """

    def recall(row: dict[str, Any]) -> float:
        return float(sum(row["recall"][kind] for kind in kinds) / len(kinds))

    def cost(row: dict[str, Any]) -> float:
        return float(row["estimated_us"])

    own = next(row for row in rows if row["own"])
    best = max(recall(row) for row in rows)
    good = [row for row in rows if recall(row) >= best - _NEAR_BEST]
    least = min(map(cost, good))
    # Clocks waver: costs within a tenth of each other count as equal, and the one that finds most is taken.
    cheapest = max((row for row in good if _CHEAPER * cost(row) <= least), key=recall)
    what = "labelled pairs" if kinds == (LABELLED,) else "copies with up to 5 % of their characters edited"
    if own in good and least >= _CHEAPER * cost(own):
        chosen = own
        sentence = (
            f"Keep {own['name']}: it finds {recall(own):.1%} of {what}, the best setting {best:.1%}, and none"
            f" as good costs a tenth less than its {cost(own):.0f} µs a document."
        )
    else:
        chosen = cheapest
        sentence = (
            f"Take {chosen['name']} ({', '.join(chosen['set'])}): it finds {recall(chosen):.1%} of {what} for"
            f" {cost(chosen):.0f} µs a document; {own['name']} finds {recall(own):.1%} for {cost(own):.0f}."
        )
    return {"name": chosen["name"], "set": chosen["set"], "sentence": sentence}
