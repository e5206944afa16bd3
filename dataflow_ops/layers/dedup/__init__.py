"""Dedup: which documents say the same as another, and which of them stays.

One module per step, in the order of the flow: :mod:`sign` · :mod:`exact` · :mod:`match` · :mod:`gather` ·
:mod:`verify` · :mod:`unite` · :mod:`collect` · :mod:`confirm`. Nothing is imported here, so that naming the
layer costs nothing.
"""
