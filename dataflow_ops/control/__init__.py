"""Flags that people set while a run is under way."""
