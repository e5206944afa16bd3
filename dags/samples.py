"""``samples``: dialogues are imported, cleaned, augmented by a model and exported, as the form says."""

from dataflow_ops.airflow import places
from dataflow_ops.airflow.samples_dag import samples_dag

samples = samples_dag(places.home(), places.templates(), retries=places.retries())
