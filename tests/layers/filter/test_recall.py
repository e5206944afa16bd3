"""Shares refused on real text that ships with Python, clean and with injected faults."""

import random
from pathlib import Path
from pydoc_data import topics

import pytest

from tests.layers.filter.documents import rules_of

PROSE = [text[:6_000] for _, text in sorted(topics.topics.items()) if len(text) > 1_500]
CODE = [
    path.read_text(encoding="utf-8")[:4_000]
    for path in sorted(Path(random.__file__).parent.glob("*.py"))[:120]
    if path.stat().st_size > 1_500
]
CONTROLS = [chr(code) for code in (1, 2, 4, 7, 8, 14, 16, 27, 127)]


def loop(rng, text):
    return text[: rng.randint(8, 120)] * rng.randint(30, 200)


def half_loop(rng, text):
    middle = len(text) // 2
    return text[:middle] + text[middle : middle + rng.randint(10, 60)] * (len(text) // 60 + 5)


def control(rng, text):
    out = list(text)
    for _ in range(int(len(out) * rng.uniform(0.02, 0.1))):
        out[rng.randrange(len(out))] = rng.choice(CONTROLS)
    return "".join(out)


def punct(rng, text):
    return "".join(rng.choice("#*-=|+/\\_.:~^<>%$&!?") if rng.random() < 0.6 else char for char in text)


def stuffed(rng, text):
    keys = rng.sample(sorted(set(text.split())), 6)
    return " ".join(word for _ in range(250) for word in rng.sample(keys, rng.randint(1, 3)))


def short(rng, text):
    return text[: rng.randint(3, 60)]


def refused(texts, hint):
    return sum(map(bool, rules_of(texts, [hint] * len(texts)))) / len(texts)


@pytest.mark.parametrize(
    ("texts", "hint"), [(PROSE, ""), (CODE, "code"), (CODE, "")], ids=["prose", "code", "no hint"]
)
@pytest.mark.parametrize(
    ("fault", "least"),
    [(loop, 0.99), (half_loop, 0.95), (control, 0.99), (punct, 0.99), (stuffed, 0.90), (short, 0.99)],
)
def test_faults_are_refused(texts, hint, fault, least):
    rng = random.Random(7)
    assert len(texts) > 30
    assert refused([fault(rng, text) for text in texts], hint) >= least


def test_clean_text_is_kept():
    assert refused(PROSE, "") <= 0.06
    assert refused(CODE, "code") <= 0.02
    assert refused(CODE, "") <= 0.02
