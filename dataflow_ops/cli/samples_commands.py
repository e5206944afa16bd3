"""``dataflow samples``: fine-tuning samples."""

from __future__ import annotations

import typer

from dataflow_ops.cli import (
    samples_augment,
    samples_change,
    samples_control,
    samples_import,
    samples_links,
    samples_look,
    samples_tasks,
)

app = typer.Typer(no_args_is_help=True, help="Fine-tuning samples: dialogues as rows of the database.")
samples_import.register(app)
samples_look.register(app)
samples_change.register(app)
samples_tasks.register(app)
samples_links.register(app)
samples_augment.register(app)
samples_control.register(app)
