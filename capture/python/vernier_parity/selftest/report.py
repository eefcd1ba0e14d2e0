"""report.py: writes the outcome of every mutation as a table, or as JSON of the schema vernier-selftest/2."""

import json
import os
from typing import Dict, List, TextIO, Tuple

from ..printed import printed, printed_json
from .judge import Outcome
from .mutation import Mutation
from .mutations import GROUPS
from .pair import Pair

ROWS: List[Tuple[str, Mutation]] = [(group, m) for group, listed in GROUPS.items() for m in listed]
_WORDS = {"caught": "caught", "missed": "MISSED", "not_run": "not run", "elsewhere": "-"}


class Result:
    """The outcomes of each pair: the unchanged pair first, then the mutations of all groups in order."""

    def __init__(self, pairs: List[Pair], outcomes: List[List[Outcome]]) -> None:
        self.pairs, self.outcomes = pairs, outcomes

    def count(self, kind: str) -> int:
        """False alarms count as missed."""
        return sum(o.kind == kind for of_pair in self.outcomes for o in of_pair[kind == "caught":])

    @property
    def tried(self) -> bool:
        return self.count("caught") + self.count("missed") > 0


def write_json(r: Result, out: TextIO) -> None:
    pairs = []
    for p, outcomes in zip(r.pairs, r.outcomes):
        listed = [{"group": group, "name": m.name, "description": m.does, "outcome": o.kind,
                   "exit": o.status if o.kind in ("caught", "missed") else None, "expected": _text(o.expected),
                   "found": _text(o.found)} for (group, m), o in zip(ROWS, outcomes[1:])]
        pairs.append({"name": p.name, "reference": _text(p.ref.path), "candidate": _text(p.cand.path),
                      "floor": _text(p.floor.path) if p.floor else None,
                      "limits": _text(p.limits) if p.limits else None,
                      "unchanged_within": outcomes[0].kind == "caught", "found": _text(outcomes[0].found),
                      "mutations": listed})
    out.write(printed_json(json.dumps({
        "schema": "vernier-selftest/2", "verdict": "missed" if r.count("missed") else "caught", "mutations": len(ROWS),
        **{k: r.count(k) for k in ("caught", "missed", "not_run")}, "pairs": pairs, "next": []}, indent=1)) + "\n")


def _text(words: str) -> str:
    """Bytes of a path that are no UTF-8, as codes."""
    return words.encode("utf-8", "backslashreplace").decode()


def write_text(r: Result, out: TextIO) -> None:
    for p, outcomes in zip(r.pairs, r.outcomes):
        out.write(printed(f"{p.name}: {os.path.basename(p.cand.path)} by {os.path.basename(p.ref.path)}"
                          f"{', with a floor' if p.floor else ''}{', limits of --limits' if p.limits else ''}") + "\n")
    for p, outcomes in zip(r.pairs, r.outcomes):
        if outcomes[0].kind == "missed":
            out.write(printed(f"{p.name} is not within limits ({outcomes[0].found}), as selftest needs: do not rely on "
                              f"its rows below") + "\n")
    rows = [("none", [o[0] for o in r.outcomes])]
    rows += [(f"{group}/{m.name}", [o[i] for o in r.outcomes]) for i, (group, m) in enumerate(ROWS, 1)]
    told = [(name, of_pairs, _telling(of_pairs)) for name, of_pairs in rows]
    told = [x for x in told if x[2].kind != "elsewhere"]
    wide = max(len(name) for name in ["mutation", *(x[0] for x in told)])
    expected = max(len(words) for words in ["expected", *(x[2].expected for x in told[1:])])
    out.write("\n" + "".join(f"{p.name:<9} " for p in r.pairs)
              + f" {'mutation':<{wide}}  {'expected':<{expected}}  found\n")
    for name, of_pairs, o in told:
        kinds = [{"caught": "within", "missed": "OUTSIDE"}.get(x.kind, "-") if name == "none" else _WORDS[x.kind]
                 for x in of_pairs]
        out.write(printed("".join(f"{k:<9} " for k in kinds)
                          + f" {name:<{wide}}  {o.expected:<{expected}}  {o.found}") + "\n")
    out.write(_summary(r) + "\n")


def _telling(of_pairs: List[Outcome]) -> Outcome:
    """The outcome to report for a mutation: a missed one if any, else one that was tried."""
    for kinds in (("missed",), ("caught",)):
        for o in of_pairs:
            if o.kind in kinds:
                return o
    return of_pairs[0]


def _summary(r: Result) -> str:
    reasons: Dict[str, int] = {}  # why mutations were tried with no pair, so that nothing is known about them
    for i in range(1, len(ROWS) + 1):
        of_pairs = [o[i] for o in r.outcomes]
        why = [o.found for o in of_pairs if o.kind == "not_run"]
        if why and all(o.kind in ("not_run", "elsewhere") for o in of_pairs):
            reasons[why[-1]] = reasons.get(why[-1], 0) + 1
    missed, alarms = r.count("missed"), sum(o[0].kind == "missed" for o in r.outcomes)
    untried = "; ".join(f"{n}: {printed(why)}" for why, n in reasons.items())
    untried = f"not tried: {untried}\n" if untried else ""
    verdict = "MISSED" if missed else "all that ran were caught" if reasons else "all caught"
    return (f"\n{untried}{verdict}: {r.count('caught')} caught, {missed - alarms} missed, {alarms} false "
            f"alarm{'' if alarms == 1 else 's'}, {r.count('not_run')} not run; of {len(ROWS)} mutations, "
            f"{len(r.pairs)} pair{'' if len(r.pairs) == 1 else 's'}")
