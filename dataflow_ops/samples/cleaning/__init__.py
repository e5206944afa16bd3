"""Cleaning samples: every turn normalised, every dialogue judged and compared with those that were kept."""
