"""Bytes to text."""
