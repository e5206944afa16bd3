"""A dialogue and what models answered about it, as the dialogues that come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dataflow_ops.errors import StateError


class LeftOut(ValueError):
    """What does not go out; the message is the reason, one of few."""


class Answer(NamedTuple):
    """A result of an augmentation.

    Attributes:
        task_id: the augmentation.
        turn_taking: of the turn that was asked about.
        draw: which of several answers to the same request, from 1.
        prompt: name of the template.
        model: that answered.
        text: the answer.
        result: what becomes of it: ``next_turn``, ``replacement``, ``question`` or ``score``.
        score: of a scoring; else None.
    """

    task_id: str
    turn_taking: int
    draw: int
    prompt: str
    model: str
    text: str
    result: str
    score: float | None = None


OURS: Final = ("scores", "generated")
"""Keys that this module writes; a record's own of that name gets ``record_`` before it."""


@dataclass(frozen=True, slots=True)
class Record:
    """One dialogue that goes out.

    Attributes:
        id: file, record, and for what a model wrote the augmentation, turn and draw: unique in an export.
        turns: ``role``, ``content`` and further keys, in order.
        more: keys of the record beside its turns.
    """

    id: str
    turns: Sequence[Mapping[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict)


def records_of(
    place: tuple[str, int],
    turns: Sequence[Mapping[str, Any]],
    numbers: Sequence[int],
    more: Mapping[str, Any],
    answers: Sequence[Answer],
    *,
    originals: bool,
    min_score: float | None,
) -> Iterator[Record]:
    """All that comes of one dialogue.

    Args:
        place: file and ``row_identifier``.
        turns: of the dialogue, in order.
        numbers: ``turn_taking`` of each.
        more: further keys of the record.
        answers: about this dialogue.
        originals: the dialogue itself as well.
        min_score: nothing of a dialogue with a lower score.

    Raises:
        LeftOut: nothing comes of it.
        StateError: an answer is about a turn that the dialogue does not have.
    """
    scores = _scores(answers)
    if min_score is not None and any(value < min_score for value in scores.values()):
        raise LeftOut("a score below the least")
    if not originals and not any(answer.result != "score" for answer in answers):
        raise LeftOut("no answer of a model")
    name = f"{place[0]}:{place[1]}"
    more = {f"record_{key}" if key in OURS else key: value for key, value in more.items()}
    more |= {"scores": scores} if scores else {}
    if originals:
        yield Record(name, turns, more)
    at = {number: i for i, number in enumerate(numbers)}
    replaced: dict[tuple[str, int], dict[int, Answer]] = {}
    for answer in sorted(answers):
        if answer.turn_taking not in at:
            raise StateError(
                f"task {answer.task_id} has an answer about turn {answer.turn_taking} of dialogue {place[1]}"
                f" of file {place[0]}, which has no such turn"
            )
        i = at[answer.turn_taking]
        made = f"{name}#{answer.task_id}:{answer.turn_taking}:{answer.draw}"
        by = {**more, "generated": {"task": answer.task_id, "prompt": answer.prompt, "model": answer.model}}
        if answer.result == "next_turn":
            yield Record(made, [*turns[: i + 1], {"role": "assistant", "content": answer.text}], by)
        elif answer.result == "question":
            asked = {"role": "user", "content": answer.text}
            yield Record(made, [asked, {"role": "assistant", "content": turns[i]["content"]}], by)
        elif answer.result == "replacement":
            replaced.setdefault((answer.task_id, answer.draw), {})[i] = answer
    for (task_id, draw), by_turn in sorted(replaced.items()):
        some = next(iter(by_turn.values()))
        told = [
            {**turn, "content": by_turn[i].text} if i in by_turn else turn for i, turn in enumerate(turns)
        ]
        by = {**more, "generated": {"task": task_id, "prompt": some.prompt, "model": some.model}}
        yield Record(f"{name}#{task_id}:{draw}", told, by)


def _scores(answers: Sequence[Answer]) -> dict[str, float]:
    """Template → the mean of its scores of the dialogue."""
    found: dict[str, list[float]] = {}
    for answer in answers:
        if answer.result == "score" and answer.score is not None:
            found.setdefault(answer.prompt, []).append(answer.score)
    return {name: sum(values) / len(values) for name, values in sorted(found.items())}
