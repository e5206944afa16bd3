"""Samples on their way out: records of dialogues and of what models answered, in shards with a manifest."""
