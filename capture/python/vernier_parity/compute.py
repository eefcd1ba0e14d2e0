"""compute.py: computes a plan again, node by node, in order: whole, or from results that are given."""

import contextlib
import math
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch

from .numbers import digest
from .offload import release
from .progress import progress
from .tracer import Node, Ref, Trace, bits, tensors, walk

Flat = Dict[Tuple[int, int], Any]  # (storage, write) -> the whole storage then
Given = Dict[int, Callable[[], List[Any]]]  # node -> its results
Computed = Tuple[Node, Optional[List[Any]], str]  # node, results or None, what failed
Call = Callable[[Any, Any, Any], Any]  # module or function, its arguments, those by name -> its result
Around = Callable[[Node], Any]  # what a node is computed in
Instead = Dict[int, Call]  # node -> what is called in place of its function
# what the call of a node may raise
FAILS = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError, NotImplementedError)

# Their terms may cancel, so that adding them in another order, as a GPU does, changes much of the
# result.
SUMS = {"sum", "mean", "cumsum"}


def needed(trace: Trace, node: int, given: Given, memory: bool = False) -> Set[int]:
    """The nodes that are computed for one: itself, and those before it that are not given. memory: also the given ones
    that are read, and what made the rest of the storages that these write into."""
    seen, todo = {node}, [node]
    while todo:
        n = trace.nodes[todo.pop()]
        own = n.index == node or n.index not in given
        for r in [*n.ins, *n.writes] if own else [r._replace(write=r.write - 1) for r in n.outs if r.write]:
            w = trace.maker.get(r.key)
            if w is not None and w not in seen and w < (n.index if not memory else node) and (memory or w not in given):
                seen.add(w)
                todo.append(w)
    return seen


class Pass:
    """Computes nodes, each from what the trace's edges say: results that are given, or else computed here. fill: what
    memory that nobody wrote holds."""

    def __init__(self, trace: Trace, given: Given = {}, fill: float = 0.0) -> None:  # noqa: B006
        self.trace, self.given, self.fill = trace, given, fill
        self.around: Around = lambda n: contextlib.nullcontext()
        self.after: Callable[[List[Any]], List[Any]] = lambda values: values  # of what is computed
        self.flat: Flat = {}
        self.marks: Dict[int, Flat] = {}  # node -> what was kept before it: filled where it has the node
        self.end: Dict[Tuple[int, int], int] = {}  # -> the last node that reads it
        for n in trace.nodes:
            for r in (*n.ins, *n.writes):
                self.end[r.storage, r.write] = n.index

    def run(self, wanted: Set[int], only: Optional[Set[int]] = None) -> Iterator[Computed]:
        """The wanted nodes in order. What a node reads is there until the next is asked for. only: the nodes that are
        looked at."""
        ends: Dict[int, List[Tuple[int, int]]] = {}
        for k, i in self.end.items():
            ends.setdefault(i, []).append(k)
        for n in self.trace.nodes if only is None else map(self.trace.nodes.__getitem__, sorted(only)):
            progress.at(n.index + 1, len(self.trace.nodes))
            if n.index in self.marks:
                self.marks[n.index] = dict(self.flat)
            here = n.index in self.given
            out: Optional[List[Any]] = None
            why = ""
            if n.index in wanted or not here:
                try:
                    if n.blind:
                        raise ValueError(n.blind)
                    with self.around(n):
                        made = self.compute(n)
                    if [t.numel() for t in made] != [math.prod(r.size) for r in n.outs]:
                        raise ValueError("called again, it makes another shape")
                    out = self.after(made)
                except FAILS as e:
                    why = f"{' '.join(str(e).split())[:160]}"
                if n.index in wanted:
                    yield n, out, why
            values = self.given[n.index]() if here else out
            if values is not None:
                self.keep(n, values)
            for k in ends.get(n.index, ()):
                self.flat.pop(k, None)

    def keep(self, n: Node, values: List[Any]) -> None:
        for r, room, t in zip(n.outs, n.rooms, values):
            k = r.key
            if k not in self.end:
                continue  # nobody reads it
            if k not in self.flat:
                held = t.untyped_storage().nbytes() == max(room, 1) * t.element_size() and t.dtype == r.dtype
                if held and (tuple(t.shape), t.stride(), t.storage_offset()) == (r.size, r.stride, r.offset):
                    self.flat[k] = t.as_strided((max(room, 1),), (1,), 0)  # nothing writes into what was kept
                    continue
                if r.write:
                    self.flat[k] = self.whole((r.storage, r.write - 1)).clone()
                else:
                    self.flat[k] = torch.zeros(max(room, 1), dtype=r.dtype, device=t.device)
            view(self.flat[k], r).copy_(t.reshape(r.size) if t.shape != r.size else t)

    def whole(self, k: Tuple[int, int]) -> Any:
        """The whole storage as it is after one of its writes."""
        if k not in self.flat and k not in self.trace.base:
            raise ValueError("what it reads could not be computed")
        return self.flat[k] if k in self.flat else self.trace.base[k]

    def arguments(self, n: Node, own: Dict[int, Any] = {}) -> Any:  # noqa: B006
        """(args, kwargs) of a node's call. own: storages in place of those that were kept."""
        return walk(n.args, lambda r: view(own[r.storage] if r.storage in own else self.whole(r.key), r))

    def compute(self, n: Node, call: Optional[Call] = None) -> List[Any]:
        """The results of a node; call: in place of its function."""
        own = {r.storage: self.whole(r.key).clone() for r in n.writes}  # the node writes into a copy
        args, kwargs = self.arguments(n, own)
        with torch.no_grad(), _state(n):
            out = n.fn(*args, **kwargs) if call is None else call(n.fn, args, kwargs)
        if n.leaf:
            release()
        got = dict(zip(tensors(n.result), tensors(out)))
        found = [view(own[r.storage], r) if r.storage in own else got[r] for r in n.outs]
        return [torch.full_like(t, self.fill) for t in found] if n.empty else found

    def another_order(self, n: Node, out: List[Any]) -> List[Any]:
        """The results with the error of other kernels, where that is the larger one. A sum: off by 400 roundings of
        float32 (as many as compare allows of any result) of the sum of absolute terms, as another order of them may be.
        GELU: by one rounding of its input, as 1 + erf of a negative number is (torch's two kernels: 0.3 and 0.4 on
        average, 1.0 and 2.7 at most).
        Recurrent leaves: each operation of each step is rounded. (Kernels that are made of all steps keep gates and
        cells in float32: 5 times less error of an LSTM in bfloat16, 6 in float16.)"""
        if isinstance(n.fn, torch.nn.RNNBase):
            with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False):
                return self.compute(n)
        gelu = "gelu" in n.op.lower()
        if not (gelu or n.op in SUMS) or n.writes or not out[0].dtype.is_floating_point:
            return out
        args, kwargs = walk(n.args, lambda r: view(self.whole(r.key), r).abs())
        with torch.no_grad(), _state(n):
            terms = next(iter(tensors((args, kwargs))), out[0]) if gelu else n.fn(*args, **kwargs)
        off = (1.0 if gelu else (400 * 0.54 / 12) ** 0.5) * torch.finfo(torch.float32).eps
        if terms.shape != out[0].shape:  # another function of that name
            return out
        signs = 1 - 2 * (torch.arange(terms.numel(), device=terms.device) % 2)  # of one sign they would be a factor
        made = out[0].double() + off * terms.double() * signs.reshape(terms.shape)
        return [made if out[0].dtype == torch.float64 else made.to(torch.float32)]


