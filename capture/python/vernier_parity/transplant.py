"""transplant.py: results of the reference in place of the candidate's, in a run of the candidate
(`record(replace=)`)."""

import contextlib
from typing import Any, List, Mapping, Sequence, Tuple

import torch

from .candidate import Candidate
from .numbers import RecordingError
from .rows import Row, places_read


def results_of(path: str, rows: Sequence[Row]) -> List[Tuple[int, str]]:
    """(step, name) of what a module gives to others: results inside it that are read outside it."""
    inside = lambda r: bool(r["path"] == path or r["path"].startswith(path + ".")) and r["op"] != "result"
    made = {(r["step"], name) for r in rows if inside(r) for name in r["out"]}
    read = {place for r in rows if not inside(r) for place in places_read(r)}
    return sorted(made & read)  # type: ignore[operator]


class Transplants:
    """The recorded results of modules, for a run of another engine."""

    def __init__(self, replace: Mapping[str, str], path: str) -> None:
        """replace: a recording by the path of a module. path: of the recording that begins. Raises RecordingError: the
        module made nothing there, or what it made is not recorded."""
        self.path, self.held, self.used = path, {}, set()  # type: ignore[var-annotated]
        with contextlib.ExitStack() as files:
            refs = {p: files.enter_context(Candidate(p)) for p in set(replace.values())}
            for module, p in replace.items():
                found = results_of(module, refs[p].rows)
                lost = [name for step, name in found if (step, name) not in refs[p].held]
                if lost or not found:
                    raise RecordingError(f"replace: {p}: {module}: " + (
                        f"its result {lost[0]} is not recorded; record with functions=" if lost else
                        "no module of this path has a result that others read"))
                self.held.update({k: refs[p].tensor(*k) for k in found})

    def __call__(self, step: int, name: str, t: Any) -> None:
        """Put the reference's numbers into a result, if it is one of a replaced module."""
        there = self.held.get((step, name))
        if there is None:
            return
        value = torch.view_as_complex(there) if t.is_complex() else there
        if value.numel() != t.numel():
            raise RecordingError(f"{self.path}: replace: {name}: shape {tuple(t.shape)}, and the reference's is "
                                 f"{tuple(value.shape)}")
        t.data.copy_(value.reshape(t.shape))  # no write that a reader could notice
        self.used.add((step, name))

    def finish(self) -> None:
        left = sorted(set(self.held) - self.used)
        if left:
            raise RecordingError(f"{self.path}: replace: step {left[0][0]} made no {left[0][1]}")
