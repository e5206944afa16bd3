"""Augmenting samples by a language model: templates, requests, calls, results, failures."""
