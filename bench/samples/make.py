"""Dialogues from a seed: ``python -m bench.samples.make FILE --turns 1000000 --seed 1``.

English and Chinese, two to eight turns, some with a system turn, tool calls or metadata; a few lines are no
dialogues, a few hold NUL or lone surrogates.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ENGLISH = (
    "the model answers a question about storage and explains why the second copy is slower than the first"
    " because every block has to be checked again before the reader sees it while the index stays in memory"
).split()
_CHINESE = [
    *"数据平台训练模型需要清洗过滤去重混合导出每一步都要记录来源和原因这样才能回答问题并且保证结果可以重现"
]


def dialogues(turns: int, seed: int) -> Iterator[dict[str, Any]]:
    """Dialogues that have at least so many turns in all."""
    random_ = random.Random(seed)
    made = number = 0
    while made < turns:
        record = _dialogue(random_, number)
        made += len(record["messages"])
        number += 1
        yield record


def _dialogue(random_: random.Random, number: int) -> dict[str, Any]:
    chinese = number % 3 == 0
    messages: list[dict[str, Any]] = []
    if random_.random() < 0.2:
        messages.append({"role": "system", "content": _text(random_, chinese, 12)})
    for _ in range(random_.randint(1, 4)):
        messages.append({"role": "user", "content": _text(random_, chinese, random_.randint(5, 60))})
        answer: dict[str, Any] = {
            "role": "assistant",
            "content": _text(random_, chinese, random_.randint(10, 160)),
        }
        if random_.random() < 0.03:
            call = {"name": "look_up", "arguments": json.dumps({"q": number})}
            answer |= {"content": None, "tool_calls": [{"id": f"c{number}", "function": call}]}
        messages.append(answer)
    return {"id": f"user-{number % 1000}", "messages": messages, "source": f"bench-{number % 7}"}


def _text(random_: random.Random, chinese: bool, words: int) -> str:
    text = ("" if chinese else " ").join(random_.choices(_CHINESE if chinese else _ENGLISH, k=words))
    return text if random_.random() > 0.001 else text + random_.choice(["\0", "\udcff"])


def write(path: Path, turns: int, seed: int) -> tuple[int, int]:
    """Write a JSON Lines file; the numbers of turns and of lines that are no dialogues."""
    random_ = random.Random(seed + 1)
    made = bad = 0
    with path.open("w", encoding="ascii") as file:
        for record in dialogues(turns, seed):
            made += len(record["messages"])
            file.write(json.dumps(record) + "\n")
            if random_.random() < 0.0005:
                bad += 1
                file.write(
                    random_.choice(['{"messages": [', '{"messages": []}', '{"text": "no turns"}']) + "\n"
                )
    return made, bad


def main() -> None:
    """Write one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    made, bad = write(given.file, given.turns, given.seed)
    print(f"{made:,} turns, {bad:,} lines that are no dialogues, {given.file.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
