"""judge.py: was a mutation found, and for the right reason?"""

import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from ..numbers import digest
from .mutation import Expected, Mutation, When
from .program import Compared, Failed
from .side import Tensor

Checkpoint = Dict[str, Any]  # one of the report's
SUFFIXES = re.compile("_over_floor$|_of_operation$")


@dataclass
class Outcome:
    """caught, missed, not_run or elsewhere; the exit status; what was expected and found, in words (found of not_run:
    the reason)."""

    kind: str
    status: int = 0
    expected: str = ""
    found: str = ""


def expected_words(w: Expected, target: Optional[Tensor]) -> str:
    if w.status is None:
        return f"refused: ...{w.says}..."
    return (w.status + (f" by {w.metric or 'any metric'}" if w.status == "outside" else "")
            + ("" if w.anywhere else f": {target.name[:60] if target else ''}") + (" and others" if w.many else ""))


def judge_unchanged(c: Compared) -> Outcome:
    """missed: a false alarm. Raises Failed: the pair cannot be compared."""
    if c.status == 2:
        raise Failed(_refusal(c))
    report = c.report or {}
    first = _first(report)
    return Outcome("missed" if c.status else "caught", c.status, "within limits", _found(report, first))


def judge(c: Compared, m: Mutation, target: Optional[Tensor]) -> Outcome:
    o = Outcome("missed", c.status, expected_words(m.want, target))
    if c.status == 2:
        o.found = f"refused: {_refusal(c)[:280]}"
        if _is_refused_so(c, m.want):
            o.kind = "caught"
        elif c.report is None and (not m.file or c.lacks_memory):
            # A copy that was edited but not damaged opens, or the error says what is wrong with it.
            # If not, the machine is in trouble, which proves nothing.
            raise Failed(f"mutation {m.name}: {c.line}")
        return o
    report = c.report or {}
    subject = _subject(report, m, target)
    o.found = _found(report, subject)
    if c.status == 0 or subject is None:
        return o
    good = _is_as_wanted(report, subject, m)
    if good and m.want.like:
        like = next((d["layout_match"] for d in report["divergences"] if d["name"] == _label(subject)), None)
        # Without digests (in the file; or of the copy, without xxhash), a tensor cannot be found
        # among the candidate's other tensors.
        digests = target is not None and target.digest and digest(b"")
        if not like or like["as"] not in ((m.want.like,) if digests or m.want.like != "own" else ("own", "other")):
            good = False
            o.found = f"outside, but not recognised: {(like or {}).get('words') or 'no message'}"
    o.kind = "caught" if good else "missed"
    return o


def _is_as_wanted(report: Dict[str, Any], p: Checkpoint, m: Mutation) -> bool:
    w, failing = m.want, [x for x in report["checkpoints"] if x["fails"]]
    if p["status"] != w.status or not p["fails"] or (len(failing) > 1 and not w.many):
        return False
    if w.status == "outside":
        # For a mutation of every step, one step is charged with the errors of all.
        same = [x for x in report["checkpoints"] if x["name"] == p["name"]] if m.when == When.EVERY_STEP else [p]
        if not any(_broken(x, w.metric) for x in same) or not (w.anywhere or report["first_divergence"] == _label(p)):
            return False
    if w.detail and not re.search(w.detail, p.get("detail", "")):
        return False
    if w.reordered and " order '" not in p.get("contents", ""):
        return False
    return not w.invalid_floor or any("those have no floor" in line for line in report["warnings"])


def _is_refused_so(c: Compared, w: Expected) -> bool:
    if w.status is not None:
        return False
    if w.allow and any(f"--allow {w.allow})" in line for line in c.lines):
        return True
    return w.by_words and not (c.report or {}).get("refusals") and w.says in c.line and not c.lacks_memory


def _broken(p: Checkpoint, metric: Optional[str]) -> bool:
    return any(not k["holds"] and metric in (None, SUFFIXES.sub("", k["metric"])) for k in p["limits"])


def _subject(report: Dict[str, Any], m: Mutation, target: Optional[Tensor]) -> Optional[Checkpoint]:
    """The checkpoint under test. For a mutation of every step, the first that fails."""
    for p in report["checkpoints"]:
        named = target is not None and p["name"] == target.name
        if (p["status"] == m.want.status and p["fails"] if m.want.anywhere
                else named and p["fails"] if m.when == When.EVERY_STEP
                else named and target is not None and p["step"] == target.step):
            found: Checkpoint = p
            return found
    return None


def _first(report: Dict[str, Any]) -> Optional[Checkpoint]:
    return next((p for p in report["checkpoints"] if _label(p) == report["first_divergence"]), None)


def _label(p: Checkpoint) -> str:
    return f"step.{p['step']}/{p['name']}" if p["step"] else str(p["name"])


def _found(report: Dict[str, Any], p: Optional[Checkpoint]) -> str:
    if report["verdict"] != "outside":
        return "within limits"
    failing = sum(bool(x["fails"]) for x in report["checkpoints"])
    if not p:
        first = _first(report)
        return f"{failing} outside, the first {first['name'] if first else 'not measured'}"
    worst = _worst(p["limits"])
    others = " and others" if failing > 1 else ""
    return f"{p['status']}{f' by {worst}' if worst else ''}: {p['name'][:60]}{others}"


def _worst(limits: List[Dict[str, Any]]) -> str:
    """The metric that is farthest outside; of two that are infinitely far, one that has a value says more."""
    broken = [k for k in limits if not k["holds"]]
    if not broken:
        return ""
    far = [math.inf if k["limit_fraction"] is None else k["limit_fraction"] for k in broken]
    at = 0
    for i, k in enumerate(broken):
        if far[i] > far[at] or (far[i] == far[at] and "note" in broken[at] and "note" not in k):
            at = i
    return SUFFIXES.sub("", broken[at]["metric"])


def _refusal(c: Compared) -> str:
    """The first reason, without the path of the copy."""
    line = c.lines[0]
    _, found, rest = line.partition(".h5: ")
    return rest if found else line
