"""compute.py: computes a plan again, node by node, in order: whole, or from results that are given."""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch

from .numbers import digest
from .tracer import Node, Ref, Trace, bits, tensors, walk

Given = Dict[int, Callable[[], List[Any]]]  # node -> its results
Told = Callable[[Node, Optional[List[Any]], str], None]  # node, results or None, what failed
Call = Callable[[Any, Any, Any], Any]  # module or function, its arguments, those by name -> its result
Instead = Dict[int, Call]  # node -> what is called in place of its function

# Their terms may cancel, so that adding them in another order, as a GPU does, changes much of the
# result.
SUMS = {"sum", "mean", "cumsum"}


def compute_all(trace: Trace, given: Given, wanted: Set[int], told: Told, fill: float = 0.0,
                any_order: bool = False, also: Optional[Callable[[Node, List[Any], Callable[[Call], List[Any]]], None]]
                = None) -> None:
    """Compute the wanted nodes, each from what the trace's edges say: results that are given, or else computed here.
    fill: what memory that nobody wrote holds. any_order: what is told of a sum has the error that another order of its
    terms may cause. also: gets each wanted node, its results, and a function that computes it by another call."""
    _Pass(trace, given, fill, any_order, also).run(wanted, told)


class Again:
    """Computes the results of one node as often as asked, with the nodes before it that are not given. `nodes`: which
    are computed, in order."""

    def __init__(self, trace: Trace, given: Given, node: int) -> None:
        self._pass, self._node = _Pass(trace, given, 0.0, False, None), node
        taken: Set[int] = set()
        seen, todo = {node}, [node]
        while todo:
            n = trace.nodes[todo.pop()]
            here = n.index in given and n.index != node
            if here:
                taken.add(n.index)
            refs = [r._replace(write=r.write - 1) for r in n.outs if r.write] if here else [*n.ins, *n.writes]
            for r in refs:
                w = trace.maker.get((r.storage, r.write))
                if w is not None and w not in seen and w < node:
                    seen.add(w)
                    todo.append(w)
        self.nodes = sorted(seen - taken)
        self._given = {i: given[i]() for i in taken}
        self._order = sorted(seen)

    def results(self, instead: Instead = {}) -> List[Any]:  # noqa: B006
        """Raises what the calls raise."""
        p, trace = self._pass, self._pass.trace
        p.flat, p.instead = {}, instead
        for i in self._order:
            n = trace.nodes[i]
            values = self._given.get(i) or p.compute(n)
            if i == self._node:
                return values
            p.keep(n, values)
        raise KeyError(self._node)


