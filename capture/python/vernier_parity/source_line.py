"""source_line.py: the line of a program at which a checkpoint is recorded, for reports: "model.py:123"."""

import functools
import os
import sys
from typing import Any, Optional

LONGEST = 127  # bytes
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Functions of torch between a hook and the line of the model that called the module.
BETWEEN = (os.path.join("transformers", "modeling_layers.py"), os.path.join("accelerate", "hooks.py"))


def _is_between(path: str) -> bool:
    torch: Any = sys.modules.get("torch")
    machinery = torch is not None and path.startswith(os.path.dirname(torch.__file__) + os.sep)
    return machinery or path.startswith(OWN) or path.endswith(BETWEEN) or path == functools.__file__


@functools.lru_cache(maxsize=None)
def _shown(file: str, folder: str) -> Optional[str]:
    """The path as reports show it: from the name of an installed package on, or relative to the working folder.
    None if this file is not part of the program."""
    if file.startswith("<"):
        return None
    path = os.path.abspath(file)
    if _is_between(path):
        return None
    for packages in ("site-packages", "dist-packages"):
        _, found, inside = path.rpartition(os.sep + packages + os.sep)
        if found:
            return inside
    return os.path.relpath(path, folder) if path.startswith(os.path.join(folder, "")) else path


def source_line(folder: str, level: int = 1) -> Optional[str]:
    """The nearest line on the stack outside this package and torch; level 2: the next such line,
    and so on. folder: the working folder."""
    frame: Any = sys._getframe(1)
    line = None
    while frame is not None and level > 0:
        file = _shown(frame.f_code.co_filename, folder)
        if file is not None:
            line, level = f"{file}:{frame.f_lineno}", level - 1
        frame = frame.f_back
    return fitting(line) if line else None


def fitting(line: str) -> Optional[str]:
    """The line, or its end if it is too long for a file."""
    if not line.isprintable():
        return None
    return line if len(line.encode()) <= LONGEST else line.encode()[-LONGEST:].decode("utf-8", "ignore")
