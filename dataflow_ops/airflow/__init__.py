"""Airflow as a caller of the same runner; the only place that imports it."""
