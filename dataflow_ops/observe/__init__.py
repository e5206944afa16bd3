"""What a run tells: metrics, lineage, audits, reports."""
