"""Exact and near duplicates, each removal verified."""
