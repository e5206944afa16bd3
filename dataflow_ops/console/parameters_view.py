"""A run's settings as a difference from the run before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dataflow_ops.console.place import Place
from dataflow_ops.console.runs import known_run

_ABSENT = object()


def parameters(place: Place, run_id: str) -> dict[str, Any]:
    """Every setting with its value in the run before of the same data set and mode; changed ones first.

    Raises:
        NotThere: no such run.
    """
    row = known_run(place, run_id)
    before = place.state.run_before(row)
    now = dict(flat(json.loads(row.settings)))
    old = dict(flat(json.loads(before.settings))) if before is not None else {}
    rows = [
        {
            "key": key,
            "value": now.get(key),
            "previous": old.get(key),
            "changed": before is not None and now.get(key, _ABSENT) != old.get(key, _ABSENT),
        }
        for key in sorted({*now, *old})
    ]
    rows.sort(key=lambda one: not one["changed"])
    return {"previous": None if before is None else before.run_id, "rows": rows}


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``section.key`` → value. Sources go by their id, so that one more source moves no other."""
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{name}.")
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            for number, one in enumerate(value):
                yield from flat(one, f"{name}.{one.get('source_id') or number}.")
        else:
            yield name, value
