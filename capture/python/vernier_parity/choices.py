"""choices.py: choices of the largest or least scores (the experts of a token, by top-k) that a candidate did not
record.

Where the score of the last choice and that of the next lie within the error of the scores, a right engine may choose
either, and what follows then differs by far more than rounding. Such a choice is *undecided*. Where the candidate's
results show that it made another one (their errors are smaller so), the reference does the same.
"""

import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

import torch
from torch.overrides import TorchFunctionMode

# Times the error of a score (rms). Of 3,000 rows, one tie was 5.7 apart. More hides nothing: a
# choice is taken only where the candidate's results show it.
WITHIN = 8.0
TIE = 1.5  # roundings of recorded scores: a little more than one
# ways to make another choice: which of the chosen ones, 0: the last, goes to the one so many places
# behind the last; 0: none
WAYS = ((0, 0), (0, 1), (0, 2), (1, 1), (2, 1), (3, 1), (4, 1))
NAMES = ("topk", "max", "min", "argmax", "argmin")
FUNCTIONS = {getattr(where, name): name for where in (torch, torch.Tensor) for name in NAMES}
NARROW = (torch.bfloat16, torch.float16, torch.float32)  # the coarsest first
Change = Callable[[Any, Any], Any]  # scores, the ids of the largest -> ids


class Choice(NamedTuple):
    """The ids (..., k) of the k largest of scores (..., n), k < n."""

    ids: Any
    scores: Any  # float64
    eps: float = 0.0  # of the format of the scores


class Choices(TorchFunctionMode):
    """Keeps the choices of the calls inside it, in order. change: by number of the choice, what makes it another.
    narrow: the coarsest format of less than 64 bits of a call's results."""

    def __init__(self, change: Sequence[Optional[Change]] = ()) -> None:
        super().__init__()
        self.made: List[Choice] = []
        self.narrow: Any = None
        self.idle: Set[int] = set()  # numbers of choices of which only the scores are read
        self._change = change
        self._unread: Dict[int, Any] = {}  # number -> its ids

    def __exit__(self, *e: Any) -> None:
        super().__exit__(*e)
        self.idle = {k for k, ids in self._unread.items() if ids() is None}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        read = [t for x in (*args, *kwargs.values()) for t in (x if isinstance(x, (tuple, list)) else (x,))]
        self._unread = {k: ids for k, ids in self._unread.items() if not any(t is ids() for t in read)}
        out = func(*args, **kwargs)
        self.narrow = coarsest(self.narrow, *(getattr(t, "dtype", None) for t in (
            out if isinstance(out, (tuple, list)) else (out,))))
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
        self.made.append(Choice(chosen.detach(), order.double(), torch.finfo(order.dtype).eps))
        if change:
            found = [t if keep else t[..., 0] for t in (scores.gather(-1, chosen), chosen)]
            out = found[1] if whole else type(out)(found)
        self._unread[len(self.made) - 1] = weakref.ref(out if whole else out[1])
        return out


def coarsest(*formats: Any) -> Any:
    """None: none of NARROW."""
    return next((f for f in NARROW if f in formats), None)


def distance(fine: Choice, coarse: Choice, way: int) -> Any:
    """By row (...), of two runs that chose the same: how far the two scores that a way exchanges are from each other,
    in errors of a score. Scores without errors are the candidate's: they are equal within a rounding."""
    k, (which, by) = fine.ids.shape[-1], WAYS[way]
    if fine.scores.shape != coarse.scores.shape or fine.ids.shape != coarse.ids.shape or which >= k or \
            k + by > fine.scores.shape[-1]:
        return torch.full(fine.ids.shape[:-1], torch.inf, device=fine.ids.device)
    off = (coarse.scores - fine.scores).square()
    off = torch.where(off.isfinite(), off, 0).mean(-1).sqrt()
    best = fine.scores.topk(k + by, -1).values
    gap = best[..., k - 1 - which] - best[..., k + by - 1]
    off = torch.maximum(off, off.median())
    rounding = TIE * coarse.eps / 2 * torch.ldexp(torch.ones_like(gap), best[..., k - 1 - which].frexp().exponent)
    off = torch.where(off > 0, off, rounding / WITHIN)
    return torch.where(gap > 0, gap / off, 0.0).nan_to_num(torch.inf)


def undecided(fine: Choice, coarse: Choice, way: int) -> Any:
    """The rows (...) of which rounding may exchange the choice in this way. Of two runs that chose the same."""
    return distance(fine, coarse, way) <= WITHIN


def exchanged(way: Any) -> Change:
    """What exchanges the choice of each row (...) in a way. Of equal scores, others may be chosen than a sort puts in
    front."""
    def change(scores: Any, ids: Any) -> Any:
        which, by = torch.tensor(WAYS, device=ids.device)[way.long()].unbind(-1)
        which = which[..., None].clamp(max=ids.shape[-1] - 1)
        own = scores.gather(-1, ids).argsort(dim=-1, stable=True).gather(-1, which)
        order = scores.scatter(-1, ids, -torch.inf).argsort(-1, descending=True)
        other = order.gather(-1, (by[..., None] - 1).clamp(min=0))
        return torch.where(by[..., None] > 0, ids.scatter(-1, own, other), ids)
    return change


def as_in(choice: Choice) -> Change:
    """What makes a choice that of another run."""
    return lambda scores, ids: choice.ids if choice.ids.shape == ids.shape else ids
