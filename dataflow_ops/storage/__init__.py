"""Durable bytes: blob stores, the chunk store on top of them, and staging for resume."""
