"""disk.py: the file object that HDF5 writes a recording to. Its writes never fail.

If a write fails, HDF5 keeps the data, tries again when the program ends, and may crash the program then. So this object
notes a failed write, and reports success to HDF5. The recorder calls `check` before it renames the file.
"""

import io
import os
from typing import Any, Optional

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Disk(io.RawIOBase):
    """Create a file, for h5py.File. Raises OSError: that fails, or another program writes the file."""

    def __init__(self, path: str):
        self._refused: Optional[OSError] = None
        fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o666)
        self._file = os.fdopen(fd, "r+b", buffering=0)
        try:
            if fcntl:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the lock that HDF5 takes, too
            self._file.truncate(0)
        except OSError:
            self._file.close()
            raise

    def check(self) -> None:
        """Raise the first OSError that was hidden from HDF5."""
        if self._refused:
            raise self._refused

    def end(self) -> None:
        """Flush the file to the disk, and close it. Raises OSError: this or an earlier write failed."""
        try:
            self.check()
            os.fsync(self._file.fileno())
        finally:
            self.close()

    def close(self) -> None:
        self._file.close()
        super().close()

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        n = len(left)
        try:
            while len(left):
                left = left[self._file.write(left):]
        except OSError as e:
            self._refused = self._refused or e
            self._file.seek(len(left), io.SEEK_CUR)
        return n

    def truncate(self, size: Optional[int] = None) -> int:
        try:
            return self._file.truncate(size)
        except OSError as e:
            self._refused = self._refused or e
            return size or 0

    def readinto(self, to: Any) -> int:
        view = memoryview(to).cast("B")
        n = self._file.readinto(view) or 0
        view[n:] = bytes(len(view) - n)  # zeros after the end of the file: an earlier write failed
        return len(view)

    def seek(self, at: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(at, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
