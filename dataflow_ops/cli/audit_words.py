"""What people say of removed documents, from the command line."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dataflow_ops.cli.console import OUT, print_json
from dataflow_ops.console.place import Place, open_place
from dataflow_ops.console.reviews import review_found, said_of
from dataflow_ops.pipeline.session import latest_run


def give_verdicts(
    home: Path,
    run_id: str | None,
    dataset: str | None,
    keep: Sequence[str],
    drop: Sequence[str],
    as_json: bool,
) -> None:
    """Record verdicts, the user of this machine being the one who says so."""
    given = []
    with _opened(home) as place:
        run_id = run_id or latest_run(place.state, dataset)
        for verdict, documents in (("keep", keep), ("drop", drop)):
            for document in documents:
                one = review_found(place, run_id, document, verdict, getpass.getuser())
                given.append({"doc_id": one.doc_id, "rule": one.rule, "verdict": one.verdict})
    if as_json:
        print_json(given)
        return
    for row in given:
        rightly = "wrongly" if row["verdict"] == "keep" else "rightly"
        OUT.print(f"{row['doc_id'][:12]}: {rightly} removed by '{row['rule']}'.", markup=False)


def verdicts_of(home: Path, run_id: str | None, dataset: str | None) -> dict[tuple[str, str], dict[str, str]]:
    """``(document, rule)`` → ``{"verdict", "who", "note"}``."""
    with _opened(home) as place:
        said = said_of(place, run_id or latest_run(place.state, dataset))
    return {key: {"verdict": one.verdict, "who": one.who, "note": one.note} for key, one in said.items()}


@contextmanager
def _opened(home: Path) -> Iterator[Place]:
    place = open_place(home)
    try:
        yield place
    finally:
        place.close()
