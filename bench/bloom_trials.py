"""Ten million keys are asked of Bloom filters: none that was added may be denied.

``python -m bench.bloom_trials``
"""

from __future__ import annotations

import sys

import numpy as np

from dataflow_ops.kernels.bloom import Bloom

TRIALS = 10_000_000
SLICES = 16


def main() -> int:
    """Fill sliced filters as the index does, ask every key and as many strangers, and print what came."""
    keys = np.unique(np.random.default_rng(1).integers(0, 2**64, 2 * TRIALS + 1000, np.uint64))
    np.random.default_rng(2).shuffle(keys)
    added, strangers = keys[:TRIALS], keys[TRIALS : 2 * TRIALS]
    lost = false = size = 0
    for prefix in range(SLICES):
        mine = added[(added >> np.uint64(60)).astype(np.int64) == prefix]
        other = strangers[(strangers >> np.uint64(60)).astype(np.int64) == prefix]
        made = Bloom.sized(len(mine))
        made.add(mine)
        lost += int((~made.may_contain(mine)).sum())
        false += int(made.may_contain(other).sum())
        size += made.words.nbytes
    print(f"{TRIALS:,} keys in {SLICES} filters of {size:,} bytes in all: {8 * size / TRIALS:.2f} bits a key")
    print(f"lost {lost}; false positives {false / TRIALS:.3%}")
    return 1 if lost or false / TRIALS > 0.011 else 0


if __name__ == "__main__":
    sys.exit(main())
