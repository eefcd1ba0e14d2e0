"""choices.py: choices of the largest scores (the experts of a token, by top-k) that a candidate did not record.

Where the score of the last choice and that of the next lie within the error of the scores, a right engine may choose
either, and what follows then differs by far more than rounding. Such a choice is *undecided*. Where the candidate's
results show that it made another one (their errors are smaller so), the reference does the same.
"""

from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import torch
from torch.overrides import TorchFunctionMode

# Times the error of a score (rms). Two scores of a candidate, each off by up to two floors, differ
# by 2.8 of these. More hides nothing: a choice is taken only where the candidate's results show it.
WITHIN = 6.0
FUNCTIONS = (torch.topk, torch.Tensor.topk)
Change = Callable[[Any, Any], Any]  # scores, the ids of the largest -> ids


class Choice(NamedTuple):
    """The ids (..., k) of the k largest of scores (..., n), k < n."""

    ids: Any
    scores: Any  # float64


class Choices(TorchFunctionMode):
    """Keeps the choices of the calls inside it, in order. change: by number of the choice, what makes it another."""

    def __init__(self, change: Sequence[Optional[Change]] = ()) -> None:
        super().__init__()
        self.made: List[Choice] = []
        self._change = change

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func not in FUNCTIONS:
            return out
        scores = args[0] if args else kwargs["input"]
        dim = args[2] if len(args) > 2 else (kwargs or {}).get("dim", -1)
        if dim not in (-1, scores.ndim - 1) or not scores.is_floating_point() or out[1].shape[-1] == scores.shape[-1]:
            return out
        change = self._change[len(self.made)] if len(self.made) < len(self._change) else None
        ids = change(scores, out[1]) if change else out[1]
        self.made.append(Choice(ids, scores.double()))
        return type(out)((scores.gather(-1, ids), ids)) if change else out


def undecided(fine: Choice, coarse: Choice, by: int) -> Any:
    """The rows (...) whose last choice rounding may exchange for the one that is `by` places behind it; 0: for itself.
    Of two runs that chose the same."""
    k = fine.ids.shape[-1]
    if fine.scores.shape != coarse.scores.shape or fine.ids.shape != coarse.ids.shape or k + by > fine.scores.shape[-1]:
        return torch.zeros(fine.ids.shape[:-1], dtype=torch.bool, device=fine.ids.device)
    off = (coarse.scores - fine.scores).square()
    off = torch.where(off.isfinite(), off, 0).mean(-1).sqrt()
    best = fine.scores.topk(k + by, -1).values
    return best[..., k - 1] - best[..., k + by - 1] <= WITHIN * torch.maximum(off, off.median())


def exchanged(by: Any) -> Change:
    """What exchanges the last choice of each row (...) for the one that is so many places behind it."""
    def change(scores: Any, ids: Any) -> Any:
        order, k = scores.argsort(-1, descending=True), ids.shape[-1]
        last, other = order[..., k - 1 : k], order.gather(-1, k - 1 + by[..., None].long())
        return torch.where(ids == last, other, ids)
    return change


def as_in(choice: Choice) -> Change:
    """What makes a choice that of another run."""
    return lambda scores, ids: choice.ids if choice.ids.shape == ids.shape else ids
