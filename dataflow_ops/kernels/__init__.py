"""Plain functions on Arrow buffers and numpy arrays: no I/O."""
