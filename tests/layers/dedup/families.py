"""Texts that are copies of each other, more or less."""

from __future__ import annotations

import random

VOCABULARY = (
    "reservoir keeper gauge winter notebook colour level river stone hexagon basalt lava field northern cliff"
    " morning predecessor village school"
).split()
ZH = (
    "水库的管理员每天清晨沿着堤坝走一圈把水位风向和天色记在一本绿色的本子上"
    "前任就是这样做的也没有人告诉他可以不做"
)


def family(seed: int, sizes: list[int]) -> list[str]:
    """Texts in families: each member is an edited copy of an earlier one, by 0 to 25 % of its words."""
    rng = random.Random(seed)
    texts = []
    for size in sizes:
        chinese = rng.random() < 0.4
        unit = list(ZH) if chinese else VOCABULARY
        members = [
            [
                rng.choice(unit) + ("" if chinese else str(rng.randrange(30)))
                for _ in range(rng.randrange(40, 160))
            ]
        ]
        while len(members) < size:
            words = list(rng.choice(members))
            share = rng.choice([0, 0.02, 0.05, 0.1, 0.25])
            if rng.random() < 0.5:
                at, n = rng.randrange(len(words)), int(len(words) * share)
                words[at : at + n] = [rng.choice(unit) for _ in range(rng.randrange(n + 1))]
            else:
                words = [rng.choice(unit) if rng.random() < share else w for w in words]
            members.append(words)
        joint = "" if chinese else " "
        texts += [rng.choice(["", "  ", "\n"]) + joint.join(m) for m in members]
    rng.shuffle(texts)
    return texts
