"""DataFlow: turns raw documents into versioned training sets for large language models."""

__version__ = "0.1.0"
