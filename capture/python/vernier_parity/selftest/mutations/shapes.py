"""shapes.py: the right name, and numbers in another shape, format or basis; steps of other tokens."""

from typing import Callable, Tuple

import numpy as np

from ..edit import Edit
from ..mutation import ANY, Change, Expected, Mutation, Needs, fails, refused

Edits = Callable[[Edit, Change], None]
MOST_AXES = 6


def _put(e: Edit, c: Change, raw: np.ndarray) -> None:
    assert c.target
    e.replace(c.at, raw, c.target.dtype, raw.shape)


def _as(shape_of: Callable[[Change], Tuple[int, ...]]) -> Edits:
    """Gives the target another shape, cut or padded with zeros."""
    def change(e: Edit, c: Change) -> None:
        shape = shape_of(c)
        n, flat = int(np.prod(shape, dtype=int)), c.raw.reshape(-1)
        _put(e, c, np.concatenate([flat[:n], np.zeros(max(0, n - flat.size), flat.dtype)]).reshape(shape))
    return change


def _heads_first(e: Edit, c: Change) -> None:
    _put(e, c, np.ascontiguousarray(c.raw.reshape(c.T, c.H, c.K).transpose(1, 0, 2)))


def _columns_first(e: Edit, c: Change) -> None:
    _put(e, c, np.ascontiguousarray(c.raw.reshape(c.T, c.W).T))


def _one_number(e: Edit, c: Change) -> None:
    e.attribute(c.at, "axes", "")
    _as(lambda c: ())(e, c)


def _axes_exchanged(e: Edit, c: Change) -> None:
    assert c.target
    e.attribute(c.at, "axes", "token head dim" if c.target.axes == "token dim head" else "token dim head")


def _other_basis(e: Edit, c: Change) -> None:
    assert c.target
    e.attribute(c.at, "basis", "hidden" if c.target.basis == "ffn" else "ffn")


# ---- formats -----------------------------------------------------------------------------------


def _said_otherwise(e: Edit, c: Change) -> None:
    assert c.target
    e.attribute(c.at, "dtype", "f16" if c.target.dtype == "f64" else "f64")


def _bits_relabelled(e: Edit, c: Change) -> None:
    """Gives the same bytes another format of that width. For 32 and 64 bits there is only one such format, so the byte
    order changes instead; and the digest, which is that of numbers, not of bytes, is removed."""
    assert c.target
    if c.target.dtype == "f16":
        e.attribute(c.at, "dtype", "bf16")
        e.replace(c.at, c.raw.view("<u2"), "bf16", c.raw.shape)
    elif c.target.dtype == "bf16":
        e.attribute(c.at, "dtype", None)
        e.replace(c.at, c.raw.view("<f2"), "f16", c.raw.shape)
    else:
        e.attribute(c.at, "digest", None)
        e.replace(c.at, c.raw, c.target.dtype, c.raw.shape, "big-endian")


def _whole_numbers(e: Edit, c: Change) -> None:
    assert c.target
    e.attribute(c.at, "dtype", None)
    e.replace(c.at, c.raw, c.target.dtype, c.raw.shape, "counted")


# ---- steps -------------------------------------------------------------------------------------


def _say(e: Edit, c: Change, key: str, more: int) -> None:
    assert c.target
    step = c.side.step(c.target.step)
    e.attribute(f"/step.{c.target.step}", key, getattr(step, key) + more)


def _says(key: str, more: int) -> Edits:
    return lambda e, c: _say(e, c, key, more)


def _tokens_less(e: Edit, c: Change) -> None:
    """A step may omit its row count; one that states it contradicts itself."""
    _say(e, c, "tokens", -1)
    _say(e, c, "rows", 0)


def _step_lost(e: Edit, c: Change) -> None:
    assert c.other
    e.unlink(f"/step.{c.other.step}")


def _first_lost(e: Edit, c: Change) -> None:
    e.unlink(f"/step.{c.side.steps[0].number}")


def _last_lost(e: Edit, c: Change) -> None:
    e.unlink(f"/step.{c.side.steps[-1].number}")


def _steps_exchanged(e: Edit, c: Change) -> None:
    assert c.target and c.other
    e.swap(f"/step.{c.target.step}", f"/step.{c.other.step}")


def _misshapen(detail: str) -> Expected:
    return Expected("misshapen", detail=detail)


