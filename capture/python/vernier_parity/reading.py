"""reading.py: opens a checkpoint file.

    rec = vernier_parity.open("run.h5")
    rec["layer3.q_rope"]            a numpy array of step 0; bfloat16 and 8-bit formats as float32
    rec["step.2/layer3.q_rope"]     of a later call
    rec.names(), rec.steps, rec.token_ids, rec.positions, rec.run, rec.attributes("logits")
"""

import os
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type

import h5py
import numpy as np

from .globs import hint
from .h5 import text_of
from .numbers import SAID, STORED, RecordingError, values
from .recorder import Recorder


class Recording:
    """A checkpoint file that is being read. Iterates over the names of step 0; `in` knows every name."""

    def __init__(self, path: str) -> None:
        self.path = os.fspath(path)
        if not os.path.exists(self.path):
            raise RecordingError(f"{self.path}: no such file")
        try:
            self._file = h5py.File(self.path, "r")
        except OSError:
            raise RecordingError(f"{self.path}: no HDF5 file, or a damaged one") from None
        about = self._facts(self._file)
        if about.get("format") != "vernier-checkpoint" or about.get("format_version") != 1 or "run" not in self._file:
            self._file.close()
            raise RecordingError(f"{self.path}: no vernier checkpoint file of version 1")
        self.complete: bool = about.get("complete") == 1
        self.created: Optional[str] = about.get("created")
        self.steps: int = 0
        while f"step.{self.steps}" in self._file:
            self.steps += 1

    @staticmethod
    def _facts(where: Any) -> Dict[str, Any]:
        return {k: text_of(v) for k, v in where.attrs.items()}

    @property
    def run(self) -> Dict[str, Any]:
        """What the file says of its engine: engine, precision and whatever else."""
        return self._facts(self._file["run"])

    @property
    def token_ids(self) -> np.ndarray:
        """(N) or (B, N): every token that went in, over all steps."""
        return np.asarray(self._file["run/token_ids"][()])

    @property
    def positions(self) -> np.ndarray:
        """The position of each; -1 is padding."""
        return np.asarray(self._file["run/positions"][()])

    @property
    def config(self) -> Optional[str]:
        """The model's config.json."""
        return self._facts(self._file["model"]).get("config") if "model" in self._file else None

    def step(self, n: int) -> Dict[str, Any]:
        """What the file says of a call: position (tokens in the cache before it), tokens, and which rows were kept."""
        return self._facts(self._group(n))

    def names(self, step: int = 0) -> List[str]:
        """The checkpoints of a step, second names too, in execution order as far as the file declares it."""
        found: List[Tuple[float, int, str]] = []
        group = self._group(step)
        for where, inside in [("", group), *((self._prefix(k, g), g) for k, g in group.items() if isinstance(g, h5py.Group))]:
            for k, d in inside.items():
                if isinstance(d, h5py.Dataset):
                    found.append((float(d.attrs.get("order", np.inf)), len(found), where + k))
        return [name for *_, name in sorted(found)]

    @staticmethod
    def _prefix(name: str, group: Any) -> str:
        """What a group adds to the names in it; nothing if it continues the step's own."""
        return "" if group.attrs.get("continues") == 1 else name + "."

    def attributes(self, name: str, step: int = 0) -> Dict[str, Any]:
        """What the file says of a tensor: axes, basis, op, how, digest, statistics."""
        return self._facts(self._dataset(name, step))

    def _group(self, step: int) -> Any:
        if not 0 <= step < self.steps:
            raise RecordingError(f"{self.path}: step {step}; it has {self.steps}")
        return self._file[f"step.{step}"]

    def _dataset(self, name: str, step: int = 0) -> Any:
        if name.startswith("step.") and "/" in name:
            number, _, name = name.partition("/")
            step = int(number[5:]) if number[5:].isdigit() else -1
        group, path = self._group(step), Recorder._path(name)
        further = (g for g in group.values() if isinstance(g, h5py.Group) and not self._prefix("", g))
        for inside in (group, *further):
            if isinstance(inside.get(path), h5py.Dataset):
                return inside[path]
        raise KeyError(f"{self.path}: no checkpoint named {name} in step {step}{hint(name, self.names(step))}")

    def __getitem__(self, name: str) -> np.ndarray:
        d = self._dataset(name)
        word = text_of(d.attrs.get("dtype", ""))
        if word in SAID and d.dtype != np.dtype(STORED[word]):
            raise RecordingError(f"{self.path}: {name}: {d.dtype} with the attribute dtype = {word}")
        return values(d[()], word)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self._dataset(name) is not None
        except (KeyError, RecordingError):
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "Recording":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


def open(path: str) -> Recording:
    """Open a checkpoint file to read it."""
    return Recording(path)
