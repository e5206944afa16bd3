"""Alembic environment of the state database."""
