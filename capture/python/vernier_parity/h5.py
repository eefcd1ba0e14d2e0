"""h5.py: groups, datasets and attributes by h5py's low-level calls.

A recording has about a hundred tensors per call, with fifteen attributes each. h5py's dictionary of attributes takes
0.1 ms for one attribute, longer than a small model takes to compute the tensor. The functions here take a tenth of
that. Strings have a fixed length, because HDF5 stores strings of variable length in a heap, away from their object.
"""

import contextlib
import ctypes
import os
from functools import lru_cache
from typing import Any, Iterator, Optional, Sequence, Tuple, Union

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5fd, h5g, h5p, h5s, h5t

from .disk import Disk, make_room
from .numbers import RecordingError, digest_of

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


def _read(path: str) -> h5py.File:
    """Open a file to read it, also one that is being written: the recorder keeps it readable, and holds HDF5's lock."""
    return h5py.File(path, "r", **({"locking": False} if h5py.version.version_tuple >= (3, 5) else {}))


def opened(path: str, of: str = "") -> h5py.File:
    """Open a file for reading. of: the beginning of the error message if that fails."""
    if not os.path.exists(path):
        raise RecordingError(f"{of}{path}: no such file")
    if not os.path.isfile(path):  # a pipe that nobody writes to would be waited for
        raise RecordingError(f"{of}{path}: is not a regular file")
    try:
        return _read(path)
    except OSError:
        raise RecordingError(f"{of}{path}: not an HDF5 file, or a damaged one") from None


def put_attribute(where: Any, name: str, value: Fact, new: bool = False, room: int = 1) -> None:
    """Write an attribute. where: a low-level object (h5py's `.id`). An existing attribute is replaced, in its place if
    it has one of the same type or the room; new: none exists. room: bytes that a later text may have."""
    key = name.encode()
    if isinstance(value, str):
        raw = value.encode("utf-8", "backslashreplace")
        size = max(len(raw), room)
        kind, data = text_type(size), np.array(raw, dtype=f"S{size}")
    elif isinstance(value, (bool, int, np.integer)):
        kind, data = _INT, np.array(int(value), dtype="<i8")
    else:
        kind, data = _FLOAT, np.array(float(value), dtype="<f8")
    if not new and h5a.exists(where, key):
        a = h5a.open(where, key)
        old = a.get_type()
        if isinstance(old, h5t.TypeStringID) and kind.get_size() <= old.get_size() and isinstance(value, str):
            kind, data = text_type(old.get_size()), data.astype(f"S{old.get_size()}")
        if old == kind:
            a.write(data, mtype=kind)
            return
        h5a.delete(where, key)
    h5a.create(where, key, kind, _SCALAR).write(data, mtype=kind)


_TYPES = {"<f2": h5t.IEEE_F16LE, "<f4": h5t.IEEE_F32LE, "<f8": h5t.IEEE_F64LE, "<u2": h5t.STD_U16LE,
          "|u1": h5t.STD_U8LE,
          "<i4": h5t.STD_I32LE}


def put_lines(where: h5py.Group, name: str, lines: Sequence[str]) -> Any:
    """Write a list of texts."""
    return where.create_dataset(name, data=np.array(list(lines), dtype=object), dtype=h5py.string_dtype(),
                                shape=(len(lines),), track_times=False)


def put_digest(d: Any, a: np.ndarray) -> None:
    """Write the digest of an array to its dataset; without xxhash nothing."""
    said = digest_of(a)
    if said is not None:
        put_attribute(d, "digest", said, new=True)


def put_array(where: Any, name: str, a: np.ndarray, disk: Disk) -> Any:
    """Write an array of one of the six types as a contiguous dataset; returns its low-level object. A failure leaves
    nothing."""
    key, kind = name.encode(), _TYPES[a.dtype.str]
    how = h5p.create(h5p.DATASET_CREATE)
    how.set_obj_track_times(False)
    how.set_attr_phase_change(64, 0)
    how.set_alloc_time(h5d.ALLOC_TIME_EARLY)  # numbers may be changed later, in their place
    how.set_fill_time(h5d.FILL_TIME_NEVER)
    d = h5d.create(where, key, kind, h5s.create_simple(a.shape), how)
    try:
        if a.size:
            d.write(h5s.ALL, h5s.ALL, a, mtype=kind)
        disk.check()
    except BaseException:
        where.unlink(key)
        raise
    return d


def _in_header(properties: Any, links: int) -> Any:
    """Make a group keep its links and attributes in its header, where adding one is a single write (disk.py). An index
    takes several. links: how many are expected. h5py does not have these two functions of HDF5; where they cannot be
    found (Windows), groups of more than 8 links have an index."""
    properties.set_obj_track_times(False)
    properties.set_attr_phase_change(64, 0)
    try:
        library, this = ctypes.CDLL(h5p.__file__), ctypes.c_int64(properties.id)
        library.H5Pset_link_phase_change(this, ctypes.c_uint(65535), ctypes.c_uint(0))
        library.H5Pset_est_link_info(this, ctypes.c_uint(links), ctypes.c_uint(16))
    except (OSError, AttributeError):
        pass
    return properties


