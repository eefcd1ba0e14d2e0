"""choices.py: choices (the experts of a token) that were not recorded, and that rounding may decide either way.

Where the score of the last choice and that of the next lie within the error of the scores, a right engine may choose
either. What follows then differs by far more than rounding. The floor of a result behind such a choice is therefore
that of a run which chose the other one.
"""

from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from torch.overrides import TorchFunctionMode

WITHIN = 2.0  # times the error of a score (rms)
FUNCTIONS = (torch.topk, torch.Tensor.topk)


class Choice(NamedTuple):
    """The ids (..., k) of the k largest of scores (..., n)."""

    ids: Any
    scores: Any  # float64


class Choices(TorchFunctionMode):
    """Keeps the choices of the calls inside it, in order. instead: ids in place of the choice's own, None for those."""

    def __init__(self, instead: List[Optional[Any]] = []) -> None:  # noqa: B006
        super().__init__()
        self.made: List[Choice] = []
        self._instead = instead

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func not in FUNCTIONS:
            return out
        scores = args[0] if args else kwargs["input"]
        dim = args[2] if len(args) > 2 else (kwargs or {}).get("dim", -1)
        if dim not in (-1, scores.ndim - 1) or not scores.is_floating_point() or out[1].shape[-1] == scores.shape[-1]:
            return out
        ids = self._instead[len(self.made)] if len(self.made) < len(self._instead) else None
        self.made.append(Choice(out[1], scores.double()))
        return out if ids is None else type(out)((scores.gather(-1, ids), ids))


def other_ids(fine: Choice, coarse: Choice) -> Optional[Tuple[Any, int]]:
    """The ids of the finer run with the last one of each undecided row exchanged for the next, those of the coarser run
    in all other rows; and how many rows are undecided. None: none is."""
    k = fine.ids.shape[-1]
    best = fine.scores.topk(k + 1, -1)
    off = (coarse.scores - fine.scores).square().mean(-1).sqrt()
    undecided = best.values[..., k - 1] - best.values[..., k] <= WITHIN * torch.maximum(off, off.median())
    if not undecided.any():
        return None
    last, following = best.indices[..., k - 1 : k], best.indices[..., k :]
    other = torch.where(fine.ids == last, following, fine.ids)
    return torch.where(undecided[..., None], other, coarse.ids), int(undecided.sum())
