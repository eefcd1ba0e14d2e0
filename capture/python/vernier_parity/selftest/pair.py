"""pair.py: two correct recordings, how they are compared, and which of their tensors mutations can change."""

from typing import Dict, List, Optional, Set, Tuple

import numpy as np

from .program import Program
from .side import WIDE, Side, Tensor

CHANNEL_ROWS, FEWEST_ROWS = 32, 8  # sampled rows of a channel; the fewest different ones that judge it


class Pair:
    """An opened pair. numbers_alone: mutations that do not depend on the precision are left to another pair. steps:
    the pair for mutations of later steps; None: this one."""

    def __init__(self, program: Program, name: str, ref: str, cand: str, floor: Optional[str] = None,
                 model: Optional[str] = None, limits: Optional[str] = None, earlier: Optional[str] = None,
                 unrelated: Optional[str] = None, numbers_alone: bool = False) -> None:
        self.program, self.name, self.model, self.limits = program, name, model, limits
        self.earlier, self.unrelated, self.numbers_alone = earlier, unrelated, numbers_alone
        self.ref, self.cand = Side(ref, program), Side(cand, program)
        self.floor = Side(floor, program) if floor else None
        self.steps: Optional["Pair"] = None
        self.recurrent = False  # the limits are those of models with a recurrence
        self._shared: Set[int] = set()  # of the candidate: see _find_second_names
        self._find_second_names(self.ref, self.cand)
        self._find_second_names(self.cand, self.ref)
        self._alike: Dict[Tuple[int, int], bool] = {}
        self._channels: Dict[Tuple[str, int, bool], bool] = {}
        self._floors: Dict[int, float] = {}

    def close(self) -> None:
        for side in (self.ref, self.cand, self.floor):
            if side:
                side.close()
        if self.steps:
            self.steps.close()

    @property
    def planned(self) -> bool:
        return self.ref.plan is not None and self.cand.plan is not None

    def _find_second_names(self, of: Side, other: Side) -> None:
        """A tensor that one side stores once under two names, and the other side twice, cannot be changed alone."""
        for t in of.tensors:
            there = other.find(t.step, t.name) if t.same_as else None
            if not there or there.same_as == t.same_as:
                continue
            for name in (t.name, t.same_as):
                mine = self.cand.find(t.step, name or "")
                if mine:
                    self._shared.add(mine.at)

    # ---- one tensor ----------------------------------------------------------------------------

    def is_plain(self, t: Tensor, tokens: int) -> bool:
        """Whether the token axis is first and the tensor has the same name on both sides. In 8 bits or in integers a
        small change would be lost."""
        there = self.ref.find(t.step, t.name)
        words = t.words
        return (t.at not in self._shared and not t.same_as and t.dtype in WIDE and len(t.shape) >= 2
                and (not words or words[0] == "token") and there is not None and there.name == t.name
                and there.shape == t.shape and t.shape[0] >= tokens and t.columns >= 8)

    def is_later(self, t: Tensor, other: Tensor) -> bool:
        """Does it come later in the order of either side? An engine may omit the order."""
        a, b = self.ref.find(t.step, t.name), self.ref.find(other.step, other.name)
        return other.at > t.at and a is not None and b is not None and b.at > a.at

    def other_numbers(self, t: Tensor, other: Tensor) -> bool:
        """Are these different numbers, not a near copy of slightly earlier ones?"""
        key = (t.at, other.at)
        if key not in self._alike:
            self._alike[key] = _nmse(self.cand.numbers(t), self.cand.numbers(other)) > 0.3
        return self._alike[key]

    def floor_of(self, t: Tensor) -> float:
        """The error that the format alone causes; infinite: unknown."""
        if t.at not in self._floors:
            r = self.ref.find(t.step, t.name)
            f = self.floor.find(t.step, t.name) if self.floor else None
            error = _nmse(self.ref.numbers(r), self.floor.numbers(f)) if (
                self.floor and r and f and f.shape == t.shape) else 0.0
            self._floors[t.at] = error or np.inf
        return self._floors[t.at]

    def is_coarse(self, t: Tensor) -> bool:
        """Whether the run stores or accumulates in less than f16."""
        word = self.cand.precision.lower()
        for start in ("torch.", "autocast-", "mixed-", "torch."):
            word = word[len(start):] if word.startswith(start) else word
        return t.dtype == "bf16" or word in ("", "bf16", "bfloat16", "f16-acc16")

    # ---- steps of one token --------------------------------------------------------------------

    @property
    def first_step(self) -> int:
        return self.cand.tensors[0].step if self.cand.tensors else 0

    @property
    def last_step(self) -> int:
        return self.cand.tensors[-1].step if self.cand.tensors else 0

    @staticmethod
    def one_token_steps(side: Side, t: Tensor) -> List[Tensor]:
        """t's checkpoint in the single-token steps that have it in t's form."""
        all_of = (side.find(s.number, t.name) for s in side.steps if s.rows == 1)
        return [x for x in all_of if x and x.dtype == t.dtype and x.shape == t.shape]

    def has_channels(self, t: Tensor, in_steps: bool = False) -> bool:
        """Whether its channels can be judged: 8 different rows among those that a comparison samples in it, or in its
        steps of one token."""
        key = (t.name, t.step, in_steps)
        if key not in self._channels:
            r = self.ref.find(t.step, t.name)
            if r is None:
                self._channels[key] = False
            elif in_steps:
                steps = self.one_token_steps(self.ref, r)
                rows = [self.ref.numbers(steps[i])[0] for i in _sampled(len(steps))] if steps else []
                self._channels[key] = bool(steps) and steps[0].step == t.step and _different(rows) >= FEWEST_ROWS
            else:
                x = self.ref.numbers(r)
                self._channels[key] = _different([x[i] for i in _sampled(t.shape[0])]) >= FEWEST_ROWS
        return self._channels[key]


def _nmse(x: np.ndarray, y: np.ndarray) -> float:
    """sum (y-x)^2 / sum x^2 over the numbers that are finite on both sides; NaN if x has none but zeros."""
    with np.errstate(all="ignore"):
        good = np.isfinite(x) & np.isfinite(y)
        x, y = x[good], y[good]
        size = float(np.dot(x, x))
        return float(np.dot(y - x, y - x)) / size if size else np.nan


def _sampled(n: int) -> List[int]:
    """The rows that a comparison samples of n, to judge channels: one from each stretch, at uneven places."""
    rows, mixes, low = min(n, CHANNEL_ROWS), 0xE2EAC659, 0xFFFFFFFF
    out = []
    for i in range(rows):
        start, end = i * n // rows, (i + 1) * n // rows
        h = (i + 1) * mixes & low
        h = (h ^ h >> 15) * mixes & low
        h ^= h >> 16
        out.append(start + (h * (end - start) >> 32))
    return out


def _different(rows: List[np.ndarray]) -> int:
    """How many rows are different tokens (limits.md): a quarter of a row's first 64 numbers differ by a 16th from
    those of each row before it."""
    kept: List[np.ndarray] = []
    for y in (r[:64] for r in rows):
        if all(4 * int((16.0 * np.abs(x - y) > np.fmax(np.abs(x), np.abs(y))).sum()) >= len(y) for x in kept):
            kept.append(y)
    return len(kept)
