"""needs_transformers.py: for scripts that run transformers: imported first, it ends them, skipped, in a Python without
it."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures"))

try:
    import torch
    import transformers

    import golden
except ModuleNotFoundError as e:  # a name that a release lacks is an error, not a skipped test
    print(f"SKIPPED: no {e.name} in this Python")
    sys.exit(77)