_T, _H, _S = Needs.TENSOR, Needs.HEADS, Needs.STEPS
_SHAPE, _ROWS, _AXES = _misshapen("^shape "), _misshapen("rows of its step: |^kept rows: "), _misshapen("^axes '[^']*' "
                                                                                                       "in the ")
_REORDERED = Expected("misshapen", reordered=True)

MUTATIONS = [
    Mutation("heads-by-dims", "(T,H,K) as (T,K,H)", _H, _SHAPE, edit=_as(lambda c: (c.T, c.K, c.H))),
    Mutation("heads-first", "(T,H,K) transposed to (H,T,K)", _H, _REORDERED, edit=_heads_first),
    Mutation("columns-first", "(T,D) transposed to (D,T)", _T, _REORDERED, edit=_columns_first),
    Mutation("flattened", "heads and head dims as one axis", _H, _REORDERED, edit=_as(lambda c: (c.T, c.H * c.K))),
    Mutation("trailing-axis", "a last axis of length one", _T, _REORDERED, edit=_as(lambda c: (c.T, c.W, 1))),
    Mutation("column-less", "one column fewer", _T, _SHAPE, edit=_as(lambda c: (c.T, c.W - 1))),
    Mutation("column-more", "a column of padding", _T, _SHAPE, edit=_as(lambda c: (c.T, c.W + 1))),
    Mutation("empty", "no columns", _T, _SHAPE, edit=_as(lambda c: (c.T, 0))),
    Mutation("empty-in-both", "no columns on either side", _T, Expected("empty", detail="^no elements: "),
             edit=_as(lambda c: (c.T, 0)), side="both"),
    Mutation("shape-transposed", "(T,D) as (D,T)", _T, _ROWS, edit=_as(lambda c: (c.W, c.T))),
    Mutation("batch-of-one", "a first axis of length one", _T, _REORDERED, edit=_as(lambda c: (1, c.T, c.W))),
    Mutation("row-less", "one token fewer", _T, _ROWS, edit=_as(lambda c: (c.T - 1, c.W))),
    Mutation("last-row-alone", "only the last token, although all were asked for", _T, _ROWS,
             edit=_as(lambda c: (1, c.W))),
    Mutation("one-list", "all axes as one", _T, _ROWS, edit=_as(lambda c: (c.T * c.W,))),
    Mutation("seven-axes", "too many axes", _T, fails("rank 7"),
             edit=_as(lambda c: (1,) * MOST_AXES + (c.T * c.W,))),
    Mutation("one-number", "a single number", _T, _SHAPE, edit=_one_number),
    Mutation("axes-said-otherwise", "the dims string reversed", _H, _AXES, edit=_axes_exchanged),
    Mutation("basis-said-otherwise", "another basis", _T, _misshapen("^basis '"), edit=_other_basis, claim="basis"),
    Mutation("format-said-otherwise", "a dtype attribute that does not fit the numbers", _T, fails("attribute dtype"),
             edit=_said_otherwise),
    Mutation("bits-relabelled", "the same bytes as another format", _T, ANY, edit=_bits_relabelled),
    Mutation("whole-numbers", "numbers of an unsupported type", _T, fails("its type is not one of"),
             edit=_whole_numbers),
    Mutation("position-less", "a step one token earlier in the cache", _S, refused("steps", "steps: in the candidate"),
             edit=_says("position", -1)),
    Mutation("position-less-in-both", "a step one token earlier in the cache, on both sides", _S,
             refused("steps", "steps: in the reference"), edit=_says("position", -1), side="both"),
    Mutation("step-lost-in-both", "both sides lack one step", _S, refused("steps", "steps: no step"), edit=_step_lost,
             side="both"),
    Mutation("prompt-lost-in-both", "both sides lack the prompt", _S, refused("steps", "steps: no step"),
             edit=_first_lost, side="both"),
    Mutation("last-step-lost-in-both", "both sides lack the last step", _S, refused("steps", "steps: no step"),
             edit=_last_lost, side="both"),
    Mutation("steps-exchanged-in-both", "two steps with exchanged numbers on both sides", _S,
             refused("steps", "steps: in the reference"), edit=_steps_exchanged, side="both"),
    Mutation("tokens-less", "a prompt of one token fewer", _T, fails("tokens"), edit=_tokens_less),
    Mutation("rows-less", "one kept row fewer than recorded", _T,
             Expected("misshapen", many=True, detail=_ROWS.detail), edit=_says("rows", -1)),
    Mutation("tokens-too-many", "a step of more tokens than the run has", _T, fails("tokens"),
             edit=_says("tokens", 1000)),
]
