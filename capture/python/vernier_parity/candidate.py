"""candidate.py: reads a recording of any PyTorch model: its plan, its calls, its tensors."""

import json
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch

from . import h5
from .families import FAMILIES
from .numbers import PLAIN, RecordingError, digest
from .reading import Recording
from .rows import Row, rows_from



def is_of_a_family(path: str) -> bool:
    """True if a recording has the names of a family that vernier knows, and no plan of its own."""
    with Recording(path) as r:
        model = r._file.get("model")
        return "plan" not in r._file and model is not None and h5.text_of(model.attrs.get("family", "")) in FAMILIES


class Candidate(Recording):
    """A recording with a plan of kind "pytorch", or one of other numbers for the plan, the inputs and the names of such
    a recording, `like`. Raises RecordingError: another file, or a plan that contradicts itself."""

    def __init__(self, path: str, like: Optional[str] = None) -> None:
        super().__init__(path)
        self.like: Optional[Candidate] = None
        try:
            if like:
                self.like = Candidate(like)
            self._read()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            self.close()
            raise e if isinstance(e, RecordingError) else RecordingError(
                f"{path}: /plan: {type(e).__name__}: {e}") from None

    def _read(self) -> None:
        if self.like:
            self._read_other(self.like)
            return
        plan = self._file.get("plan")
        if plan is None or h5.text_of(plan.attrs.get("kind", "")) != "pytorch":
            raise RecordingError(f"{self.path}: not a recording of a PyTorch model with its plan (`vernier_parity."
                                 "record` of a model that is of none of vernier's families, or with any=True); of "
                                 f"another engine: vernier capture ref MODEL --like {self.path} -o ref.h5, then "
                                 f"vernier explain ref.h5 {self.path} --model MODEL")
        self.rows: List[Row] = rows_from(self._lines("nodes"))
        self.calls, self.modules, self.sources = ([json.loads(x) for x in self._lines(k)]
                                                  for k in ("calls", "modules", "sources"))
        steps = [c["step"] for c in self.calls]
        if not (all(isinstance(c["path"], str) and isinstance(c["arguments"], dict) for c in self.calls)
                and all(isinstance(m["path"], str) and isinstance(m.get("const", {}), dict) for m in self.modules)
                and all(isinstance(x["weight"], str) and all(isinstance(y["tensor"], str) for p in x["parts"]
                                                             for y in p or ()) for x in self.sources)):
            raise ValueError("a call without path or arguments, a module without path, or a part without tensor")
        if steps != list(range(self.steps)):
            raise RecordingError(f"{self.path}: /plan/calls has {len(steps)} calls, the file {self.steps} steps")
        self._hold()
        planned = {(r["step"], name) for r in self.rows for name in r["out"]}
        lost = sorted(k for k in self.held if k not in planned and not k[1].startswith("in."))
        if lost:
            raise RecordingError(f"{self.path}: step.{lost[0][0]}/{lost[0][1]}: no node of /plan makes it")

    def _hold(self) -> None:
        self.held: Dict[Tuple[int, str], Any] = {}  # (step, name) -> dataset
        for n in range(self.steps):
            self.held.update({(n, name): d for name, d in self._datasets(n)})

    def _read_other(self, like: "Candidate") -> None:
        self.rows, self.calls, self.modules, self.sources = like.rows, like.calls, [], []
        if self.steps != like.steps:
            raise RecordingError(f"{self.path}: {self.steps} steps, {like.path} has {like.steps}")
        self._hold()
        planned = {(r["step"], name) for r in self.rows for name in r["out"]}
        if not planned & set(self.held):
            raise RecordingError(f"{self.path}: no tensor has the name of a result of {like.path}")
        self.held.update({k: d for k, d in like.held.items() if k[1].startswith("in.")})

    def _lines(self, name: str) -> List[str]:
        plan = self._file["plan"]
        return [h5.text_of(x) for x in plan[name][()]] if name in plan else []

    def shape(self, step: int, name: str) -> Tuple[int, ...]:
        return tuple(self.held[step, name].shape)

    def tensor(self, step: int, name: str) -> Any:
        """A checkpoint as a torch tensor in its own format."""
        d = self.held[step, name]
        a = self._numbers(d, name)
        if h5.text_of(d.attrs.get("dtype", "")) == "bf16":
            return torch.from_numpy(a.view("<i2").copy()).view(torch.bfloat16)
        if a.dtype not in PLAIN:
            raise RecordingError(f"{self.path}: {name}: {a.dtype}: not a format of such a recording")
        return torch.from_numpy(np.array(a))

    def sum(self) -> str:
        """The digest of all tensors."""
        return sum_of({k: str(h5.text_of(d.attrs.get("digest", ""))) for k, d in self.held.items()
                       if d.file.id == self._file.id})

    def close(self) -> None:
        if self.like:
            self.like.close()
        super().close()


def sum_of(digests: Dict[Tuple[int, str], str]) -> str:
    """The digest of the lines "STEP NAME DIGEST", sorted by step, then by the bytes of the name."""
    lines = [f"{step} {name} {said}\n" for (step, name), said in sorted(
        digests.items(), key=lambda x: (x[0][0], x[0][1].encode()))]
    return digest("".join(lines).encode()) or ""
