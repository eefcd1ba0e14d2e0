"""dims.py: the axes of tensors that are put, and whether their lengths fit the call and the tensors before."""

import re
from typing import Dict, List, Optional, Tuple

import numpy as np

from . import points
from .families import Row
from .globs import hint
from .names import place_of, words_of
from .numbers import RecordingError
from .tokens import Tokens

MOST_AXES = 6
LONGEST = 63  # bytes of dims
SAME = ("hidden", "vocab")  # axes that have the same length in every tensor of a run
FREE = ("token", "key", "block", "slot")  # axes whose length is another in other steps


class Dims:
    """Those of a run."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._shapes: Dict[str, Tuple[int, ...]] = {}
        self._sizes: Dict[str, Tuple[int, str]] = {}

    def of(self, name: str, a: np.ndarray, said: Optional[str], row: Optional[Row], tokens: Tokens,
           rows: int) -> Tuple[np.ndarray, str]:
        """(the array, its axes). said: the caller's; row: of a checkpoint; rows: how many tokens are put in the call.
        Raises RecordingError: they do not fit."""
        axes = said if said is not None else self._own(name, a, row)
        if axes.split()[:1] == ["batch"] and a.shape[:1] == (1,) and tokens.alone:
            a, axes = a[0], axes.split(None, 1)[-1]
        what = f"{self._path}: {name}"
        words = self._words(what, a, axes, row)
        # engines may compute what is behind the layers for the last token only
        few = (1, tokens.prompts()) if place_of(name)[1] in points.BEHIND else ()
        for word, size in zip(words, a.shape):
            expected = {"token": rows, "batch": tokens.batch}.get(word, size)
            packed = word == "batch" and size == tokens.prompts()  # a state of each prompt
            if size != expected and not packed and not (word == "token" and size in few):
                raise RecordingError(f"{what}: shape {a.shape} as '{axes}': {size} {word}, expected {expected}")
            if word in SAME and self._sizes.setdefault(word, (size, name))[0] != size:
                first = self._sizes[word]
                raise RecordingError(f"{what}: shape {a.shape} as '{axes}': {size} {word}, "
                                     f"and {first[1]} has {first[0]}")
        fixed = tuple(s for w, s in zip(words, a.shape) if axes and w not in FREE)
        if self._shapes.setdefault(name, fixed) != fixed:
            raise RecordingError(f"{what}: shape {a.shape} as '{axes}' is not that of an earlier step")
        return a, axes

    def _own(self, name: str, a: np.ndarray, row: Optional[Row]) -> str:
        if row is None:
            raise RecordingError(f"{self._path}: {name}: not a checkpoint that vernier knows, so it needs dims: "
                                 f"\"token head dim\"")
        n = len(row.axes.split())
        if a.ndim not in (n, n + 1):
            raise RecordingError(f"{self._path}: {name}: rank {a.ndim}, expected {n} ({row.axes})")
        return row.axes if a.ndim == n else "batch " + row.axes

    @staticmethod
    def _words(what: str, a: np.ndarray, axes: str, row: Optional[Row]) -> List[str]:
        """The axes as a word for each."""
        words = words_of(axes)
        if not axes and not row:  # a name map knows them
            words = [f"n{i}" for i in range(a.ndim)]
        if len(words) != a.ndim or not words or len(set(words)) != len(words):
            raise RecordingError(f"{what}: dims '{axes}' for an array of shape {a.shape}: one word per axis, "
                                 "no word twice")
        if a.size == 0 or a.ndim > MOST_AXES:
            raise RecordingError(f"{what}: shape {a.shape}; no empty axis and at most {MOST_AXES} axes")
        if len(" ".join(axes.split()).encode()) > LONGEST:
            raise RecordingError(f"{what}: dims of more than {LONGEST} bytes")
        if axes != axes.lower() or re.search(r"[()]", re.sub(r"\([^()]*\)", "", axes)):
            raise RecordingError(f"{what}: dims '{axes}': expected words in small letters, several of one axis in "
                                 f"brackets")
        # compare identifies the axes of a checkpoint by these words
        for word in re.findall(r"[^\s()]+", axes) if row else ():
            if not word.isdecimal() and word not in points.words():
                has = hint(word, points.words()) or f"; {what.rpartition(' ')[2]} has '{row.axes}'"
                raise RecordingError(f"{what}: dims '{axes}': unknown axis '{word}'{has}")
        return words
