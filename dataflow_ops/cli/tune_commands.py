"""``tune-dedup``: bands, rows and shingles, measured on the user's own documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dataflow_ops.cli.console import OUT, counted, print_json, print_table, watched
from dataflow_ops.cli.options import DEFAULT_HOME, PANEL_LOOK, HomeOption, JsonOption

_BAR = 30


def tune_dedup(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Job file (YAML).")],
    sample: Annotated[
        int, typer.Option(metavar="N", min=1, help="Documents to draw from what the filter kept.")
    ] = 20_000,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Measure these duplicates, not made copies: CSV, JSON lines or Parquet with id and dup_of.",
        ),
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="Whose documents; the newest finished full run when left out."
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Which bands, rows and shingles find copies of your documents, and at what cost; changes nothing."""
    from dataflow_ops.pipeline.tune import tune

    with watched("tune", quiet=as_json) as progress:
        found = tune(home, job, sample, labels, run_id, progress)
    if as_json:
        print_json(found)
    else:
        _tell(found)


def _tell(found: dict[str, Any]) -> None:
    on = f", {counted(found['pairs'], 'labelled pair')}" if found["pairs"] else ""
    OUT.print(
        "\n".join(
            [f"Run {found['told']}, {counted(found['documents'], 'document')}{on}", *found["notes"], ""]
        ),
        markup=False,
    )
    own = next(row for row in found["settings"] if row["own"])
    names = list(found["curve"][0]["probability"])
    rows = []
    for point in found["curve"]:
        chances = [f"{point['probability'][name]:.3f}" for name in names]
        bar = "█" * round(_BAR * point["probability"][own["name"]])
        rows.append((f"{point['jaccard']:.2f}", *chances, bar))
    print_table("Chance to be compared, by Jaccard similarity", ("", *names, f"job: {own['name']}"), rows)
    OUT.print("")
    kinds = list(own["recall"])
    heads = ("setting", *kinds, "false/doc", "sign µs", "match µs", "verify µs", "all µs")
    rows = [
        (
            row["name"] + (" (job)" if row["own"] else ""),
            *(f"{row['recall'][kind]:.3f}" for kind in kinds),
            f"{row['false_per_document']:.3f}",
            *(f"{row[key]:.0f}" for key in ("sign_us", "match_us", "verify_us", "estimated_us")),
        )
        for row in found["settings"]
    ]
    print_table(f"Found and verified (similarity of {found['min_similarity']:g} or more)", heads, rows)
    whole = found["documents_of_run"]
    OUT.print(
        "\nFalse candidates are those among these documents; a document has more of them in a larger corpus."
        + ("" if found["pairs"] else f" 'all µs' is the most it may cost with the run's {whole:,}.")
        + f"\n{found['recommendation']['sentence']}",
        markup=False,
    )


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command("tune-dedup", rich_help_panel=PANEL_LOOK)(tune_dedup)
