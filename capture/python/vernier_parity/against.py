"""against.py: judges the tensors of a run by a reference during recording, so that only tensors that differ are
written.

Tensors with equal digests agree. Otherwise the numbers of the reference are read, and the nmse,
sum (c - r)^2 / sum r^2, decides, as in the C library. This only selects what is written: the verdict
is that of `vernier compare`, which judges the numbers measured here by its limits.
"""

import json
import math
import os
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import h5py
import numpy as np

from . import h5
from .names import path_of, place_of
from .numbers import PLAIN, SAID, RecordingError, digest, values

WIDE, NARROW = 1e-9, 1e-5  # the nmse up to which a tensor agrees: of 4 bytes and more, of fewer
BLOCK = 1 << 20  # numbers per pass
SCORES = "logits"  # left out only if the digests are equal, because compare judges more metrics than nmse


class Waiting(NamedTuple):
    """A tensor that agrees. It is written if a later tensor of its layer differs."""
    name: str
    layer: int
    write: Any  # the function that writes it
    line: str
    again: List[str]  # its second names


def nmse(c: np.ndarray, word: str, r: np.ndarray, ref_word: str) -> Tuple[float, float]:
    """(nmse, largest difference) in float64; NaN where a number is not finite."""
    error = square = most = 0.0
    c, r = c.reshape(-1), r.reshape(-1)
    for at in range(0, c.size, BLOCK):
        x = values(r[at : at + BLOCK], ref_word).astype(np.float64)
        d = values(c[at : at + BLOCK], word).astype(np.float64) - x
        error, square, most = (error + float(np.dot(d, d)), square + float(np.dot(x, x)),
                               max(most, float(np.abs(d).max(initial=0.0))))
    return (error / square if square else math.nan if math.isnan(error) else math.inf if error else 0.0), most


class Against:
    """The reference, and the tensors of the run that agree with it."""

    def __init__(self, path: str, keep_above: Optional[float]) -> None:
        self.path, self.keep_above = os.fspath(path), keep_above
        if digest(b"") is None:
            raise RecordingError("against needs digests: install xxhash")
        if keep_above is not None and not 0 <= keep_above < 1:
            raise RecordingError(f"keep_above: {keep_above}; expected an nmse from 0 to 1")
        self.file = h5.opened(self.path, "against: ")
        if (h5.text_of(self.file.attrs.get("format", "")) != "vernier-checkpoint"
            or self.file.attrs.get("complete") != 1):
            self.file.close()
            raise RecordingError(f"against: {self.path}: not a complete recording")
        self.lines: List[str] = []
        self.waiting: Dict[str, Waiting] = {}
        self.left: Set[str] = set()  # names of this step that are left out
        self.judged = 0
        self.first: Optional[str] = None  # name of the first tensor that differs

    def limit(self, word: str) -> float:
        if self.keep_above is not None:
            return self.keep_above
        return WIDE if word in ("f32", "f64", "i32") else NARROW

    def _judge(self, step: int, name: str, a: np.ndarray, word: str, own: str) -> Tuple[Optional[bool], str]:
        """(agrees, line): agrees: None if the tensor cannot be judged; line: the tensor's line of left_out."""
        d = self.file.get(f"step.{step}/{path_of(name)}")
        if not isinstance(d, h5py.Dataset):
            return None, ""
        ref = h5.text_of(d.attrs.get("digest", ""))
        said = h5.text_of(d.attrs.get("dtype", ""))
        ref_word = said if said in SAID else PLAIN.get(d.dtype)
        if not ref or ref_word is None or not a.size:
            return None, ""
        if d.shape != a.shape:
            return False, ""
        flat = values(a.reshape(-1), word)
        if not np.isfinite(flat).all() or (flat == flat[0]).all():
            return None, ""
        measured: Dict[str, float] = {}
        if not (ref == own and ref_word == word):
            if name.rpartition(".")[2] == SCORES:
                return False, ""
            off, most = nmse(a, word, d[()], ref_word)
            if not off <= self.limit(word):
                return False, ""
            measured = {"nmse": off, "max_abs": most, "nonfinite": 0}
        return True, json.dumps({"step": step, "name": name, "dtype": word, "shape": list(a.shape), "digest": own,
                                 "reference": ref,
                                 "measured": measured}, ensure_ascii=False)

    def leave_out(self, but: Optional[int] = None) -> None:
        """Leave out the waiting tensors, except those of the layer `but` and the tensor put before that layer."""
        kept = list(self.waiting.values())
        before = [w.name for w in kept if w.layer != but]
        last = before[-1] if before and but is not None else None
        self.waiting = {}
        for w in kept:
            if but is not None and (w.layer == but or w.name == last):
                self.waiting[w.name] = w
            else:
                self.lines.append(w.line)
                self.left.add(w.name)

    def put(self, recorder: Any, name: str, a: np.ndarray, word: str, own: str, write: Any) -> None:
        """Judge a tensor: write it, or let it wait if it agrees. Before a tensor that differs, write the waiting
        tensors of its layer and the layer's input. own: its digest."""
        step, layer = recorder.steps - 1, place_of(name)[0]
        agrees, line = self._judge(step, name, a, word, own)
        self.judged += agrees is not None
        self.leave_out(but=layer)
        if agrees:
            self.waiting[name] = Waiting(name, layer, write, line, [])
            return
        if agrees is False:
            for w in self.waiting.values():
                w.write()
                for again in w.again:
                    recorder._link(again, w.name)
            self.waiting = {}
            self.first = self.first or (f"step.{step}/{name}" if step else name)
        write()

    def alias(self, name: str, of: str) -> bool:
        """Keep a second name of a tensor that waits or was left out. Returns False if `of` is in the file."""
        if of in self.waiting:
            self.waiting[of].again.append(name)
        return of in self.waiting or of in self.left

    def begin_step(self) -> None:
        self.leave_out()
        self.left = set()

    def finish(self, run: Any) -> None:
        """Write /run/left_out."""
        self.leave_out()
        if self.lines:
            d = h5.put_lines(run, "left_out", self.lines)
            d.attrs["digest"] = digest(b"".join(line.encode() + b"\0" for line in self.lines))

    def facts(self) -> Dict[str, h5.Fact]:
        said = "nmse at most " + (f"{self.keep_above:g}" if self.keep_above is not None
                                  else f"{WIDE:g} (f32), {NARROW:g} (16 bits)")
        return {"against": self.path, "against_limits": said, "judged": self.judged}
