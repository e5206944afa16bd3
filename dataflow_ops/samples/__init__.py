"""Fine-tuning samples: dialogues as rows of a table, imported, cleaned, augmented and exported."""
