"""``dataflow_maintenance``: what nobody needs any more is removed once a day."""

from dataflow_ops.airflow import places
from dataflow_ops.airflow.maintenance_dag import maintenance_dag

maintenance = maintenance_dag(places.home())
