"""reading.py: opens a checkpoint file.

    rec = vernier_parity.open("run.h5")
    rec["layer3.q_rope"]            a numpy array of step 0; bfloat16 and 8-bit formats as float32
    rec["step.2/layer3.q_rope"]     the same of step 2
    rec.names(), rec.steps, rec.token_ids, rec.positions, rec.run, rec.attributes("logits")
"""

import os
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type

import h5py
import numpy as np

from .globs import hint
from .h5 import opened, text_of
from .names import path_of
from .numbers import SAID, STORED, RecordingError, digest_of, values
from .printed import printed


class Recording:
    """Reads a checkpoint file; use it in a `with` block, or close it.

    rec[name] is a tensor of step 0, rec["step.2/NAME"] of step 2. Iterating gives the names of step 0; `name in rec` is
    true for a name that rec[name] finds. complete: False for an interrupted run. created: time of creation. steps: how
    many calls were recorded.
    """

    def __init__(self, path: str) -> None:
        """Open the file. Raises RecordingError: it does not exist, is not HDF5, or is not a vernier checkpoint file."""
        self.path = os.fspath(path)
        self._file = opened(self.path)
        about = self._facts(self._file)
        if about.get("format") != "vernier-checkpoint" or about.get("format_version") != 1 or "run" not in self._file:
            self._file.close()
            raise RecordingError(f"{self.path}: not a vernier checkpoint file of version 1")
        self.complete: bool = about.get("complete") == 1
        self.created: Optional[str] = about.get("created")
        self.steps: int = 0
        while f"step.{self.steps}" in self._file:
            self.steps += 1

    def __repr__(self) -> str:
        return f"Recording({printed(repr(self.path))}, steps={self.steps}, complete={self.complete})"

    @staticmethod
    def _facts(where: Any) -> Dict[str, Any]:
        return {k: text_of(v) for k, v in where.attrs.items()}

    @property
    def run(self) -> Dict[str, Any]:
        """Facts about the run by name: engine, precision, and all others that were recorded."""
        return self._facts(self._file["run"])

    @property
    def has_ids(self) -> bool:
        """Whether the input was token ids."""
        return "token_ids" in self._file["run"]

    @property
    def token_ids(self) -> np.ndarray:
        """The input tokens of all steps: (N), or (B, N) for a batch of B prompts."""
        return self._of_run("token_ids")

    @property
    def positions(self) -> np.ndarray:
        """The position of each token, counted from 0; -1 is padding. Shape of token_ids."""
        return self._of_run("positions")

    def _of_run(self, name: str) -> np.ndarray:
        """Ids or positions; in an unfinished file without those that were not known yet (ids of -1)."""
        a = self._numbers(self._file["run"][name], "run/" + name)
        if self.complete:
            return a
        ids = np.asarray(self._file["run/token_ids"])  # positions may be one call further
        known = (ids >= 0).any(tuple(range(ids.ndim - 1)))
        return a[..., : int(known.nonzero()[0].max(initial=-1)) + 1]

    @property
    def config(self) -> Optional[str]:
        """The text of the model's config.json; None if the file does not have it."""
        return self._facts(self._file["model"]).get("config") if "model" in self._file else None

    def step(self, n: int) -> Dict[str, Any]:
        """Facts about a step: position (tokens in the cache before it), tokens, and first_row and rows if only some
        were kept.

        Raises RecordingError: the file has no such step.
        """
        return self._facts(self._group(n))

    def names(self, step: int = 0) -> List[str]:
        """The checkpoint names of a step, in execution order. Raises RecordingError: the file has no such step."""
        found = [(float(d.attrs.get("order", np.inf)), i, name) for i, (name, d) in enumerate(self._datasets(step))]
        return [name for *_, name in sorted(found)]

    def _datasets(self, step: int) -> Iterator[Tuple[str, Any]]:
        """(name, dataset) of every checkpoint of a step, those outside layers first."""
        group = self._group(step)
        for where, inside in [("", group),
                              *((self._prefix(k, g), g) for k, g in group.items() if isinstance(g, h5py.Group))]:
            yield from ((where + k, d) for k, d in inside.items() if isinstance(d, h5py.Dataset))

    @staticmethod
    def _prefix(name: str, group: Any) -> str:
        """The prefix of names in a group; "" if the group continues the group of its step."""
        return "" if group.attrs.get("continues") == 1 else name + "."

    def attributes(self, name: str, step: int = 0) -> Dict[str, Any]:
        """Facts about a tensor by name: axes, basis, op, how, digest, statistics (min, max, mean, rms, absmax, nan,
        inf).

        Raises KeyError: no such checkpoint; RecordingError: the file has no such step.
        """
        return self._facts(self._dataset(name, step))

    def _group(self, step: int) -> Any:
        if not 0 <= step < self.steps:
            has = ("no steps" if not self.steps else "step 0 alone" if self.steps == 1
                   else f"steps 0 to {self.steps - 1}")
            raise RecordingError(f"{self.path}: there is no step {step}; the file has {has}")
        return self._file[f"step.{step}"]

    def _dataset(self, name: str, step: int = 0) -> Any:
        if not isinstance(name, str):
            raise KeyError(printed(f"{self.path}: {name!r}: expected the name of a checkpoint"))
        if name.startswith("step.") and "/" in name:
            number, _, name = name.partition("/")
            if not number[5:].isdecimal():
                raise RecordingError(f"{self.path}: {number}/{name}: expected step.N/NAME, with N a whole number")
            step = int(number[5:])
        group, path = self._group(step), path_of(name)
        further = (g for g in group.values() if isinstance(g, h5py.Group) and not self._prefix("", g))
        for inside in (group, *further):
            if isinstance(inside.get(path), h5py.Dataset):
                return inside[path]
        raise KeyError(printed(f"{self.path}: no checkpoint named {name} in step {step}"
                               f"{hint(name, self.names(step))}"))

    def _numbers(self, dataset: Any, name: str) -> np.ndarray:
        a = np.asarray(dataset[()])
        said = text_of(dataset.attrs.get("digest", ""))
        found = digest_of(a) if said else said
        if found not in (said, None):
            raise RecordingError(f"{self.path}: {name}: its numbers do not match their digest: the file was changed or "
                                 f"is damaged")
        return a

    def __getitem__(self, name: str) -> np.ndarray:
        """The values of a checkpoint: of step 0 for "layer3.q_rope", of step 2 for "step.2/layer3.q_rope".

        The array is in memory and yours. Its axes, outermost first, are attributes(name)["axes"]: (T, H, K) for "token
        head dim". Its values are the engine's own, not scaled; bfloat16 and 8-bit formats as float32, which is exact.

        Raises KeyError: no such checkpoint; the message names a near one. RecordingError: the file has no such step;
        the tensor's type contradicts its attribute dtype; its numbers contradict their digest.
        """
        d = self._dataset(name)
        word = text_of(d.attrs.get("dtype", ""))
        if word in SAID and d.dtype != np.dtype(STORED[word]):
            raise RecordingError(f"{self.path}: {name}: {d.dtype} with the attribute dtype = {word}")
        return values(self._numbers(d, name), word)

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

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def open(path: str) -> Recording:
    """Open a checkpoint file to read it. Raises RecordingError: it does not exist, or is not a vernier checkpoint
    file."""
    return Recording(path)
