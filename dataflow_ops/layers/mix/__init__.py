"""Labels and the sampling plan."""
