"""Fit the weights by which the filter tells code from prose, and measure them on the half left out.

    python bench/code_kind.py DOCS [--files FOLDER ...] [--seed N]

DOCS is the ``docs`` folder of the corpus built from public packages (columns id, text, source, lang, label);
FOLDERs are searched for source files in other languages (``/usr/share``, ``/usr/include``). Documents are
halved by a hash of their id, pieces of files by a hash of their text. Prints the weights fitted on one half,
then, for those in ``profile.py``, what the other half is taken for, by language and source.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.filter import profile
from dataflow_ops.layers.filter.measures import Context, Measures
from dataflow_ops.layers.filter.rule import KINDS
from dataflow_ops.layers.filter.step import FilterStep

LANGUAGES = (
    "c h cpp hpp cc java js rs go sql sh pl pm php lua R css tcl f90 pyx cmake proto vim el m4 awk cs asm"
).split()
PER_LANGUAGE, PER_FOLDER = 260, 25
# Their pages labelled "en" are often whole listings (sources of Rust and Django, device trees, logs).
LISTINGS = """
erlang-doc linux-doc manpages manpages-dev nodejs-doc postgresql-doc-15 python-django-doc python-pandas-doc
python3-doc rust-doc
""".split()
ROUNDS = 4


def pieces(folders: list[Path], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Language and text of pieces of 0.7 to 6 KB, without blank lines, as the corpus; few from one folder."""
    seen: set[bytes] = set()
    for language in LANGUAGES:
        paths = sorted(p for folder in folders for p in folder.rglob(f"*.{language}") if p.is_file())
        rng.shuffle(paths)
        taken, by_folder = 0, Counter()
        for path in paths:
            place = path.parts[:6]
            if taken >= PER_LANGUAGE or by_folder[place] > PER_FOLDER:
                continue
            raw = path.read_bytes()[:400_000].decode("utf-8", "replace")
            lines = [line.rstrip() for line in raw.split("\n") if line.strip()]
            text = "\n".join(lines)
            digest = hashlib.sha256(text.encode()).digest()
            if "\ufffd" in text or len(text) < 150 or digest in seen:
                continue
            seen.add(digest)
            by_folder[place] += 1
            for _ in range(2 if len(text) > 8_000 else 1):
                size = rng.randint(700, 6_000)
                start = rng.randrange(len(lines)) if len(text) > size else 0
                piece = ""
                for line in lines[start:]:
                    piece += line + "\n"
                    if len(piece) >= size:
                        break
                if 150 <= len(piece) <= 20_000:
                    taken += 1
                    yield language, piece


def marks(view: Measures) -> np.ndarray:
    """The shares in a thousand that the score adds up, one column per weight."""
    bare = [(w, profile.shares(view, w)) for w in (*profile.PER_CHARACTER, *profile.PER_LINE)]
    return np.column_stack([share for _, share in bare]).astype(np.float64)


def fit(x: np.ndarray, y: np.ndarray, weight: np.ndarray, ridge: float = 1e-3) -> np.ndarray:
    """Logistic regression by Newton's method; the bias last."""
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    a = np.column_stack([(x - mean) / spread, np.ones(len(x))])
    b = np.zeros(a.shape[1])
    for _ in range(40):
        p = 1 / (1 + np.exp(-a @ b))
        slope = a.T @ (weight * (p - y)) / weight.sum() + ridge * b
        curve = (a * (weight * p * (1 - p))[:, None]).T @ a / weight.sum() + ridge * np.eye(len(b))
        step = np.linalg.solve(curve, slope)
        b -= step
        if np.abs(step).max() < 1e-8:
            break
    return np.append(b[:-1] / spread, b[-1] - (b[:-1] * mean / spread).sum())


def view_of(texts: pa.ChunkedArray, context: Context) -> Measures:
    nothing = pa.array(np.zeros(len(texts)))
    table = pa.table({"text": texts, "raw_chars": nothing, "control_chars": nothing})
    return Measures.of(table, context)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("docs", type=Path)
    parser.add_argument("--files", type=Path, nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    context = FilterStep(parse_job({"dataset": {"id": "bench"}})).open(None)  # type: ignore[arg-type]
    xs, kinds, keys = [], [], []
    tables = (
        pq.read_table(name, filters=[("label", "=", "base")]) for name in sorted(args.docs.glob("*.parquet"))
    )
    found = list(pieces(args.files, random.Random(args.seed)))
    files = pa.table(
        {
            "id": [text for _, text in found],
            "text": [text for _, text in found],
            "source": [f"file:{language}" for language, _ in found],
            "lang": ["code"] * len(found),
        }
    )
    for table in (*tables, files):
        if not table.num_rows:
            continue
        view = view_of(table["text"].cast(pa.large_string()), context)
        xs.append(marks(view))
        kinds.append(profile.kinds(view, pa.chunked_array([pa.nulls(len(view), pa.string())])))
        keys += zip(*(table[c].to_pylist() for c in ("id", "source", "lang")), strict=True)
    x, kind = np.concatenate(xs), np.concatenate(kinds)
    half = np.array([hashlib.sha256(str(key[0]).encode()).digest()[0] & 1 for key in keys])
    source, lang = np.array([key[1] for key in keys]), np.array([key[2] for key in keys])
    y = (lang == "code").astype(np.float64)
    weight = np.ones(len(y))
    is_file = np.char.startswith(source, "file:")
    weight[is_file] = (source == "python-stdlib").sum() / max(1, is_file.sum())
    doubtful = np.isin(source, LISTINGS) & (lang == "en")
    keep = half == 0
    for _ in range(ROUNDS):
        b = fit(x[keep], y[keep], weight[keep])
        z = x @ b[:-1] + b[-1]
        keep = (half == 0) & ~(doubtful & (z > 0.5)) & ~((y == 1) & (z < -1))
    for w, value in zip((*profile.PER_CHARACTER, *profile.PER_LINE), b, strict=False):
        print(f"{w.mark:12} fitted {value * 10_000:7.0f}  in use {w.weight:6}")
    print(f"{'bias':12} fitted {b[-1] * 10_000:7.0f}  in use {profile.BIAS:6}")
    held_out = half == 1
    groups = [(lang == which, which) for which in sorted(set(lang))]
    groups += [
        ((lang == one) & (source == two), f"{one} {two}")
        for one, two in sorted(set(zip(lang, source, strict=True)))
    ]
    for group, name in groups:
        chosen = kind[held_out & group]
        if chosen.size:
            shares = "  ".join(f"{KINDS[k]} {np.mean(chosen == k):.4f}" for k in range(3))
            print(f"{name:32} {chosen.size:6}  {shares}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
