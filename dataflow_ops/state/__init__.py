"""What is done, by whom and how often: the database behind runs and tasks."""
