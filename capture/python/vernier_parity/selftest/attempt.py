"""attempt.py: makes one mutation in copies of a pair's recordings, and compares them."""

import os
import shutil
import tempfile
from typing import List, Optional

import numpy as np

from ..numbers import values
from .edit import CannotEdit, Edit, stored_as
from .judge import Outcome, expected_words, judge, judge_unchanged
from .mutation import Change, Mutation, Needs, When
from .pair import Pair
from .program import Failed, reading
from .side import Side, Tensor
from .target import choose


def unchanged(p: Pair, threads: int) -> Outcome:
    """Compares the pair as it is. Raises Failed: the two cannot be compared."""
    c = p.program.compare(p.ref.path, p.cand.path, floor=p.floor.path if p.floor else None, limits=p.limits,
                          itself=p.ref.path == p.cand.path, threads=threads)
    try:
        with reading("compare"):
            o = judge_unchanged(c)
    except Failed as e:
        raise Failed(f"{p.ref.path} and {p.cand.path} cannot be compared: {e}") from None
    report = c.report or {}
    with reading("compare"):
        split = any(line.startswith("calls: tokens ") for line in report["notes"])
        p.recurrent = str(report["limits"]["file"]).endswith("-gdn.yaml")
    if split:
        raise Failed(f"{p.ref.path} and {p.cand.path} split the run into different calls, which compare joins: give "
                     f"selftest two recordings with the same calls")
    return o


def attempt(p: Pair, m: Mutation, folder: str, threads: int) -> Outcome:
    if p.numbers_alone and not m.numbers and not m.bits and m.needs != Needs.FLOOR:
        return Outcome("elsewhere", found="does not depend on the precision")
    cause, (target, other) = choose(p, m)
    if cause:
        return Outcome("not_run", 0, expected_words(m.want, target), cause)
    copies = tempfile.mkdtemp(dir=folder)
    try:
        ref, cand = p.ref.path, p.cand.path
        if m.changes_reference:
            ref = os.path.join(copies, "reference.h5")
            _mutate(p.ref, "reference", p.ref.path, ref, m, target, other)
        if m.changes_candidate:
            cand = os.path.join(copies, "candidate.h5")
            source = {Needs.EARLIER: p.earlier, Needs.UNRELATED: p.unrelated}.get(m.needs) or p.cand.path
            _mutate(p.cand, "candidate", source, cand, m, target, other)
        with_model = m.floor == "model"
        floor = p.floor.path if p.floor and m.floor != "none" and not with_model else None
        c = p.program.compare(ref, cand, floor=floor, model=p.model if with_model else None, limits=p.limits,
                              threads=threads)
        with reading("compare"):
            o = judge(c, m, target)
        o.found = o.found.replace(copies + os.sep, "")
        return o
    finally:
        shutil.rmtree(copies, ignore_errors=True)


def _mutate(side: Side, of: str, source: str, to: str, m: Mutation, target: Optional[Tensor],
            other: Optional[Tensor]) -> None:
    try:
        shutil.copyfile(source, to)
        os.chmod(to, 0o600)
    except OSError as e:
        raise Failed(f"{source}: cannot be copied to {to}: {e.strerror}") from None
    try:
        if m.file:
            m.file(to)
            return
        changes = (_of_steps(side, of, target) if m.when == When.EVERY_STEP and target
                   else [_of_one(side, of, target, other)])
        with Edit(to) as edit:
            for c in changes:
                _apply(edit, m, c)
    except (CannotEdit, OSError, RuntimeError, KeyError, ValueError) as e:
        raise Failed(f"{to}: mutation {m.name}: {e.args[0] if e.args else e}") from None


def _apply(e: Edit, m: Mutation, c: Change) -> None:
    if m.edit:
        m.edit(e, c)
        return
    assert c.target
    if m.bits:
        raw = c.raw.copy()
        m.bits(c, raw.reshape(-1).view(np.uint8).reshape(raw.size, raw.itemsize))
    else:
        assert m.numbers
        x = np.asarray(values(c.raw, c.target.dtype), np.float64).reshape(c.T, c.W)
        with np.errstate(all="ignore"):
            raw = stored_as(np.ascontiguousarray(m.numbers(c, x.copy())), c.target.dtype).reshape(c.raw.shape)
    e.numbers(c.at, raw, c.target.dtype)


def _of_one(side: Side, of: str, target: Optional[Tensor], other: Optional[Tensor]) -> Change:
    """Looks at the target, and at the other tensor, in the recording that is changed."""
    c = Change(of, side)
    if not target:
        return c
    c.target, c.other = side.find(target.step, target.name), side.find(other.step, other.name) if other else None
    if not c.target or (other and not c.other):
        raise CannotEdit(f"no {(other if c.target and other else target).name} in step {target.step}")
    c.raw = side.raw(c.target)
    c.T, c.W = c.target.shape[0] if c.target.shape else 0, c.target.columns
    c.H = c.target.shape[1] if len(c.target.shape) == 3 else 1
    c.K = c.W // c.H if c.H else 0
    if c.other:
        c.other_raw = side.raw(c.other)
        c.y = side.numbers(c.other).reshape(c.T, c.W)
    return c


def _of_steps(side: Side, of: str, target: Tensor) -> List[Change]:
    """Looks at the checkpoint in every step of one token, and chooses a channel that is neither large nor small."""
    changes = [_of_one(side, of, t, None) for t in Pair.one_token_steps(side, target)]
    size = np.zeros(target.columns)
    for c in changes:
        assert c.target
        size += side.numbers(c.target)[0] ** 2
    middle = int(np.flatnonzero(size == np.sort(size)[size.size // 2])[0])
    for c in changes:
        c.channel = middle
    return changes
