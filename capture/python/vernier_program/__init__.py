"""vernier, vernier-parity: the commands that pip installs; they become the program.

vernier_parity itself is not imported, since that takes longer than most of the program's commands.
"""
import importlib.util
import os
import sys
from typing import Optional

_TRIED = "VERNIER_TRIED"  # scripts that this command became, which may only start it again (shims of pyenv, asdf)


def _is_program(path: str) -> bool:
    """Whether the file can be run, and is not the script by which pip starts this module."""
    if not os.path.isfile(path) or not os.access(path, os.R_OK | os.X_OK):
        return False
    with open(path, "rb") as f:
        return __name__.encode() not in f.read(4096)


def _is_script(path: str) -> bool:
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


def find() -> Optional[str]:
    """The path of the program: that of the wheel, or the first on the PATH; None: there is none."""
    package = importlib.util.find_spec("vernier_parity")
    places = [os.path.join(p, "program", "bin") for p in package and package.submodule_search_locations or []]
    for place in places + os.get_exec_path():
        path = os.path.join(place, "vernier")
        if path not in os.environ.get(_TRIED, "").split(os.pathsep) and _is_program(path):
            return path
    return None


def main() -> int:
    program = find()
    if program:
        tried = os.environ.pop(_TRIED, None)
        if _is_script(program):
            os.environ[_TRIED] = os.pathsep.join([*([tried] if tried else []), program])
        os.execv(program, [program, *sys.argv[1:]])
    print("vernier: only the recorder for Python is installed here (python -m vernier_parity), not the program: wheels "
          "with both are for Linux on x86-64 (glibc 2.31 or newer) and aarch64 (2.35). Elsewhere, build the program "
          "(README.md: Install); on the PATH, this command finds it.", file=sys.stderr)
    return 2
