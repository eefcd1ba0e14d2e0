#!/usr/bin/env python3
"""vernier, vernier-parity: the commands that a wheel installs; they become the program inside the package.

The package itself is not imported, since that takes longer than most of the program's commands.
"""
import importlib.util
import os
import sys

package = importlib.util.find_spec("vernier_parity").submodule_search_locations[0]
program = os.path.join(package, "program", "bin", "vernier")
os.execv(program, [program, *sys.argv[1:]])
