"""isolating.py: results of the reference in place of the candidate's, in a replay: which modules are at fault
(`isolate`)."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch

from .compute import Call, Pass
from .progress import progress
from .replaying import Replay
from .tracer import Node

LIMIT = 4.0  # floors, of the model's results


class _Repaired(Pass):
    """The reference's run with the candidate's own errors: each result is what the reference makes of what is before
    it, plus what the candidate's operation errs by; without the errors of some modules."""

    def __init__(self, r: Replay, without: Set[str]) -> None:
        super().__init__(r.fine.trace)
        rows = {j.node: j.row for j in r.judged}
        self.r, self.rows = r, {i: row for i, row in rows.items() if not without.intersection(
            prefixes(r.fine.trace.nodes[i].path))}

    def compute(self, n: Node, call: Optional[Call] = None) -> List[Any]:
        out = super().compute(n, call)
        row = self.rows.get(n.index) if n.op != "result" else None
        names = self.r.cand.rows[row]["out"] if row is not None else ()
        for k, (name, t) in enumerate(zip(names, out)):
            step, right = n.step, self.r.expected.get((row, k))  # type: ignore[arg-type]
            if right is None or (step, name) not in self.r.cand.held:
                continue
            cand, right = (self.r._as(x, n.outs[k]).to(t.device) for x in (self.r.cand.tensor(step, name), right))
            out[k] = torch.where((cand - right).isfinite(), t + (cand - right), cand) if (
                t.is_floating_point() or t.is_complex()) else torch.where(cand != right, cand, t)
        return out


def prefixes(path: str) -> List[str]:
    parts = path.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


class Isolated:
    """`floors`: the error of the model's results; `within`: it is at most LIMIT; `modules`: the fewest modules found
    whose repair brings it there; `repaired`: the error then."""

    def __init__(self, r: Replay) -> None:
        self.r = r
        self.modules: List[str] = []
        wanted = {n.index for n in r.fine.trace.nodes if n.op == "result" and n.outs[0].dtype.is_floating_point}
        self._right = self._results(Pass(r.fine.trace), wanted)
        floor = self._results(Pass(r.coarse.trace), {n.index for n in r.coarse.trace.nodes if n.op == "result"})
        rounding = torch.finfo(r.own).eps ** 2 / 12
        self._floor = {k: max(error(x, floor[k]), rounding) for k, x in self._right.items() if k in floor}
        self._asked: Dict[Tuple[str, ...], float] = {}
        self.floors = self.repaired = self._after([])
        self.within = self.floors <= LIMIT
        if not self.within:
            self._search()

    @staticmethod
    def _results(p: Pass, wanted: Set[int]) -> Dict[Tuple[int, str], Any]:
        return {(n.step, n.name): out[0].double().cpu() for n, out, _ in p.run(wanted) if out is not None}

    def _after(self, without: Sequence[str]) -> float:
        """The largest error of a result, in floors, without the errors of these modules."""
        key = tuple(sorted(without))
        if key not in self._asked:
            progress.begin(f"without the errors of {len(key)} modules")
            got = self._results(_Repaired(self.r, set(without)), set(n.index for n in self.r.fine.trace.nodes
                                                                     if n.op == "result"))
            self._asked[key] = max((error(self._right[k], got[k]) / f if k in got else float("inf")
                                    for k, f in self._floor.items()), default=0.0)
        return self._asked[key]

    def _search(self) -> None:
        paths = sorted({p for j in self.r.judged for p in prefixes(self.r.fine.trace.nodes[j.node].path) if p})
        kept = [p for p in paths if "." not in p]
        good = lambda those: self._after(those) <= LIMIT
        if not good(kept):
            return
        while True:
            kept = fewest(kept, good)
            inner = [p for k in kept for p in paths if p.rpartition(".")[0] == k]
            whole = [k for k in kept if not any(p.rpartition(".")[0] == k for p in paths)]
            if not inner or not good([*whole, *inner]):
                break
            kept = [*whole, *inner]
        self.modules, self.repaired = kept, self._after(kept)


def fewest(every: Sequence[str], good: Callable[[List[str]], bool]) -> List[str]:
    """Some of a good set of which none can be left out: halves, quarters and so on are left out while it stays good."""
    kept, size = list(every), max(1, len(every) // 2)
    while True:
        at = 0
        while at < len(kept):
            rest = kept[:at] + kept[at + size:]
            if rest and good(rest):
                kept = rest
            else:
                at += size
        if size == 1:
            return kept
        size = max(1, size // 2)


def error(right: Any, got: Any) -> float:
    """The squared error in terms of the squared numbers; infinite where only one is finite."""
    a, b = right.reshape(-1), got.reshape(-1)
    both = a.isfinite() & b.isfinite()
    if a.shape != b.shape or not torch.equal(a.isfinite(), b.isfinite()):
        return float("inf")
    return float((a - b)[both].pow(2).sum()) / max(float(a[both].pow(2).sum()), 1e-300)
