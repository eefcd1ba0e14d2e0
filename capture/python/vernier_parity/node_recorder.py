"""node_recorder.py: writes a recording whose checkpoints are the results of nodes, and whose inputs may be anything."""

import contextlib
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from . import h5
from .dims import MOST_AXES
from .numbers import SAID, RecordingError, digest_of, stored
from .recorder import Recorder, alone
from .tokens import counted


def storable(t: Any) -> Any:
    """A tensor as a file holds it: complex numbers as two reals, truth values and small integers as int32, at most six
    axes. int64 stays: `stored` refuses what int32 does not hold."""
    import torch

    t = t.detach()
    if t.is_complex():
        t = torch.view_as_real(t.resolve_conj())
    if not t.is_floating_point() and t.dtype != torch.int64:
        t = t.to(torch.int32)
    return t.reshape(-1, *t.shape[t.ndim - MOST_AXES + 1:]) if t.ndim > MOST_AXES else t


class NodeRecorder(Recorder):
    """A Recorder whose steps are begun without ids, and whose names are free."""

    _step_ids: List[Optional[np.ndarray]] = []

    def _store_ids(self, again: bool = False) -> None:
        """Ids are known only at the end: a later call may have none."""

    @alone
    def begin_call(self, ids: Optional[np.ndarray]) -> None:
        """Begin a step. ids: its token ids, (B, T), or None."""
        self._going_on("begin_call")
        self._step_ids = [*self._step_ids, ids]
        self._new_step()

    @alone
    def put_result(self, name: str, t: Any, op: str, order: int, axes: str) -> bool:
        """Record the result of a node. axes: those of a checkpoint that has them, unless its tokens are others than
        the step's. Returns False if a file cannot hold it: no numbers, or integers above 32 bits."""
        self._going_on(name)
        if not t.numel():
            return False
        try:
            a, word = stored(storable(t))
        except RecordingError:
            return False
        ids, words = self._step_ids[-1], axes.split()
        if ids is not None and "token" in words[: a.ndim] and a.shape[words.index("token")] != ids.shape[1]:
            axes = ""
        facts: Dict[str, Optional[h5.Fact]] = dict(
            order=order, op=op[:31], axes=axes or None, dtype=word if word in SAID else None, digest=digest_of(a))
        self._keep(name, a, word, facts)
        return True

    @alone
    def put_plan(self, parts: Callable[[], Dict[str, Sequence[str]]]) -> None:
        """Write /plan: lines by the name of their dataset."""
        plan = h5.group(self._file, "plan", 8, kind="pytorch")
        for name, lines in parts().items():
            if lines:
                h5.put_lines(plan, name, lines)

    def _finish_ids(self, well: bool) -> None:
        if well and not self.steps:
            raise RecordingError(f"{self.path}: the model was not called inside the block")
        known = [x for x in self._step_ids if x is not None]
        if not known or len(known) < len(self._step_ids) or len({x.shape[0] for x in known}) > 1:
            return
        at = 0
        for n, x in enumerate(known):
            step = self._file[f"step.{n}"].id
            h5.put_attribute(step, "position", at)
            h5.put_attribute(step, "tokens", x.shape[1])
            at += x.shape[1]
        ids = np.concatenate(known, -1).astype("<i4")
        for name, a in (("token_ids", ids), ("positions", counted(0, ids.shape))):
            a = np.ascontiguousarray(a[0] if len(a) == 1 else a)
            h5.put_digest(h5.put_array(self._run.id, name, a, self._disk), a)


class Digests:
    """In place of a NodeRecorder: keeps the digests alone of what that would write."""

    differs = None

    def __init__(self) -> None:
        self.step, self.held = -1, {}  # type: ignore[var-annotated]

    def begin_call(self, ids: Any) -> None:
        self.step += 1

    def put_result(self, name: str, t: Any, op: str, order: int, axes: str) -> bool:
        with contextlib.suppress(RecordingError):
            a = stored(storable(t))[0]
            if a.size:
                self.held[self.step, name] = digest_of(a) or ""
        return (self.step, name) in self.held

    def model(self, **facts: Any) -> None:
        """A digest knows no model, facts and plan."""

    fact = model

    def put_plan(self, parts: Any) -> None:
        pass


def ids_in(given: Dict[str, Any]) -> Optional[np.ndarray]:
    """The token ids of a call, (B, T): its input_ids, or the only tensor given, if of whole numbers."""
    import torch

    tensors = [x for x in given.values() if isinstance(x, torch.Tensor)]
    t = given.get("input_ids", tensors[0] if len(tensors) == 1 else None)
    if not isinstance(t, torch.Tensor) or t.ndim != 2 or t.is_floating_point() or not t.numel():
        return None
    a = t.detach().cpu().numpy()
    return a if a.min() >= 0 and a.max() < 1 << 31 else None
