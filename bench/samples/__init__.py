"""Measurements of the flow of fine-tuning samples."""
