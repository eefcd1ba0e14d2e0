"""runs.py: makes correct recordings, so that the self-test needs no data: a small synthetic model, run by the reference
engine in every precision, with three tokens decoded after the prompt; and, for a few points, with as many tokens as are
needed to judge a channel."""

import os
import shutil
from concurrent.futures import Executor
from typing import List, NamedTuple, Optional

from .pair import Pair
from .program import Program


class _Length(NamedTuple):
    prompt: int
    decoded: int
    points: str


_WHOLE, _MANY_STEPS = _Length(17, 3, "*"), _Length(3, 9, "layer*.{q_rope,output}")
_PAIRS = (("f32", "f64"), ("f16", "f32"), ("f16-acc16", "f32"), ("bf16", "f32"))  # name and precision; the reference's


class OwnRuns:
    """The recordings, in a folder."""

    def __init__(self, program: Program, folder: str, pool: Executor) -> None:
        self._program, self._folder = program, folder
        self._model, unrelated = os.path.join(folder, "model"), os.path.join(folder, "unrelated")
        for path, seed in ((self._model, "0"), (unrelated, "1")):
            program.make("synth", "tiny", "-o", path, "--layers", "2", "--dtype", "f32", "--seed", seed)
        precisions = ["f64", *(name for name, _ in _PAIRS)]
        jobs = [("run", self._model, p, _WHOLE, 1) for p in precisions]
        jobs += [("steps", self._model, p, _MANY_STEPS, 1) for p in precisions]
        for p in ("f32", "f16"):
            jobs += [("earlier", self._model, p, _WHOLE, 2), ("unrelated", unrelated, p, _WHOLE, 1)]
        list(pool.map(lambda job: self._record(*job), jobs))

    def pairs(self, limits: Optional[str], pool: Executor) -> List[Pair]:
        return list(pool.map(lambda i: self._pair(i, limits), range(len(_PAIRS))))

    def _path(self, what: str, precision: str) -> str:
        return os.path.join(self._folder, f"{what}.{precision}.h5")

    def _record(self, what: str, model: str, precision: str, length: _Length, first: int) -> None:
        ids = [str((first + 37 * i) % 512) for i in range(length.prompt + length.decoded)]  # any serve; all differ
        self._program.make("capture", "ref", model, "--ids", ",".join(ids[: length.prompt]), "--force-ids",
                           ",".join(ids[length.prompt:]), "--points", length.points, "--precision", precision, "-o",
                           self._path(what, precision))

    def _floor(self, what: str, precision: str) -> str:
        """The same run again, because the floor must not be the candidate."""
        path = self._path(f"{what}.floor", precision)
        shutil.copyfile(self._path(what, precision), path)
        return path

    def _pair(self, i: int, limits: Optional[str]) -> Pair:
        name, ref = _PAIRS[i]
        p, steps = (Pair(self._program, name, self._path(what, ref), self._path(what, name),
                         self._floor(what, name) if i else None, self._model, limits,
                         earlier=self._path("earlier", name) if what == "run" and i < 2 else None,
                         unrelated=self._path("unrelated", name) if what == "run" and i < 2 else None,
                         numbers_alone=what == "run" and i >= 2) for what in ("run", "steps"))
        p.steps = steps
        return p
