"""The state of fine-tuning samples: files, rows, tasks, changes, uploads. One module for each matter."""