class _Pass:
    def __init__(self, trace: Trace, given: Given, fill: float, any_order: bool, also: Any) -> None:
        self.trace, self.given, self.fill, self.any_order, self.also = trace, given, fill, any_order, also
        self.instead: Instead = {}
        self.flat: Dict[Tuple[int, int], Any] = {}  # (storage, write) -> the whole storage then
        self.end: Dict[Tuple[int, int], int] = {}  # -> the last node that reads it
        for n in trace.nodes:
            for r in (*n.ins, *(Ref(w.storage, w.write, *w[2:]) for w in n.writes)):
                self.end[r.storage, r.write] = n.index
        self.failed: Dict[int, str] = {}

    def run(self, wanted: Set[int], told: Told) -> None:
        ends: Dict[int, List[Tuple[int, int]]] = {}
        for k, i in self.end.items():
            ends.setdefault(i, []).append(k)
        for n in self.trace.nodes:
            here = n.index in self.given
            out: Optional[List[Any]] = None
            why = ""
            if n.index in wanted or not here:
                try:
                    if n.blind:
                        raise ValueError(n.blind)
                    out = self.compute(n)
                except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError,
                        NotImplementedError) as e:
                    why = f"{' '.join(str(e).split())[:160]}"
                if n.index in wanted and out is not None and self.also is not None:
                    self.also(n, out, lambda call, n=n: self.otherwise(n, call))
                if n.index in wanted:
                    told(n, self.another_order(n, out) if self.any_order and out is not None else out, why)
            values = self.given[n.index]() if here else out
            if values is not None:
                self.keep(n, values)
            for k in ends.get(n.index, ()):
                self.flat.pop(k, None)

    def keep(self, n: Node, values: List[Any]) -> None:
        for r, room, t in zip(n.outs, n.rooms, values):
            k = (r.storage, r.write)
            if k not in self.end:
                continue  # nobody reads it
            if k not in self.flat:
                if r.write:
                    self.flat[k] = self.whole(r.storage, r.write - 1).clone()
                else:
                    self.flat[k] = torch.zeros(max(room, 1), dtype=r.dtype, device=t.device)
            view(self.flat[k], r).copy_(t.reshape(r.size) if t.shape != r.size else t)

    def whole(self, storage: int, write: int) -> Any:
        k = (storage, write)
        if k in self.flat:
            return self.flat[k]
        if k in self.trace.base:
            return self.trace.base[k]
        raise ValueError("what it reads could not be computed")

    def another_order(self, n: Node, out: List[Any]) -> List[Any]:
        """The result of a sum, off by 400 roundings of float32 (as many as compare allows of any result) of the sum of
        absolute terms."""
        if n.op not in SUMS or n.writes or not out[0].dtype.is_floating_point:
            return out
        args, kwargs = walk(n.args, lambda r: view(self.whole(r.storage, r.write), r).abs())
        with torch.no_grad(), _state(n):
            terms = n.fn(*args, **kwargs)
        off = (400 * 0.54 / 12) ** 0.5 * torch.finfo(torch.float32).eps
        return [(out[0].double() + off * terms.double()).to(torch.float32)]

    def otherwise(self, n: Node, call: Call) -> List[Any]:
        self.instead = {n.index: call}
        try:
            return self.compute(n)
        finally:
            self.instead = {}

    def compute(self, n: Node) -> List[Any]:
        own = {r.storage: self.whole(r.storage, r.write).clone() for r in n.writes}  # the node writes into a copy

        def read(r: Ref) -> Any:
            return view(own[r.storage] if r.storage in own else self.whole(r.storage, r.write), r)

        args, kwargs = walk(n.args, read)
        with torch.no_grad(), _state(n):
            call = self.instead.get(n.index)
            out = n.fn(*args, **kwargs) if call is None else call(n.fn, args, kwargs)
        got = {r: t for r, t in zip(tensors(n.result), tensors(out))}
        found = [view(own[r.storage], r) if r.storage in own else got[r] for r in n.outs]
        if n.empty:
            found = [torch.full_like(t, self.fill) for t in found]
        return found


def view(flat: Any, r: Ref) -> Any:
    return flat.as_strided(r.size, r.stride, r.offset)


@contextlib.contextmanager
def _state(n: Node) -> Iterator[None]:
    """The random state and the autocast of the node's call."""
    with contextlib.ExitStack() as undo:
        if n.random is not None:
            undo.enter_context(torch.random.fork_rng(devices=[]))
            torch.set_rng_state(n.random)
        if n.autocast is not None:
            undo.enter_context(torch.autocast(n.autocast[0], n.autocast[1]))
        yield


def differing(trace: Trace) -> List[str]:
    """The test of the edges: the plan computed from inputs and weights alone. Returns the nodes whose results have
    other bits than in the run; memory that nobody wrote is left out."""
    bad: List[str] = []
    every = {n.index for n in trace.nodes}
    loose = unwritten(trace, every)

    def told(n: Node, out: Optional[List[Any]], why: str) -> None:
        if n.index not in loose and not (out is not None and [digest(bits(t)) for t in out] == n.digests):
            bad.append(n.name)

    compute_all(trace, {}, every, told)
    return bad


def unwritten(trace: Trace, wanted: Set[int], given: Optional[Given] = None) -> Dict[int, List[Any]]:
    """By node, where its results hold memory that nobody wrote: a mask for each result. Found with two values of that
    memory."""
    if not any(n.empty for n in trace.nodes):
        return {}
    first: Dict[int, List[Any]] = {}
    masks: Dict[int, List[Any]] = {}

    def keep(n: Node, out: Optional[List[Any]], why: str) -> None:
        first[n.index] = [t.clone() for t in out or ()]

    def compare(n: Node, out: Optional[List[Any]], why: str) -> None:
        marks = [(x != y) & ~(x.isnan() & y.isnan()) for x, y in zip(first.pop(n.index), out or ())]
        if any(bool(m.any()) for m in marks):
            masks[n.index] = marks

    compute_all(trace, given or {}, wanted, keep, 0.0)
    compute_all(trace, given or {}, wanted, compare, 1.0)
    return masks
