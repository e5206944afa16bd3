"""The demo corpus: standard library, installed documentation and the pages of tests/cases."""

import os
from pathlib import Path

from dataflow_ops.airflow.dag_factory import corpus_dag

HERE = Path(__file__).resolve().parent.parent

demo = corpus_dag(
    HERE / "jobs" / "demo.yaml",
    home=Path(os.environ.get("DATAFLOW_HOME", HERE / ".dataflow")),
    cores=os.cpu_count() or 1,
    retries=0,  # in Airflow's own process a retry would only keep a person waiting for the message
)
