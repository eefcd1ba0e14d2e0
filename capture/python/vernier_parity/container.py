"""container.py: an HDF5 file that appears whole: groups, arrays, attributes. Until it is complete its name is
PATH.partial."""

import os
from types import TracebackType
from typing import Any, Mapping, Optional, Type

import h5py
import numpy as np

from . import h5
from .disk import Disk, make_room
from .node_recorder import text
from .numbers import RecordingError, digest


def refuse_taken(path: str, force: bool) -> None:
    """Raise RecordingError if a file that is written later would replace one that may not be replaced."""
    if os.path.exists(path) and not force:
        raise RecordingError(f"{path}: exists already; force=True (--force) replaces it")
    if os.path.exists(path) and not (os.path.isfile(path) and h5py.is_hdf5(path)):
        raise RecordingError(f"{path}: is no HDF5 file; it stays: remove it, or give another name")


class Container:
    """Writes such a file; use it in a `with` block. An exception leaves PATH.partial with complete = 0."""

    def __init__(self, path: str, facts: Mapping[str, h5.Fact], force: bool = False) -> None:
        """facts: attributes of the root; `format` among them. force: replace an existing HDF5 file. Raises
        RecordingError: the file exists, or cannot be written."""
        self.path, self.force = os.fspath(path), force
        refuse_taken(self.path, force)
        try:
            make_room(self.path + ".partial", h5.is_interrupted)
            self.disk = Disk(self.path + ".partial")
        except OSError as e:
            raise RecordingError(f"{self.path}: cannot write: {e.args[-1]}") from None
        self.file = h5.create(self.disk)
        for name, value in {**facts, "complete": 0}.items():
            h5.put_attribute(self.file.id, name, value, new=True)

    def group(self, where: Any, name: str, facts: Mapping[str, h5.Fact] = {}) -> Any:
        made = h5py.Group(h5.put_group(where.id, name, 40))
        for key, value in facts.items():
            h5.put_attribute(made.id, key, value, new=True)
        return made

    def array(self, where: Any, name: str, a: np.ndarray) -> None:
        try:
            h5.put_array(where.id, name, a, self.disk)
            said = digest(np.ascontiguousarray(a).reshape(-1).view(np.uint8))
            if said is not None:
                h5.put_attribute(where[name].id, "digest", said, new=True)
        except OSError as e:
            raise RecordingError(f"{self.path}: cannot write: {e}") from None

    def lines(self, where: Any, name: str, lines: Any) -> None:
        """A dataset of texts."""
        where.create_dataset(name, data=np.array(list(lines), dtype=object), dtype=text(), shape=(len(lines),),
                                 track_times=False)

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
