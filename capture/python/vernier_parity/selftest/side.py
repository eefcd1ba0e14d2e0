"""side.py: one of the recordings of a pair: its tensors as `vernier show` lists them, and their numbers."""

import json
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from .. import points
from ..h5 import opened
from ..names import path_of, words_of
from ..numbers import values
from .program import Program, reading

WIDE = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}  # bytes of the formats that engines compute in


@dataclass(frozen=True)
class Step:
    """One call: its number, tokens cached before it, new tokens, recorded rows."""

    number: int
    position: int
    tokens: int
    first_row: int
    rows: int


@dataclass(frozen=True)
class Tensor:
    """One tensor under one name, in the place `at` of the execution order."""

    at: int
    name: str
    step: int
    order: int  # -1: not stated
    layer: int  # -1 outside layers
    point: str
    axes: str  # the file's own, or ""
    basis: str
    dtype: str
    shape: Tuple[int, ...]
    digest: Optional[str]
    same_as: Optional[str]  # the tensor that it is a second name of
    stated: bool  # the file states its statistics

    @property
    def columns(self) -> int:
        """How many numbers one index of the first axis has."""
        return int(np.prod(self.shape[1:])) if self.shape and self.shape[0] else 0

    @property
    def words(self) -> List[str]:
        """Its axes: the file's own, or those of its point."""
        row = points.known().get(self.point or self.name.rpartition(".")[2])
        return words_of(self.axes or (row.axes if row else ""))


class Side:
    """An opened recording. Threads may share it: h5py lets one of them read at a time."""

    def __init__(self, path: str, program: Program) -> None:
        shown = program.show(path)
        self.path = path
        with reading("show"):
            self.precision: str = shown["run"].get("precision") or ""
            self.steps = [Step(**{k: s[k] for k in ("number", "position", "tokens", "first_row", "rows")})
                          for s in shown["steps"]]
            self.tensors = [Tensor(i, t["name"], t["step"], t["order"], t["layer"], t["point"] or "", t["axes"] or "",
                                   t["basis"] or "", t["dtype"], tuple(t["shape"]), t["digest"], t["same_as"],
                                   t["statistics"] is not None) for i, t in enumerate(shown["tensors"])]
        self._named = {(t.step, t.name): t for t in self.tensors}
        self._step = {s.number: s for s in self.steps}
        self._file = opened(path)
        self.plan: Optional[Dict[str, List[str]]] = None
        if "plan/nodes" in self._file and "plan/values" in self._file:
            self.plan = {k: [str(line) for line in self._file["plan"][k].asstr()[()]] for k in ("nodes", "values")}
        model = self._file.get("model")
        self.config: Optional[str] = model.attrs.get("config") if model is not None else None
        if isinstance(self.config, bytes):
            self.config = self.config.decode("utf-8", "replace")
        self.weights: int = len(model["weights"]) if model is not None and "weights" in model else 0
        self._roots = _roots(self.plan["values"]) if self.plan else {}

    def close(self) -> None:
        self._file.close()

    def find(self, step: int, name: str) -> Optional[Tensor]:
        """The tensor of this name, also by another name that the plan gives it."""
        exactly = self._named.get((step, name))
        if exactly or name not in self._roots:
            return exactly
        root = self._roots[name]
        others = (self._named.get((step, n)) for n, r in self._roots.items() if r == root)
        return next((t for t in others if t), None)

    def step(self, number: int) -> Optional[Step]:
        return self._step.get(number)

    def one_token(self, step: int) -> bool:
        s = self._step.get(step)
        return s is not None and s.rows == 1

    def path_of(self, t: Optional[Tensor]) -> str:
        """The path of a tensor in the file."""
        assert t is not None
        group, path = self._file[f"step.{t.step}"], path_of(t.name)
        if path not in group:  # HDF5 is slow with many links: further groups continue that of the step
            group = next(g for g in group.values() if g.attrs.get("continues") == 1 and path in g)
        return f"{group.name}/{path}"

    def raw(self, t: Tensor) -> np.ndarray:
        """A copy of the numbers as they are stored, little-endian."""
        a = np.asarray(self._file[self.path_of(t)][()])
        return np.array(a, dtype=a.dtype.newbyteorder("<"), copy=True, order="C")

    def numbers(self, t: Tensor) -> np.ndarray:
        """(tokens, numbers of a token), float64."""
        return np.asarray(values(self.raw(t), t.dtype), np.float64).reshape(t.shape[0] if t.shape else 1, -1)

    def list_of(self, name: str) -> np.ndarray:
        """A copy of token_ids or positions, as one list."""
        return np.asarray(self._file["run"][name][()], "<i4").reshape(-1).copy()


def _roots(lines: List[str]) -> Dict[str, str]:
    """The first of each value's names, by name."""
    of: Dict[str, Any] = {v["name"]: v.get("alias_of") for v in map(json.loads, lines)}
    out = {}
    for name in of:
        root = name
        while of.get(root):
            root = of[root]
        out[name] = root
    return out
