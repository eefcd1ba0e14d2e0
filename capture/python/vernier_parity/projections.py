"""projections.py: mistakes below the floor: an error is compared with the difference that a variant of the operation
would make. share: how much of that difference the error contains: 1 if the candidate has the variant, 0 if not.
"""

import math
from typing import Any, Dict, List, Optional

import torch

from . import variants
from .compute import Pass
from .tracer import Node

LEAST_NUMBERS = 10.0  # that carry the difference: one number proves nothing
MOST_SIGMAS = 3.0  # that one number counts: of very small ones a rounding is far less than any kernel's error
MOST_ERROR = 0.5  # a share with a larger standard error says nothing


def of_node(p: Pass, n: Node, right: Any, cand: Any, floor: Optional[Any]) -> List[Dict[str, Any]]:
    """The shares of the small variants in the error of a node's first result. p: what computes the node; right, floor:
    what it and the model in the candidate's format give."""
    if not (right.is_floating_point() and cand.is_floating_point() and cand.shape == right.shape
            and variants.has_small(n)):
        return []
    found, error = [], Error(cand, right, floor)
    for v in variants.of_node(p.trace, n, *p.arguments(n), right, small=True):
        share = error.share_of(p.compute(n, v.instead[n.index])[0])
        if share is not None:
            found.append(dict(what=v.what, due=v.due, share=share[0], error=share[1], **{"is": v.is_}))
    return found


class Error:
    """The error of a result, weighed by what is due to each number: one rounding, and what the model in the candidate's
    format errs by."""

    def __init__(self, cand: Any, right: Any, floor: Optional[Any]) -> None:
        a = self._right = right.double().cpu()
        f = torch.zeros_like(a)
        if floor is not None and floor.numel() == a.numel():
            f = floor.double().cpu().reshape(a.shape) - a
        ulp = torch.ldexp(torch.full_like(a, torch.finfo(cand.dtype).eps), torch.frexp(a)[1] - 1)
        e, w = cand.double() - a, 1 / (ulp ** 2 / 12 + f ** 2 + 1e-300)
        self._known = e.isfinite() & f.isfinite()
        self._e, self._f, self._w = (torch.where(self._known, t, 0.0) for t in (e, f, w))

    def share_of(self, other: Any) -> Any:
        """(share, its standard error) of the difference other - right in the error cand - right; None: it says
        nothing."""
        d = other.double().cpu() - self._right
        d = torch.where(self._known & d.isfinite(), d, 0.0)
        w = torch.minimum(self._w, MOST_SIGMAS ** 2 / (d * d + 1e-300))
        wd = w * d
        dd = wd * d
        total = float(dd.sum())
        if not total > 0 or total ** 2 < LEAST_NUMBERS * float((dd * dd).sum()):
            return None
        share = float((wd * self._e).sum()) / total
        spread = float((wd * (self._e - share * d)).pow(2).sum()) ** 0.5 / total
        error = max(spread, 1 / math.sqrt(total))
        own = float((wd * self._f).sum()) / total  # the model's own run in this format errs in this direction
        if error > MOST_ERROR or abs(own) > max(0.25, 4 * error):
            return None
        return share, error
