"""The benchmark corpus, made from public packages: see ``python -m bench.corpus --help``."""
