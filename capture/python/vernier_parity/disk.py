"""disk.py: the file that HDF5 writes a recording to: it can be opened at every moment, and belongs to one process.

HDF5 rewrites its structures in place, in no particular order, so that a process killed at the wrong moment would leave
a file that cannot be opened. What nothing on disk refers to yet is written at once. Writes to blocks that are on disk
already wait until `publish`, which writes the superblock first (it only says how long the file is), then the rest,
each block in one write. A recording only ever adds links to finished objects, so each of those blocks is valid by
itself.

The name appears when the first state is whole, where the system has files without names (Linux).

Writes never fail: if one did, HDF5 would keep the data, try again when the program ends, and might crash the program
then. A failed write is noted, and nothing is published after it. The recorder calls `check`.

A process forked from this one has the same file, and HDF5 would write to it when that process ends. There every write
does nothing.
"""

import bisect
import contextlib
import errno
import io
import os
import weakref
from typing import Any, Callable, List, Optional, Tuple

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BEGUN = "another process has just begun to write it; wait until it has ended, or give another name"
HOW = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_open: "weakref.WeakSet[Disk]" = weakref.WeakSet()


class Taken(OSError):
    """The file is not this program's to overwrite."""


class Disk(io.RawIOBase):
    """A file for h5py.File, which has no name before the first `publish`. Raises OSError: it cannot be made."""

    def __init__(self, path: str):
        self.path, self.pid = path, os.getpid()
        self._refused: Optional[OSError] = None
        self._at = self._size = self._chunk_end = 0
        self._pending: List[Tuple[int, bytes]] = []  # writes to blocks that are on disk
        self._on_disk: List[Tuple[int, int]] = []  # begin and end of what was published, in order, merged
        self._fresh: List[Tuple[int, int]] = []  # of what was written since
        fd, self._temporary = _unnamed(path)
        self._file: Any = os.fdopen(fd, "r+b", buffering=0)
        self._named = False
        _lock(fd)
        _open.add(self)

    # ---- what the recorder calls ---------------------------------------------------------------

    @property
    def ours(self) -> bool:
        """False in a process that was forked from the one that opened the file."""
        return self.pid == os.getpid()

    def refuse(self, e: OSError) -> None:
        """Publish nothing more, because of this error, unless one came before."""
        self._refused = self._refused or e

    def check(self) -> None:
        """Raise the first OSError that was hidden from HDF5."""
        if self._refused:
            raise self._refused

    @property
    def ends_in_chunk(self) -> bool:
        """True if the file ends in a further block of an object's header. HDF5 makes such a block longer in its place
        if it can, and then its length changes in another block, too."""
        return self._chunk_end == self._size > 0

    def publish(self) -> None:
        """Write to disk what HDF5 has flushed; the first time, give the file its name."""
        if self._refused or not self.ours:
            return
        try:
            if os.fstat(self._file.fileno()).st_size < self._size:  # a file shorter than its superblock says is refused
                self._file.truncate(self._size)
            # Objects of HDF5 begin with their name; numbers come before what refers to them. The
            # root, whose attribute `complete` is set at the end, is the first object of the file.
            heads = (b"OHDR", b"OCHK")
            for at, data in sorted(self._pending, key=lambda p: (p[0] > 0, p[1][:4] in heads, -p[0])):
                _write_at(self._file, at, data)
            if not self._named:
                self._name()
        except OSError as e:
            self._refused = e
            return
        self._on_disk = _merged(self._on_disk + self._fresh)
        self._pending, self._fresh = [], []

    def end(self, path: Optional[str], force: bool) -> None:
        """Flush the file to the disk, rename it to path (None: it keeps its name), and close it. The lock is held
        until then: another recorder would overwrite the file under its old name. Raises OSError: this or an earlier
        write failed."""
        try:
            self.publish()
            self.check()
            if path is not None and self.ours:
                self._file.truncate(self._size)
                _flush(self._file.fileno())
                _rename(self.path, path, force)
        finally:
            self.close()

    def close(self) -> None:
        if self.ours and not self._file.closed:
            if self._temporary and not self._named:
                with contextlib.suppress(OSError):
                    os.unlink(self._temporary)
            if fcntl:
                with contextlib.suppress(OSError):
                    fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)  # a forked process may still have the file open
        self._file.close()
        super().close()

    # ---- what HDF5 calls -----------------------------------------------------------------------

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        at, n = self._at, len(view)
        self._at += n
        if not n or self._refused or not self.ours:
            return n
        if view[:4] == b"OCHK":
            self._chunk_end = max(self._chunk_end, at + n)
        if _overlaps(self._on_disk, at, at + n):
            same = next((i for i, p in enumerate(self._pending) if p[0] == at and len(p[1]) == n), None)
            if same is not None:  # only its last state matters
                del self._pending[same]
            self._pending.append((at, bytes(view)))
            return n
        try:
            _write_at(self._file, at, view)
        except OSError as e:
            self._refused = e
        if self._fresh and self._fresh[-1][1] == at:
            self._fresh[-1] = (self._fresh[-1][0], at + n)
        else:
            self._fresh.append((at, at + n))
        return n

    def truncate(self, size: Optional[int] = None) -> int:
        self._size = self._at if size is None else size
        return self._size

    def readinto(self, to: Any) -> int:
        view = memoryview(to).cast("B")
        if self._file.closed:  # in a forked process
            view[:] = bytes(len(view))
            return len(view)
        self._file.seek(self._at)
        n = self._file.readinto(view) or 0
        view[n:] = bytes(len(view) - n)  # zeros after the end of the file
        for at, data in self._pending:
            first, last = max(at, self._at), min(at + len(data), self._at + len(view))
            if first < last:
                view[first - self._at : last - self._at] = data[first - at : last - at]
        self._at += len(view)
        return len(view)

    def seek(self, at: int, whence: int = io.SEEK_SET) -> int:
        self._at = at + (self._at if whence == io.SEEK_CUR else self._size if whence == io.SEEK_END else 0)
        return self._at

    def tell(self) -> int:
        return self._at

    # ---- helpers -------------------------------------------------------------------------------

    def _name(self) -> None:
        """Give the file its name. What has the name already is removed by now (`make_room`)."""
        if not self._temporary and not self._link():
            self._copy()
        if self._temporary:
            if os.path.lexists(self.path):
                raise Taken(BEGUN)
            os.rename(self._temporary, self.path)
        self._named = True

    def _link(self) -> bool:
        folder = os.open(os.path.dirname(self.path) or ".", os.O_RDONLY)
        try:  # with a folder Python calls linkat, which follows this link
            os.link(f"/proc/self/fd/{self._file.fileno()}", self.path, src_dir_fd=folder)
            return True
        except FileExistsError:
            raise Taken(BEGUN) from None
        except OSError:  # links are not allowed here
            return False
        finally:
            os.close(folder)

    def _copy(self) -> None:
        """Go on in a copy of the file that has a temporary name."""
        fd, self._temporary = _temporary(self.path)
        file = os.fdopen(fd, "r+b", buffering=0)
        _lock(fd)
        at = 0
        while True:
            self._file.seek(at)
            data = self._file.read(1 << 24)
            if not data:
                break
            _write_at(file, at, data)
            at += len(data)
        self._file.close()
        self._file = file


