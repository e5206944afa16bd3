"""Quality of survivors."""
