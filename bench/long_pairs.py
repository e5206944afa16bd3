"""Pairs of 500,000 characters around the threshold, verified as dedup does: right answers, and their cost.

    python -m bench.long_pairs [--pairs N] [--exact N]

Texts are this Python's own library, file after file in a seeded order, folded to a key text. Each pair is
a text and its copy with as much changed as a drawn similarity asks for, in runs of 1 to 9 characters, in
passages or in blocks of up to 5,000. The true distance is known without computing it: characters are replaced
by some that occur nowhere in the text; beside that others are left out, or more strange ones added, not both.
With ``s`` replaced and ``d`` left out each of the ``s`` strange ones costs an operation, and the lengths cost
``d`` more: the distance is ``s + d`` (added ones likewise). Of ``--exact`` more pairs words are replaced by
words of the text, as people edit, and the distance is computed in full (rapidfuzz, seconds a pair).

Exit code 1 where an answer is wrong (a pair below the threshold is called a duplicate, one above it is not),
or more than one pair in a hundred takes more than 20 ms of CPU time.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from bench.independent import key_text
from dataflow_ops.kernels.similarity import similarity, warm

LENGTH = 500_000
LEAST = 0.8
LIMIT_S = 0.020
STRANGE = [chr(c) for c in range(0xE000, 0xE400)]
"""Private characters, which no source file holds."""


class Trial(NamedTuple):
    """One pair: its true similarity, the one that was told (0 below the threshold), CPU seconds."""

    true: float
    told: float
    seconds: float

    @property
    def off(self) -> float:
        """How far from the threshold the truth is, where the answer is wrong; else 0."""
        return 0.0 if (self.told >= LEAST) == (self.true >= LEAST) else abs(self.true - LEAST)


def library() -> list[str]:
    """Key texts of the files of this Python's library."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return [key_text(path.read_text("utf-8", "replace")) for path in files]


def base_text(texts: list[str], rng: random.Random) -> str:
    """So many characters, file after file; a file stands in it once."""
    text = "".join(rng.sample(texts, len(texts)))
    if len(text) < LENGTH:
        raise RuntimeError(f"the library of this Python has {len(text):,} characters, {LENGTH:,} are needed")
    return text[:LENGTH]


def changed(text: str, share: float, rng: random.Random) -> tuple[str, str, float]:
    """A text, a copy with about a share of it changed, and their true similarity."""
    run = rng.choice([(1, 9), (1, 9), (20, 200), (500, 5_000)])
    kinds = rng.choice([("replace",), ("replace", "leave out"), ("replace", "add")])
    if kinds[-1] == "add":
        text = text[: int(LENGTH / (1 + 0.6 * share))]
    mean = sum(run) / 2
    gap = mean / share - mean * (kinds[-1] != "add" or 0.5)
    out, at, distance = [], 0, 0
    while at < len(text):
        step = max(1, round(rng.expovariate(1 / gap)))
        out.append(text[at : at + step])
        at += step
        size = min(rng.randint(*run), len(text) - at)
        if size <= 0:
            break
        kind = rng.choice(kinds)
        distance += size
        if kind != "leave out":
            out.append("".join(rng.choices(STRANGE, k=size)))
        if kind != "add":
            at += size
    copy = "".join(out)
    return text, copy, 1.0 - distance / max(len(text), len(copy))


def edited(text: str, share: float, rng: random.Random) -> str:
    """A copy of which a share is replaced by other passages of the text, as long or nearly so."""
    out, at = [], 0
    while at < len(text):
        step = max(1, round(rng.expovariate(share / (5 * (1 - share)))))
        out.append(text[at : at + step])
        size, other = rng.randint(1, 9), rng.randint(1, 9)
        begin = rng.randrange(len(text) - other)
        out.append(text[begin : begin + other])
        at += step + size
    return "".join(out)


def asked(a: str, b: str, true: float) -> Trial:
    """Compare as ``verify`` does, twice: other work on the machine costs one of them its cache."""
    seconds = []
    for _ in range(2):
        began = time.process_time()
        told = similarity(a, b, LEAST)
        seconds.append(time.process_time() - began)
    return Trial(true, told, min(seconds))


def told_of(trials: list[Trial], what: str) -> bool:
    """Print what came of trials; whether all is well."""
    above = [t for t in trials if t.true >= LEAST]
    made_up = [t for t in trials if t.told >= LEAST > t.true]
    missed = [t for t in above if t.told < LEAST]
    times = sorted(t.seconds for t in trials)
    slow = sum(s > LIMIT_S for s in times)
    gaps = [t.true - t.told for t in above if t.told >= LEAST]
    print(
        f"{what}: {len(trials):,} pairs, {len(above):,} of them duplicates, true similarity"
        f" {min(t.true for t in trials):.4f} to {max(t.true for t in trials):.4f}"
    )
    print(
        f"  right {len(trials) - len(made_up) - len(missed):,}; made up {len(made_up)}; missed {len(missed)}"
        + (f", the farthest {max(t.off for t in missed):.4f} above the threshold" if missed else "")
    )
    if gaps:
        print(
            f"  told below the truth by {statistics.mean(gaps):.5f} on average, {max(gaps):.5f} at most;"
            f" told above it {sum(g < -1e-12 for g in gaps)} times"
        )
    print(
        f"  CPU ms a pair, the better of two: median {times[len(times) // 2] * 1e3:.1f}, 99 in 100"
        f" {times[int(len(times) * 0.99)] * 1e3:.1f}, longest {times[-1] * 1e3:.1f}; above 20 ms: {slow}"
    )
    return not made_up and not missed and slow <= len(trials) // 100


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--pairs", type=int, default=1_000)
    ap.add_argument("--exact", type=int, default=20)
    args = ap.parse_args()
    warm()
    texts = library()
    trials = []
    for seed in range(args.pairs):
        rng = random.Random(seed)
        text = base_text(texts, rng)
        text, copy, true = changed(text, rng.uniform(0.12, 0.28), rng)
        pair = (text, copy) if seed % 2 else (copy, text)
        trials.append(asked(*pair, true))
    fine = told_of(trials, "strange characters")
    natural = []
    for seed in range(args.exact):
        rng = random.Random(1_000_000 + seed)
        text = base_text(texts, rng)
        copy = edited(text, rng.uniform(0.11, 0.2), rng)
        natural.append(asked(text, copy, Levenshtein.normalized_similarity(text, copy)))
    fine &= not natural or told_of(natural, "words of the text")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
