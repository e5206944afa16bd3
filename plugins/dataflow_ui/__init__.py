"""DataFlow inside Airflow's UI: a tab on every run and a page in the navigation."""