@lru_cache(maxsize=None)
def _group_properties(links: int) -> Any:
    return _in_header(h5p.create(h5p.GROUP_CREATE), links)


def put_group(where: Any, name: str, links: int = 16) -> Any:
    """Create a group; returns its low-level object."""
    return h5g.create(where, name.encode(), gcpl=_group_properties(links))


def group(where: h5py.Group, name: str, links: int = 40, **facts: Fact) -> h5py.Group:
    """Create a group with these attributes."""
    made = put_group(where.id, name, links)
    for key, value in facts.items():
        put_attribute(made, key, value, new=True)
    return h5py.Group(made)


def put_growing(where: Any, name: str, rows: Sequence[int]) -> Any:
    """Create a dataset of 32-bit numbers with an empty last axis that can be made longer in its place."""
    how = h5p.create(h5p.DATASET_CREATE)
    how.set_obj_track_times(False)
    how.set_attr_phase_change(64, 0)
    how.set_chunk((*rows, max(16, 1024 // int(np.prod(rows)))))
    return h5d.create(where, name.encode(), h5t.STD_I32LE, h5s.create_simple((*rows, 0), (*rows, h5s.UNLIMITED)), how)


def put_spacer(where: Any) -> Any:
    """Create a dataset without a name, which takes the end of the file while it is open."""
    how = h5p.create(h5p.DATASET_CREATE)
    how.set_obj_track_times(False)
    how.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    return h5d.create(where, None, h5t.STD_U8LE, h5s.create_simple((1,)), how)


def is_replaceable(path: str) -> bool:
    """True if the file is empty or HDF5. (Other files are not replaced: the path may name a model by mistake.)"""
    with open(path, "rb") as f:
        return f.read(8) in (b"", b"\x89HDF\r\n\x1a\n")


def refuse_taken(path: str, force: bool) -> None:
    """Raise RecordingError if no recording can get this name. (A rename would replace a device file, too.)"""
    there = os.path.exists(path)
    wrong = ("the name of the file is empty" if not path else
             "is a directory" if os.path.isdir(path) else
             "its directory does not exist" if not os.path.isdir(os.path.dirname(path) or ".") else
             "is not a regular file" if there and not os.path.isfile(path) else
             "exists already; force=True (--force) replaces it" if there and not force else
             "is not a recording; force=True replaces only recordings; remove the file first, or give another name"
             if there and not is_replaceable(path) else None)
    if wrong:
        raise RecordingError(f"{path}: {wrong}")


def begun(partial: str) -> Tuple[Disk, h5py.File]:
    """Begin a file under this name; what an interrupted recording left there is removed. Raises OSError."""
    make_room(partial, why_kept)
    disk = Disk(partial)
    return disk, create(disk)


@contextlib.contextmanager
def written(path: str, force: bool, **facts: Fact) -> Iterator[Tuple[h5py.File, Disk]]:
    """A file that appears whole: until the block ends without an exception its name is PATH.partial. facts: attributes
    of the root. Raises RecordingError: no file can get this name, or it cannot be written."""
    refuse_taken(path, force)
    good = False
    try:
        disk, file = begun(path + ".partial")
        try:
            for name, value in {**facts, "complete": 0}.items():
                put_attribute(file.id, name, value, new=True)
            yield file, disk
            put_attribute(file.id, "complete", 1)
            good = True
        finally:
            file.close()
            disk.end(path if good else None, force)
    except OSError as e:
        raise RecordingError(f"{path}: cannot write: {e.args[-1]}") from None


def create(disk: Disk) -> h5py.File:
    """Create a file. In it, tensors of 16 KiB or more start at a multiple of 4096, so that a reader can map them."""
    access, creation = h5p.create(h5p.FILE_ACCESS), _in_header(h5p.create(h5p.FILE_CREATE), 16)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    access.set_alignment(16384, 4096)
    # format 1.8: a later one marks a file that was not closed, and then it does not open
    access.set_libver_bounds(h5f.LIBVER_V18, h5f.LIBVER_V18)
    access.set_fileobj_driver(h5fd.fileobj_driver, disk)
    return h5py.File(h5f.create(repr(disk).encode("ascii", "replace"), h5f.ACC_TRUNC, fcpl=creation, fapl=access))


BEGUN = b"vernier begins a recording here\n"  # of a file in which an older version has not written HDF5 yet


def why_kept(path: str) -> Optional[str]:
    """None if the file is a recording that was interrupted, or only begun; else what it is."""
    complete = None
    with contextlib.suppress(OSError, RuntimeError, KeyError, ValueError):
        with open(path, "rb") as begun:
            if begun.read(len(BEGUN)) == BEGUN:
                return None
        with _read(path) as f:
            if text_of(f.attrs.get("format", "")) in ("vernier-checkpoint", "vernier-replayed"):
                complete = text_of(f.attrs.get("complete", 1))
    return (None if complete == 0 else "exists, and is not a recording that was interrupted" if complete is None else
            "is a recording that is marked as complete")


def text_of(value: Any) -> Any:
    """The value of an attribute in Python: a string of any kind as str, a number as int or float."""
    if isinstance(value, (bytes, np.bytes_)):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.str_) else value
