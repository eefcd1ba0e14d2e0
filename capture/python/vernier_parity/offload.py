"""offload.py: weights of a model that is larger than memory. They lie in a file that is mapped; what a leaf has read of
it leaves memory before the next leaf runs.
"""

import contextlib
import mmap
import os
import tempfile
import weakref
from typing import Any, Iterator

import torch

from .watch import replaced

_mapped: "weakref.WeakSet[mmap.mmap]" = weakref.WeakSet()


class Shelf:
    """A file without a name, of weights."""

    def __init__(self, folder: str) -> None:
        self._file: Any = tempfile.TemporaryFile(dir=folder or ".")
        self._addresses: set = set()  # type: ignore[type-arg] # of the tensors that lie in it

    def put(self, t: Any) -> Any:
        """The tensor with its numbers in the file."""
        if t.is_meta or not t.numel() or t.data_ptr() in self._addresses:
            return t
        a = t.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        at = -self._file.seek(0, os.SEEK_END) % mmap.ALLOCATIONGRANULARITY + self._file.tell()
        self._file.seek(at)
        self._file.write(a.numpy().data)
        self._file.flush()
        m = mmap.mmap(self._file.fileno(), a.numel(), offset=at)
        _mapped.add(m)
        found = torch.frombuffer(m, dtype=t.dtype).reshape(t.shape)
        self._addresses.add(found.data_ptr())
        return found

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """While a model is loaded, one weight after the other, each goes to the file when its module gets it."""
        register = torch.nn.Module.register_parameter

        def registered(m: Any, name: str, p: Any) -> None:
            if p is not None:
                p.data = self.put(p.data)
            register(m, name, p)

        with replaced(torch.nn.Module, "register_parameter", registered):
            before = os.environ.get("HF_DEACTIVATE_ASYNC_LOAD")
            os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"  # threads would read all of them ahead
            try:
                yield
            finally:
                os.environ.pop("HF_DEACTIVATE_ASYNC_LOAD")
                if before is not None:
                    os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = before


def release() -> None:
    """What was read of the files is no longer held in memory."""
    for m in _mapped:
        m.madvise(mmap.MADV_DONTNEED)
