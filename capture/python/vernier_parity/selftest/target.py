"""target.py: which tensor of a recording a mutation is made in: of those that qualify, the middle one."""

from typing import Iterable, List, Optional, Tuple

import numpy as np

from .mutation import Mutation, Needs, Size, When
from .pair import Pair
from .side import WIDE, Tensor

Choice = Tuple[Optional[Tensor], Optional[Tensor]]  # target, other
ALONE = ("no floor, and the limits without a floor are wider than this change (give --floor)")


def choose(p: Pair, m: Mutation) -> Tuple[str, Choice]:
    """The reason why the mutation cannot be tried ("": it can), and the tensors that it is made with, among the
    candidate's."""
    none: Choice = (None, None)
    there = {Needs.NOTHING: True, Needs.WEIGHTS: p.cand.weights > 0 and p.ref.weights > 0, Needs.PLAN: p.planned,
             Needs.CONFIG: p.cand.config is not None and p.ref.config is not None, Needs.FLOOR: p.floor is not None,
             Needs.EARLIER: p.earlier is not None, Needs.UNRELATED: p.unrelated is not None}
    if m.needs in there:
        choice, good = none, there[m.needs]
    elif m.size >= Size.FINE and p.floor:
        choice = _quiet(p, m)
        if not choice[0] and (middle := _middle(p, m))[0]:
            return "no such tensor in the floor, or the floor has the reference's own numbers", middle
        good = choice[0] is not None
    else:
        choice = _middle(p, m)
        good = choice[0] is not None
    if not good:
        return _lacking(p, m), none
    return _why_not(p, m, *choice), choice


def _why_not(p: Pair, m: Mutation, target: Optional[Tensor], other: Optional[Tensor]) -> str:
    if m.plan and not p.planned:
        return Needs.PLAN.value
    if m.floor == "recorded" and not p.floor:
        return Needs.FLOOR.value
    if m.floor == "model" and not p.model:
        return "no model (--model)"
    if not target:
        return ""
    unsaid = _unsaid(p, m.claim, target, other)
    if unsaid:
        return unsaid
    coarse = p.is_coarse(target)
    wider = (m.size == Size.FINEST or (m.size == Size.FINER and (coarse or p.recurrent))
             or (m.size == Size.FAIR and coarse and p.recurrent))
    if wider and (not p.floor or m.floor == "none") and not p.limits and WIDE[target.dtype] == 2:
        return ALONE
    return ""


def _unsaid(p: Pair, claim: Optional[str], target: Tensor, other: Optional[Tensor]) -> str:
    """Why a mutation of what a tensor claims about itself cannot be tried."""
    there = p.ref.find(target.step, target.name) or target
    if claim == "basis" and not (target.basis and there.basis):
        return "no basis recorded"
    if claim == "digest" and not (target.digest and there.digest):
        return "no digest recorded, so no change can be detected"
    if claim == "order" and not (target.order >= 0 and other and other.order >= 0):
        return "no order recorded"
    if claim == "statistics" and not target.stated:
        return "no statistics recorded"
    return ""


def _lacking(p: Pair, m: Mutation) -> str:
    if m.when == When.EVERY_STEP:
        return "no tensor inside a layer with 8 different tokens in steps of one"
    if m.when and any(_in_call(p, m.when, t) for t in p.cand.tensors):
        return {Needs.HEADS: "no tensor with heads in such a step",
                Needs.LAYERS: "no tensor with different numbers in two layers of such a step",
                Needs.STEPS: "the step before has the same numbers",
                }.get(m.needs, "no tensor of eight numbers inside a layer in such a step")
    if m.eight and any(_fits(p, m, t) for t in p.cand.tensors):
        return "fewer than 8 different tokens"
    return ("the last step is not a later step of one token" if m.when == When.LAST_STEP
            else "no later step of one token" if m.when else m.needs.value)


# ---- which -----------------------------------------------------------------------------------


def _in_call(p: Pair, when: When, t: Tensor) -> bool:
    if when == When.FIRST_CALL:
        return t.step == p.first_step
    if when == When.EVERY_STEP:
        return p.ref.one_token(t.step)
    return (t.step > p.first_step and p.ref.one_token(t.step)
            and (when == When.A_STEP or t.step == p.last_step))


def _fits(p: Pair, m: Mutation, t: Tensor) -> bool:
    tokens = 1 if m.when else 3
    if m.needs == Needs.STEPS:
        return (t.step > p.first_step and (not m.when or _in_call(p, m.when, t)) and t.layer >= 0
                and p.is_plain(t, 1))
    if not _in_call(p, m.when, t):
        return False
    if m.needs == Needs.NAMES:
        return t.same_as is not None and p.ref.find(t.step, t.name) is not None
    if m.needs == Needs.SCORES:
        return t.name == "logits" and p.is_plain(t, tokens)
    if t.layer < 0 or not p.is_plain(t, tokens) or (m.needs == Needs.FINER and p.is_coarse(t)):
        return False
    if m.needs == Needs.HEADS:
        s = t.shape
        return len(s) == 3 and s[1] >= 2 and s[2] >= 2 and s[1] != s[2] and s[0] != s[1]
    return t.shape[0] != t.columns and (m.when != When.EVERY_STEP or (
        "key" not in t.words and p.has_channels(t, in_steps=True)))


def _targets(p: Pair, m: Mutation) -> Iterable[Tensor]:
    return (t for t in p.cand.tensors if _fits(p, m, t) and (not m.eight or p.has_channels(t)))


def _other(p: Pair, m: Mutation, t: Tensor) -> Optional[Tensor]:
    """The first tensor that the mutation can be made with beside t."""
    tokens = 1 if m.when else 3
    step = t.step - 1 if m.needs == Needs.STEPS else t.step
    for o in p.cand.tensors:
        if o.step != step or o is t or o.dtype != t.dtype or o.shape != t.shape:
            continue
        if m.needs == Needs.STEPS:
            good = o.name == t.name
        elif m.needs == Needs.NAMES:
            good = p.is_plain(o, 1) and o.name != t.same_as
        else:
            good = p.is_plain(o, tokens) and p.is_later(t, o) and (
                o.layer == t.layer if m.needs == Needs.PAIR
                else o.layer >= 0 and o.layer != t.layer and o.point == t.point and o.point != "")
        if good and p.other_numbers(t, o):
            return o
    return None


def _quiet(p: Pair, m: Mutation) -> Choice:
    """The suitable tensor with the lowest floor."""
    found: List[Tensor] = [t for t in _targets(p, m) if p.floor_of(t) < np.inf]
    return (min(found, key=p.floor_of) if found else None), None


def _middle(p: Pair, m: Mutation) -> Choice:
    """The suitable tensor in the middle of the run."""
    if m.needs not in (Needs.PAIR, Needs.LAYERS, Needs.STEPS, Needs.NAMES):
        found: List[Choice] = [(t, None) for t in _targets(p, m)]
    else:
        found = [(t, o) for t in _targets(p, m) for o in [_other(p, m, t)] if o]
    return found[len(found) // 2] if found else (None, None)
