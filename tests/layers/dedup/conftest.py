import sys
from pathlib import Path

# The driver is shared with bench/dedup_recall.py and is no test itself.
sys.path.insert(0, str(Path(__file__).parent))
