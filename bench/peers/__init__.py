"""The product against other tools on the same documents: see ``python -m bench.peers --help``."""
