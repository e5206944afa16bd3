"""Runs one task: claim, batches, publish, commit."""
