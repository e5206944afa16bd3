"""The only wiring: which steps exist and in which order they run."""
