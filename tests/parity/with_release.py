#!/usr/bin/env python3
"""with_release.py oldest|newest SCRIPT...: runs a test in this Python with that release of transformers, which
transformers.sh has installed beside the pinned one. 77, skipped, where it was not installed."""
import importlib.util
import os
import sys


def main():
    name = sys.argv[1]
    folder = os.path.join(sys.prefix, "releases", name)
    try:
        with open(os.path.join(folder, "installed"), encoding="utf-8") as f:
            print(f"{name}: {f.read().strip()}", flush=True)
    except FileNotFoundError:
        print(f"SKIPPED: the {name} release of transformers is not in {folder} (tests/parity/transformers.sh)")
        sys.exit(77)
    packages = os.path.join(folder, "site-packages")
    sys.path.insert(0, packages)
    if not importlib.util.find_spec("transformers").origin.startswith(packages):
        sys.exit(f"another transformers is imported than that of {packages}")
    environment = {**os.environ, "PYTHONPATH": packages, "VERNIER_RELEASE": packages}
    os.execve(sys.executable, [sys.executable, *sys.argv[2:]], environment)


if __name__ == "__main__":
    main()
