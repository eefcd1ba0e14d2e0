"""tokens.py: token ids and positions of a run, call by call, and the datasets that a recording keeps them in."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import h5py
import numpy as np
from h5py import h5s

from . import h5
from .disk import Disk
from .numbers import Ids, RecordingError, ids_array

NAMES = "token_ids", "positions"  # of the datasets


class Called(NamedTuple):
    """The ids and positions of a call, (T) or (B, T)."""

    token_ids: np.ndarray
    positions: np.ndarray


def counted(first: int, shape: Tuple[int, ...]) -> np.ndarray:
    """Positions from the first on."""
    return np.broadcast_to(np.arange(first, first + shape[-1], dtype="<i4"), shape)


class Tokens:
    """`calls`: those that have begun; `total`: how many tokens these have. Letters for shapes: N tokens of the run, T
    of a call, B prompts in a batch."""

    def __init__(self, path: str, token_ids: Optional[Ids], positions: Optional[Ids]) -> None:
        """Those of the whole run, (N) or (B, N), where they are known. path: of the recording, for errors."""
        self._path = path
        self.calls: List[Called] = []
        self.total = 0
        self.given = None if token_ids is None else ids_array("token_ids", token_ids)
        self.where = None if positions is None else ids_array("positions", positions)
        if self.given is not None and self.given.min() < 0:
            raise RecordingError("token_ids: an id below 0")
        if self.where is not None and (self.given is None or self.given.shape != self.where.shape):
            raise RecordingError("positions: expected token_ids of the same shape")
        self._refuse_padding(self.where)
        self._stored: Dict[str, Any] = {}
        self._gone: List[Any] = []  # datasets that others have replaced: as long as they are open, HDF5 keeps them

    def begin(self, tokens: Optional[int], token_ids: Optional[Ids], positions: Optional[Ids]) -> Called:
        """A call begins: with so many of the given ids, or with its own."""
        at = self.total
        if token_ids is not None:
            if self.given is not None:
                raise RecordingError("begin_step: token_ids were given to Recorder already")
            ids = ids_array("token_ids", token_ids)
            where = counted(at, ids.shape) if positions is None else ids_array("positions", positions)
            first = self.calls[0].token_ids if self.calls else ids
            if ids.min() < 0 or where.shape != ids.shape or first.shape[:-1] != ids.shape[:-1]:
                raise RecordingError(f"begin_step: expected ids of 0 or more, with positions and a batch of the same "
                                     f"shape; ids are {ids.shape}, positions {where.shape}, and the first step's ids "
                                     f"{first.shape}")
            self._refuse_padding(where)
        elif self.given is None:
            raise RecordingError("begin_step: no token_ids, neither here nor in Recorder")
        else:
            left = self.given.shape[-1] - at
            n = left if tokens is None else tokens
            if not 0 < n <= left:
                raise RecordingError(f"begin_step: {n} tokens, but token_ids has only {left} left")
            ids = self.given[..., at : at + n]
            where = counted(at, ids.shape) if self.where is None else self.where[..., at : at + n]
        return Called(ids, where)

    def add(self, call: Called) -> None:
        self.calls.append(call)
        self.total += call.token_ids.shape[-1]

    def set_positions(self, positions: Ids) -> None:
        """Those of the last call, known only now."""
        where = ids_array("positions", positions)
        if not self.calls or where.shape != self.calls[-1].token_ids.shape:
            raise RecordingError(f"{self._path}: positions of another shape than the step's tokens")
        self._refuse_padding(where)
        self.calls[-1] = self.calls[-1]._replace(positions=where)

    def _refuse_padding(self, where: Optional[np.ndarray]) -> None:
        if where is not None and where.ndim == 1 and where.min() < 0:
            raise RecordingError(f"{self._path}: positions: -1, which is padding, in a single prompt; "
                                 f"ids and positions of (1, N) are a batch of one")

    @property
    def alone(self) -> bool:
        """Whether there is one prompt, without a batch."""
        return self.calls[-1].token_ids.ndim == 1

    @property
    def batch(self) -> int:
        return int((self.calls[-1].token_ids.shape[:-1] or (1,))[0])

    def prompts(self) -> int:
        """The number of prompts that share one row of ids: the positions of each begin at 0."""
        return sum(int((c.positions == 0).sum()) for c in self.calls if c.positions.ndim == 1)

    # ---- datasets ------------------------------------------------------------------------------

    def store(self, run: h5py.Group, disk: Disk, again: bool = False) -> None:
        """Store those given for the run at once, else those of the calls so far, in datasets that grow in their place.
        (Only the first call says whether they are a batch.) again: the last call has other positions."""
        if self.given is not None and not self._stored:
            where = counted(0, self.given.shape) if self.where is None else self.where
            for name, a in zip(NAMES, (self.given, where)):
                self._stored[name] = h5.put_array(run.id, name, np.ascontiguousarray(a), disk)
        if self.given is not None and not again:
            return
        rows = self.calls[0].token_ids.shape[:-1] if self.calls else ()
        for i, name in enumerate(NAMES):
            d = self._stored.get(name)
            if d is None or len(d.shape) != len(rows) + 1:
                self._drop(run, name)
                d = self._stored[name] = h5.put_growing(run.id, name, rows)
            if self.calls:
                new = np.ascontiguousarray(self.calls[-1][i], "<i4")
                if d.shape[-1] < self.total:
                    d.set_extent((*rows, self.total))
                place = d.get_space()
                place.select_hyperslab((0,) * len(rows) + (self.total - new.shape[-1],), new.shape)
                d.write(h5s.create_simple(new.shape), place, new)

    def _drop(self, run: h5py.Group, name: str) -> None:
        if name in self._stored:
            run.id.unlink(name.encode())
            self._gone.append(self._stored.pop(name))

    def close(self) -> None:
        self._stored, self._gone = {}, []

    def finish(self, run: h5py.Group, disk: Disk) -> np.ndarray:
        """Store those of all calls, with digests. Returns the ids, (N) or (B, N)."""
        every = [np.concatenate(x, -1) for x in zip(*self.calls)] if self.calls else [np.zeros(0, "<i4")] * 2
        for name, a in zip(NAMES, every):
            d = self._stored[name]
            if d.shape != a.shape:  # not all of the ids that were given
                self._drop(run, name)
                d = h5.put_array(run.id, name, np.ascontiguousarray(a, "<i4"), disk)
            h5.put_digest(d, a.astype("<i4"))
        return every[0]
