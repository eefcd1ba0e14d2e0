"""edit.py: changes a copy of a recording in ways that no engine would.

Objects are paths in the file: "/step.0/layer3/q_rope".
"""

from types import TracebackType
from typing import Any, Optional, Sequence, Type, Union

import h5py
import numpy as np
from h5py import h5a, h5d, h5o, h5p, h5s, h5t

from ..h5 import put_attribute
from ..numbers import SAID, digest, statistics, values


class CannotEdit(Exception):
    """The file lacks what an edit changes. One line."""


def stored_as(x: np.ndarray, word: str) -> np.ndarray:
    """float64 numbers in a format of 16 to 64 bits, each rounded once."""
    if word != "bf16":
        with np.errstate(over="ignore"):
            return np.asarray(x, {"f16": "<f2", "f32": "<f4", "f64": "<f8"}[word])
    # To odd in float32: the last bit says that more follows, so that the second rounding is right.
    with np.errstate(over="ignore"):
        y = x.astype("<f4")
    y = np.where(np.abs(y) > np.abs(x), np.nextafter(y, np.float32(0)), y).astype("<f4")
    bits = y.view("<u4")
    bits = bits | ((y.astype(np.float64) != x) & ~np.isnan(x)).astype("<u4")
    rounded = ((bits.astype("<u8") + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    return np.where(np.isnan(x), (bits >> 16 | 0x40).astype("<u2"), rounded).astype("<u2")


class Edit:
    """A file that is changed; use it in a `with` block."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._rot = 0  # offset of a byte to be changed after the file is closed
        self.file = h5py.File(path, "r+")

    def __enter__(self) -> "Edit":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.file.close()
        if kind is None and self._rot:
            with open(self.path, "r+b") as f:
                f.seek(self._rot)
                byte = f.read(1)[0]
                f.seek(self._rot)
                f.write(bytes([byte ^ 0x55]))

    # ---- attributes and links ------------------------------------------------------------------

    def attribute(self, at: str, key: str, value: Union[str, int, None]) -> None:
        """Set an attribute. None: remove it."""
        attrs = self.file[at].attrs
        if key in attrs:
            del attrs[key]
        if value is not None:
            attrs.create(key, value, dtype=h5py.string_dtype() if isinstance(value, str) else "<i8")

    def unlink(self, at: str) -> None:
        del self.file[at]

    def move(self, old: str, new: str) -> None:
        self.file.move(old, new)

    def swap(self, a: str, b: str) -> None:
        self.move(a, "/aside")
        self.move(b, a)
        self.move("/aside", b)

    def link(self, at: str, to: Any) -> None:
        """Replace `at` by a link to an object of this file (a path), or by a soft or external link."""
        if at in self.file:
            del self.file[at]
        self.file[at] = self.file[to] if isinstance(to, str) else to

    # ---- numbers -------------------------------------------------------------------------------

    def numbers(self, at: str, raw: np.ndarray, word: str, honest: bool = True) -> None:
        """Overwrite a tensor's numbers, in its format and shape. honest: digest and statistics are updated too, as if
        an engine had computed these numbers."""
        d = self.file[at].id
        d.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(raw), mtype=h5t.py_create(raw.dtype))
        if honest:
            _state(d, raw, word)

    def replace(self, at: str, raw: np.ndarray, word: str, shape: Sequence[int], way: str = "plain") -> None:
        """Put a new dataset under the name, with the old attributes. way: how it is stored:
        plain       contiguous, with correct digest and statistics
        counted     16-bit integers without the attribute that says which format they are
        big-endian  the same bytes, declared big-endian
        unwritten   space is never allocated
        gap         chunks by rows, the last one never written
        packed-gap  the same, compressed
        rotten      compressed with a checksum, then one byte is changed
        elsewhere   the numbers are in another file
        virtual     a view of another dataset"""
        old, dims = self.file[at].id, tuple(shape)
        kind = np.dtype("<i2") if way == "counted" else raw.dtype.newbyteorder(">" if way == "big-endian" else "<")
        data = np.frombuffer(raw.tobytes()[: int(np.prod(dims, dtype=int)) * kind.itemsize], kind).reshape(dims)
        space = h5s.create_simple(dims) if dims else h5s.create(h5s.SCALAR)
        new = h5d.create(self.file.id, None, h5t.py_create(kind), space, _layout(way, dims, data.nbytes, space))
        _copy_attributes(old, new)
        if way in ("gap", "packed-gap"):
            rows = new.get_space()
            rows.select_hyperslab((0,) * len(dims), (dims[0] - 1, *dims[1:]))
            new.write(h5s.create_simple((dims[0] - 1, *dims[1:])), rows, np.ascontiguousarray(data[:-1]))
        elif way not in ("unwritten", "elsewhere", "virtual") and data.size:
            new.write(h5s.ALL, h5s.ALL, data, mtype=h5t.py_create(kind))
        if way == "plain":
            _state(new, data, word)
        if way == "rotten":
            self.file.flush()
            chunk = new.get_chunk_info_by_coord((0,) * len(dims))
            self._rot = chunk.byte_offset + chunk.size // 2
        del self.file[at]
        h5o.link(new, self.file.id, at.encode())

    # ---- lists and tables ----------------------------------------------------------------------

    def tokens(self, name: str, ids: np.ndarray, honest: bool = True) -> None:
        """Overwrite token_ids or positions. honest: their digest is updated."""
        at = f"/run/{name}"
        was = self.file[at].attrs.get("digest", "")
        del self.file[at]
        d = self.file.create_dataset(at, data=ids.astype("<i4"))
        now = digest(ids.astype("<i4").tobytes()) if honest else was
        if now is not None:
            d.attrs["digest"] = now

    def line(self, at: str, old: str, new: str) -> None:
        """Replace `old` by `new` in the first line of a list of strings that contains it."""
        lines = self.file[at].asstr()[()]
        for i, line in enumerate(lines):
            if old in line:
                self.file[at][i] = line.replace(old, new, 1)
                return
        raise CannotEdit(f"{at}: no line with {old}")

    def weight(self, row: int, **columns: Any) -> None:
        """Change a row of the table of weights in these columns."""
        d = self.file["/model/weights"]
        rows = d[()]
        for name, value in columns.items():
            if name not in (rows.dtype.names or ()):
                raise CannotEdit(f"/model/weights: no column {name}")
            rows[name][row] = value
        d[...] = rows
        if "digest" in d.attrs:
            self.attribute("/model/weights", "digest", digest(rows.tobytes()))

    def fewer_weights(self) -> None:
        """Remove the last row of the table of weights."""
        rows = self.file["/model/weights"][()]
        del self.file["/model/weights"]
        self.file.create_dataset("/model/weights", data=rows[:-1])


def _state(d: Any, raw: np.ndarray, word: str) -> None:
    """Write the attributes that an engine would write for these numbers."""
    with np.errstate(invalid="ignore", over="ignore"):
        facts = statistics(raw, word)
    for key, value in facts.items():
        put_attribute(d, key, value)
    now = digest(np.ascontiguousarray(raw).reshape(-1).view(np.uint8))
    if now is not None:
        put_attribute(d, "digest", now)
    elif h5a.exists(d, b"digest"):
        h5a.delete(d, b"digest")


def _copy_attributes(old: Any, new: Any) -> None:
    for i in range(h5a.get_num_attrs(old)):
        a = h5a.open(old, index=i)
        value = np.empty(a.shape, a.dtype)
        a.read(value, mtype=a.get_type())
        h5a.create(new, a.name, a.get_type(), a.get_space()).write(value, mtype=a.get_type())


def _layout(way: str, dims: Sequence[int], size: int, space: Any) -> Any:
    how = h5p.create(h5p.DATASET_CREATE)
    if way == "unwritten":
        how.set_alloc_time(h5d.ALLOC_TIME_LATE)
    elif way == "elsewhere":
        how.set_external(b"elsewhere.bin", 0, size)
    elif way == "virtual":
        how.set_virtual(space, b".", b"/run/token_ids", space)
    elif way in ("gap", "packed-gap"):
        how.set_chunk((1, *dims[1:]))
    elif way == "rotten":
        how.set_chunk(tuple(dims))
    if way in ("packed-gap", "rotten"):
        how.set_deflate(1)
    if way == "rotten":
        how.set_fletcher32()
    return how
