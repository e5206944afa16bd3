"""Sources to chunks to fetched files."""
