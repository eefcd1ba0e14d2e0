#!/usr/bin/env python3
"""with_release.py oldest|newest SCRIPT...: runs a test in this Python with that release of transformers, which
transformers.sh has installed beside the pinned one. 77, skipped, where it was not installed."""
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
    script = "import transformers as t, sys; sys.exit(not t.__file__.startswith(sys.argv[1]))"
    environment = {**os.environ, "PYTHONPATH": packages}
    if os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", script, packages], environment):
        sys.exit(f"another transformers is imported than that of {packages}")
    os.execve(sys.executable, [sys.executable, *sys.argv[2:]], environment)


if __name__ == "__main__":
    main()
