"""choices.py: choices of the largest or least scores (the experts of a token, by top-k) that a candidate did not
record.

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
NAMES = ("topk", "max", "min", "argmax", "argmin")
FUNCTIONS = {getattr(where, name): name for where in (torch, torch.Tensor) for name in NAMES}
NARROW = (torch.float32, torch.float16, torch.bfloat16)
Change = Callable[[Any, Any], Any]  # scores, the ids of the largest -> ids


class Choice(NamedTuple):
    """The ids (..., k) of the k largest of scores (..., n), k < n."""

    ids: Any
    scores: Any  # float64


class Choices(TorchFunctionMode):
    """Keeps the choices of the calls inside it, in order. change: by number of the choice, what makes it another.
    narrow: whether a call made numbers of less than 64 bits."""

    def __init__(self, change: Sequence[Optional[Change]] = ()) -> None:
        super().__init__()
        self.made: List[Choice] = []
        self.narrow = False
        self._change = change

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self.narrow = self.narrow or getattr(out, "dtype", None) in NARROW
        name = FUNCTIONS.get(func, "")
        if not name:
            return out
        given = lambda place, word, other: args[place] if len(args) > place else kwargs.get(word, other)
        scores, dim, keep = given(0, "input", None), given(1 + (name == "topk"), "dim", None), name == "topk" or given(
            2, "keepdim", False)
        least = "min" in name or (name == "topk" and not given(3, "largest", True))
        if name == "topk":
            dim = -1 if dim is None else dim
        if not isinstance(dim, int) or dim not in (-1, scores.ndim - 1) or not scores.is_floating_point():
            return out
        whole = isinstance(out, torch.Tensor)  # ids alone
        ids = out if whole else out[1]
        ids = ids if keep else ids[..., None]
        if ids.shape[-1] == scores.shape[-1]:
            return out
        change = self._change[len(self.made)] if len(self.made) < len(self._change) else None
        order = -scores if least else scores
        chosen = change(order, ids) if change else ids
        self.made.append(Choice(chosen, order.double()))
        if not change:
            return out
        found = [t if keep else t[..., 0] for t in (scores.gather(-1, chosen), chosen)]
        return found[1] if whole else type(out)(found)


def distance(fine: Choice, coarse: Choice, by: int) -> Any:
    """By row (...), of two runs that chose the same: how far the score of the last choice lies from that of the one
    that is `by` places behind it, in errors of a score."""
    k = fine.ids.shape[-1]
    if fine.scores.shape != coarse.scores.shape or fine.ids.shape != coarse.ids.shape or k + by > fine.scores.shape[-1]:
        return torch.full(fine.ids.shape[:-1], torch.inf, device=fine.ids.device)
    off = (coarse.scores - fine.scores).square()
    off = torch.where(off.isfinite(), off, 0).mean(-1).sqrt()
    best = fine.scores.topk(k + by, -1).values
    gap = best[..., k - 1] - best[..., k + by - 1]
    return torch.where(gap > 0, gap / torch.maximum(off, off.median()), gap).nan_to_num(torch.inf)


def undecided(fine: Choice, coarse: Choice, by: int) -> Any:
    """The rows (...) whose last choice rounding may exchange for the one that is `by` places behind it; 0: for itself.
    Of two runs that chose the same."""
    return distance(fine, coarse, by) <= WITHIN


def exchanged(by: Any) -> Change:
    """What exchanges the last choice of each row (...) for the one that is so many places behind it. Of equal scores,
    others may be chosen than a sort puts in front."""
    def change(scores: Any, ids: Any) -> Any:
        last = ids.gather(-1, scores.gather(-1, ids).argmin(-1, keepdim=True))
        order = scores.scatter(-1, ids, -torch.inf).argsort(-1, descending=True)
        other = torch.where(by[..., None] > 0, order.gather(-1, (by[..., None].long() - 1).clamp(min=0)), last)
        return torch.where(ids == last, other, ids)
    return change


def as_in(choice: Choice) -> Change:
    """What makes a choice that of another run."""
    return lambda scores, ids: choice.ids if choice.ids.shape == ids.shape else ids
