"""h5.py: groups, datasets and attributes by h5py's low-level calls.

A recording has about a hundred tensors per call, with fifteen attributes each. h5py's dictionary of attributes takes
0.1 ms for one attribute, longer than a small model takes to compute the tensor. The functions here take a tenth of
that. Strings have a fixed length, because HDF5 stores strings of variable length in a heap, away from their object.
"""

import os
from functools import lru_cache
from typing import Any, Union

import h5py
import numpy as np
from h5py import h5a, h5d, h5p, h5s, h5t

from .disk import Disk
from .numbers import RecordingError

Fact = Union[str, int, float]
_SCALAR = h5s.create(h5s.SCALAR)
_INT, _FLOAT = h5t.STD_I64LE, h5t.IEEE_F64LE


@lru_cache(maxsize=None)
def text_type(length: int) -> Any:
    """The HDF5 type of a UTF-8 string of the given number of bytes."""
    t = h5t.C_S1.copy()
    t.set_size(max(length, 1))
    t.set_strpad(h5t.STR_NULLPAD)
    t.set_cset(h5t.CSET_UTF8)
    return t


def opened(path: str, of: str = "") -> h5py.File:
    """Open a file for reading. of: the beginning of the error message if that fails."""
    if not os.path.exists(path):
        raise RecordingError(f"{of}{path}: no such file")
    try:
        return h5py.File(path, "r")
    except OSError:
        raise RecordingError(f"{of}{path}: not an HDF5 file, or a damaged one") from None


def put_attribute(where: Any, name: str, value: Fact, new: bool = False) -> None:
    """Write an attribute. where: a low-level object (h5py's `.id`). An existing attribute is replaced; new: none
    exists."""
    key = name.encode()
    if not new and h5a.exists(where, key):
        h5a.delete(where, key)
    if isinstance(value, str):
        raw = value.encode("utf-8", "backslashreplace")
        kind, data = text_type(len(raw)), np.array(raw, dtype=f"S{max(len(raw), 1)}")
    elif isinstance(value, (bool, int, np.integer)):
        kind, data = _INT, np.array(int(value), dtype="<i8")
    else:
        kind, data = _FLOAT, np.array(float(value), dtype="<f8")
    h5a.create(where, key, kind, _SCALAR).write(data, mtype=kind)


_TYPES = {"<f2": h5t.IEEE_F16LE, "<f4": h5t.IEEE_F32LE, "<f8": h5t.IEEE_F64LE, "<u2": h5t.STD_U16LE,
          "|u1": h5t.STD_U8LE,
          "<i4": h5t.STD_I32LE}


def put_array(where: Any, name: str, a: np.ndarray, disk: Disk) -> Any:
    """Write an array of one of the six types as a contiguous dataset; returns its low-level object. A failure leaves
    nothing."""
    key, kind = name.encode(), _TYPES[a.dtype.str]
    how = h5p.create(h5p.DATASET_CREATE)
    how.set_obj_track_times(False)
    d = h5d.create(where, key, kind, h5s.create_simple(a.shape), how)
    try:
        if a.size:
            d.write(h5s.ALL, h5s.ALL, a, mtype=kind)
        disk.check()
    except BaseException:
        where.unlink(key)
        raise
    return d


def create(disk: Disk) -> h5py.File:
    """Create a file. In it, tensors of 16 KiB or more start at a multiple of 4096, so that a reader can map them."""
    return h5py.File(disk, "w", alignment_threshold=16384, alignment_interval=4096)


def text_of(value: Any) -> Any:
    """The value of an attribute in Python: a string of any kind as str, a number as int or float."""
    if isinstance(value, (bytes, np.bytes_)):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.str_) else value
