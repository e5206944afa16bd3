"""Two DAGs of every job file: ``<dataset>__full`` and ``<dataset>__incremental``."""

from dataflow_ops.airflow import places
from dataflow_ops.airflow.catalog import corpora, wanted

globals().update(
    corpora(places.jobs(), places.home(), cores=places.cores(), retries=places.retries(), only=wanted()),
)
