"""Access to models and tokenizers."""