def make_room(path: str, why_kept: Callable[[str], Optional[str]]) -> None:
    """Remove what an interrupted recording left under this name. why_kept(path): why it is none; None if it is one.

    Raises OSError: another process writes it, or it is anything else.
    """
    for _ in range(100):
        try:
            fd = os.open(path, HOW)
        except FileNotFoundError:
            return
        try:
            if os.path.islink(path) or not os.path.isfile(path):
                raise Taken("is not a regular file")
            _lock(fd)
            if not os.path.exists(path) or not os.path.samestat(os.fstat(fd), os.stat(path)):
                continue  # its owner renamed it in between
            if os.fstat(fd).st_nlink > 1:
                raise Taken("has another name, too (a hard link); remove this one, or give another name")
            why = why_kept(path) if os.fstat(fd).st_size else None
            if why:
                raise Taken(f"{why}; rename it, or give another name")
            os.unlink(path)
            return
        finally:
            os.close(fd)
    raise Taken("keeps being renamed by another process")


def _unnamed(path: str) -> Tuple[int, Optional[str]]:
    """(a file for reading and writing, its temporary name; None: it has none)."""
    if hasattr(os, "O_TMPFILE") and os.path.exists("/proc/self/fd"):
        try:
            return os.open(os.path.dirname(path) or ".", os.O_TMPFILE | os.O_RDWR, 0o666), None
        except OSError:  # the file system has no such files
            pass
    return _temporary(path)


def _temporary(path: str) -> Tuple[int, str]:
    base, _, ending = path.rpartition(".")
    for i in range(100):  # process numbers repeat: the file of a killed process may be in the way
        temporary = f"{base}.{os.getpid()}{f'.{i}' if i else ''}.{ending}"
        with contextlib.suppress(FileExistsError):
            return os.open(temporary, HOW | os.O_CREAT | os.O_EXCL, 0o666), temporary
    raise Taken("its temporary name is taken")


def _write_at(file: Any, at: int, data: Any) -> None:
    view = memoryview(data)
    file.seek(at)
    while len(view):
        view = view[file.write(view):]


def _flush(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):  # the file system cannot
            raise


def _lock(fd: int) -> None:
    if fcntl:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the lock that HDF5 takes, too
        except BlockingIOError:
            raise Taken("another process is writing it; wait until it has ended, or give another name") from None
        except OSError:
            pass  # the file system has no locks


def _rename(old: str, new: str, force: bool) -> None:
    if force:
        os.replace(old, new)
        return
    try:
        os.link(old, new)  # unlike a rename it replaces nothing
    except FileExistsError:
        raise Taken(f"another program has created {new} in the meantime, and it stays") from None
    except OSError:  # the file system has no links
        if os.path.lexists(new):
            raise Taken(f"another program has created {new} in the meantime, and it stays") from None
        os.rename(old, new)
        return
    os.unlink(old)


def _merged(spans: List[Tuple[int, int]]) -> List[Tuple[int, int]]:
    out: List[Tuple[int, int]] = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    return out


def _overlaps(spans: List[Tuple[int, int]], begin: int, end: int) -> bool:
    i = bisect.bisect_left(spans, (end, 0))
    return i > 0 and spans[i - 1][1] > begin


def _after_fork() -> None:
    for disk in list(_open):
        disk._file.close()  # in this process alone; the lock is held through the descriptor of the other


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