class Again:
    """Computes the results of one node as often as asked, with the nodes before it that are not given. `nodes`: which
    are computed, in order. After the first time, only what is behind a change is computed: `work` adds up how many
    nodes that was."""

    def __init__(self, trace: Trace, given: Given, node: int, around: Optional[Around] = None) -> None:
        self._pass, self._node, self._order = Pass(trace, given), node, sorted(needed(trace, node, given, True))
        self._pass.around = around or self._pass.around
        self._given = {i: given[i]() for i in self._order if i in given and i != node}
        self.nodes = [i for i in self._order if i not in self._given]
        self.work = 0
        self._plain: Optional[Flat] = None  # what was kept where nothing was called instead

    def results(self, instead: Instead = {}) -> List[Any]:  # noqa: B006
        """Raises what the calls raise."""
        if self._plain is None and instead:
            self.results()
        p, new = self._pass, set()  # type: Pass, Set[Tuple[int, int]]
        p.flat = dict(self._plain or {})
        for n in map(p.trace.nodes.__getitem__, self._order):
            read = [r._replace(write=r.write - 1) for r in n.outs if r.write]
            read += () if n.index in self._given else (*n.ins, *n.writes)
            if self._plain is not None and n.index not in instead and n.index != self._node and new.isdisjoint(
                    r.key for r in read):
                continue
            values = self._given.get(n.index)
            if values is None:
                self.work += 1
                with p.around(n):
                    values = p.compute(n, instead.get(n.index))
            for r in n.outs:
                new.add(r.key)
                p.flat.pop(r.key, None)
            if n.index != self._node:
                p.keep(n, values)
        self._plain = self._plain or dict(p.flat)
        return values


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
    other bits than in the run, and makes them blind; memory that nobody wrote is left out, and so is what reads such a
    result."""
    every = {n.index for n in trace.nodes}
    loose = unwritten(trace, every)
    found: List[str] = []
    lost: Set[Tuple[int, int]] = set()  # (storage, write)
    for n, out, _ in Pass(trace).run(every):
        known = lost.isdisjoint(r.key for r in (*n.ins, *n.writes))
        if known and (n.index in loose or (out is not None and [digest(bits(t)) for t in out] == n.digests)):
            continue
        lost.update(r.key for r in n.outs)
        if known:
            n.blind = n.blind or "its bits do not follow from the plan's edges"
            found.append(n.name)
    return found


def unwritten(trace: Trace, wanted: Set[int], given: Given = {}) -> Dict[int, List[Any]]:  # noqa: B006
    """By node, where its results hold memory that nobody wrote: a mask for each result. Found with two values of that
    memory."""
    masks: Dict[int, List[Any]] = {}
    if any(n.empty for n in trace.nodes):
        for (n, a, _), (_, b, _) in zip(*(Pass(trace, given, fill).run(wanted) for fill in (0.0, 1.0))):
            marks = [(x != y) & ~(x.isnan() & y.isnan()) for x, y in zip(a or (), b or ())]
            if any(bool(m.any()) for m in marks):
                masks[n.index] = marks
    return masks
