"""No DAG: where a job file is broken, Airflow shows this file's import error, which names it."""

from dataflow_ops.airflow import places
from dataflow_ops.airflow.catalog import tell_broken

tell_broken(places.jobs())
