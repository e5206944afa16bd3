"""Gates L1 and L2: statistics, verdicts, rejects."""
