"""Selected rows to shards."""
