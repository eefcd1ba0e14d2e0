"""alternatives.py: which mistake explains a wrong result: computes it with each variant (variants.py) of its operation
from the candidate's own inputs, and keeps the nearest for `vernier compare` to judge.
"""

import contextlib
import functools
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

import torch

from . import fitted, variants
from .compute import FAILS, Again, view
from .node_recorder import storable
from .replaying import Judged, Replay, different
from .rows import Row, places_read
from .tracer import tensors
from .variants import Variant

MOST_ORIGINS = 8  # with all variants; of others only those that were found before
MOST_WORK = 48  # times all operations of the model: what trials compute, and two passes more at most
MOST_KEPT = 6
MOST_NODES = 40  # of a region that are varied: its last ones, and before these those with weights
LEAVES = 0.25  # of the squared error: what a variant that is kept may leave


class Alternative(NamedTuple):
    what: str
    is_: str
    due: str
    expected: Any
    floor: Any  # None: roundings alone


class Alternatives:
    """Of the wrong results of a replay."""

    def __init__(self, r: Replay) -> None:
        self.r = r
        self.back = {j: i for i, j in r.fine.pairs.items()}  # node of the reference -> the candidate's row
        self.given, self.given_coarse = r.given(r.fine), r.given(r.coarse)
        self.found: Set[Tuple[str, str, str]] = set()
        self.seen = 0
        self.left = float(MOST_WORK * len(r.fine.trace.nodes))
        self.cut = 0  # results of which not all that fits was tried

    @torch.no_grad()
    def of(self, j: Judged) -> Tuple[List[Alternative], int]:
        """(the nearest alternatives, how many were tried) of a result."""
        r, fine = self.r, Again(self.r.fine.trace, self.given, j.node, self.r.fine.around)
        cand = r.cand.tensor(r.cand.rows[j.row]["step"], j.name).double()
        right = r.expected[j.row, j.out].double().cpu()
        if cand.shape != right.shape or not cand.dtype.is_floating_point:
            return [], 0
        if self.left <= 0:
            self.cut += 1
            return [], 0
        was, full = error_of(cand, right), self.seen < MOST_ORIGINS
        self.seen += 1
        best: List[Tuple[Tuple[int, float], int, Variant, Any]] = []
        tried = 0
        for v in self._variants(fine, j, cand):
            if not (full or (v.what, v.is_, v.due) in self.found):
                continue
            if fine.work >= self.left:
                self.cut += 1
                break
            try:
                got = storable(fine.results(v.instead)[j.out])
            except FAILS:
                continue
            if got.shape != cand.shape:
                continue
            tried += 1
            left = error_of(cand, got.double().cpu())
            if left < (was[0], was[1] * LEAVES) or left[0] < was[0]:
                best = sorted([*best, (left, tried, v, got)], key=lambda x: x[:2])[:MOST_KEPT]
        self.left -= fine.work
        self.found |= {(v.what, v.is_, v.due) for _, _, v, _ in best}
        floors = self._floors(j, [v for _, _, v, _ in best])
        return [Alternative(v.what, v.is_[:120], v.due[:120], got, floors.get(n))
                for n, (_, _, v, got) in enumerate(best)], tried

    def _floors(self, j: Judged, every: List[Variant]) -> Dict[int, Any]:
        """Which variant -> the same in the candidate's format."""
        found: Dict[int, Any] = {}
        node = self.r.coarse.node(j.row) if every else None
        with contextlib.suppress(*FAILS):
            if node is not None:
                coarse = Again(self.r.coarse.trace, self.given_coarse, node.index, self.r.coarse.around)
                for n, v in enumerate(every):
                    with contextlib.suppress(*FAILS):  # KeyError: the other run lacks a node
                        found[n] = storable(coarse.results({self.r.same[i]: f for i, f in v.instead.items()})[j.out])
                self.left -= coarse.work
        return found

    def _variants(self, fine: Again, j: Judged, cand: Any) -> Iterator[Variant]:
        trace, last = self.r.fine.trace, fine.nodes[-MOST_NODES:]
        weighted = [i for i in fine.nodes[:-MOST_NODES] if trace.nodes[i].leaf or any(
            variants.source_of(trace, r)[0] == "param" for r in trace.nodes[i].ins)]
        nodes = weighted[-MOST_NODES:] + last
        calls: Dict[int, Tuple[Any, Any, Any]] = {}

        def spy(i: int, fn: Any, a: Any, k: Any) -> Any:
            out = fn(*a, **k)
            calls[i] = (a, k, out)
            return out

        try:
            fine.results({i: functools.partial(spy, i) for i in nodes})
        except FAILS:
            return
        yield from self._settings(nodes)
        masked: Dict[Tuple[str, str], Variant] = {}  # by name and operation: where several heads have a mask each
        for i in reversed(nodes):
            a, k, out = calls[i]
            outs = [t for t in tensors(out) if isinstance(t, torch.Tensor)]
            if not outs:
                continue
            if i == j.node and j.out < len(outs) and outs[j.out].shape == cand.shape:
                yield from _safely(fitted.of_numbers(trace.nodes[i], a, k, j.out, outs[j.out],
                                                       cand.to(outs[j.out])))
            for v in _safely(variants.of_node(trace, trace.nodes[i], a, k, outs[0])):
                yield v
                if v.what == "mask":
                    same = masked.setdefault((v.is_, trace.nodes[i].op), v._replace(instead={}))
                    same.instead.update(v.instead)
        yield from (v for v in masked.values() if len(v.instead) > 1)
        yield from self._extra(j)

    def _settings(self, nodes: List[int]) -> Iterator[Variant]:
        """Settings of one node, of several at once; what the candidate's plan lacks."""
        every = [v for i in nodes if i in self.back for v in variants.settings(
            self.r.fine.trace.nodes[i], list(different(self.r.cand.rows[self.back[i]], self.r.fine.rows[i])))]
        yield from every
        if len(every) > 1:
            yield every[0]._replace(instead={k: f for v in every for k, f in v.instead.items()})
        lacks = [n for n in (self.r.fine.trace.nodes[i] for i in nodes) if n.index not in self.back and not n.cast]
        if lacks:
            yield Variant("left_out", ", ".join(n.op.strip("_") for n in lacks[:4]), "",
                          {n.index: variants.left_out for n in lacks})

    def _extra(self, j: Judged) -> Iterator[Variant]:
        """The result of an operation that the reference lacks is read in place of one that it has."""
        r, row = self.r, self.r.cand.rows[j.row]
        held = {(x["step"], name): i for i, x in enumerate(r.cand.rows) for name in x["out"]} if row["in"] else {}
        for place, (key, ref) in enumerate(zip(places_read(row), r.fine.trace.nodes[j.node].ins)):
            made = held.get(key)
            if made is not None and made not in r.fine.pairs and not r.cand.rows[made].get("cast"):
                t = r.cand.tensor(*key) if key in r.cand.held else self._sum(r.cand.rows[made])
                if t is not None:
                    yield Variant("extra", _said(r.cand.rows[made]), "", {j.node: variants.replacing(
                        place, lambda own, t=t, ref=ref: view(t.to(own).reshape(-1), ref))})

    def _sum(self, row: Row) -> Any:
        """The result of a sum that is not recorded, of terms that are; None: it is none."""
        terms = places_read(row)
        if row["op"] not in variants.SUMS or len(terms) != 2 or not all(x in self.r.cand.held for x in terms):
            return None
        return sum(self.r.cand.tensor(*x) for x in terms)


def _said(row: Row) -> str:
    names = [str(x.get("from", x.get("param", x.get("input", "a constant")))) for x in row["in"]]
    return f"{row['op'].strip('_')}({', '.join(names)})" if len(names) < 3 else row["op"].strip("_")


def _safely(every: Iterator[Variant]) -> Iterator[Variant]:
    """Until one cannot be made: a module that is called otherwise than its name says."""
    with contextlib.suppress(*FAILS):
        yield from every


def error_of(cand: Any, expected: Any) -> Tuple[int, float]:
    """(numbers beyond any format that differ, the sum of the squared errors of the others)."""
    top = 3e4 if float(cand.abs().nan_to_num(0).max() if cand.numel() else 0) < 6e4 else 1e37
    kind = lambda t: torch.where(t.isnan(), 2.0, torch.where(t.abs() < top, 0.0, t.sign()))
    a, b = kind(cand), kind(expected)
    both = (a == 0) & (b == 0)
    return int((a != b).sum()), float(torch.where(both, cand - expected, 0.0).pow(2).sum())
