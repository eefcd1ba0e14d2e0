"""container.py: an HDF5 file that appears whole: groups, arrays, attributes. Until it is complete its name is
PATH.partial."""

import os
from types import TracebackType
from typing import Any, Mapping, Optional, Type

import h5py
import numpy as np

from . import h5
from .numbers import RecordingError


class Container:
    """Writes such a file; use it in a `with` block. An exception leaves PATH.partial with complete = 0."""

    def __init__(self, path: str, facts: Mapping[str, h5.Fact], force: bool = False) -> None:
        """facts: attributes of the root; `format` among them. force: replace an existing HDF5 file. Raises
        RecordingError: the file exists, or cannot be written."""
        self.path, self.force = os.fspath(path), force
        h5.refuse_taken(self.path, force)
        try:
            self.disk, self.file = h5.begun(self.path + ".partial")
        except OSError as e:
            raise RecordingError(f"{self.path}: cannot write: {e.args[-1]}") from None
        for name, value in {**facts, "complete": 0}.items():
            h5.put_attribute(self.file.id, name, value, new=True)

    def group(self, where: Any, name: str, facts: Mapping[str, h5.Fact] = {}) -> Any:
        made = h5py.Group(h5.put_group(where.id, name, 40))
        for key, value in facts.items():
            h5.put_attribute(made.id, key, value, new=True)
        return made

    def array(self, where: Any, name: str, a: np.ndarray) -> None:
        try:
            h5.put_digest(h5.put_array(where.id, name, a, self.disk), a)
        except OSError as e:
            raise RecordingError(f"{self.path}: cannot write: {e}") from None

    def __enter__(self) -> "Container":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            if kind is None:
                h5.put_attribute(self.file.id, "complete", 1)
            self.file.close()
            self.disk.end(self.path if kind is None else None, self.force)
        except OSError as e:
            if kind is None:
                raise RecordingError(f"{self.path}: cannot write: {e}") from None
