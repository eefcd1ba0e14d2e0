"""replaying.py: computes each recorded result of a candidate along the reference's edges, from the candidate's own
results before it: in the reference's format, and in the candidate's, whose difference is the floor.

Nodes between recorded results are computed together: the *region* of a result. What cannot be judged is listed.
"""

import contextlib
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from . import about, choices, projections, rows as plan
from .align import align, moved
from .candidate import Candidate, sum_of
from .compute import FAILS, Flat, Given, Pass, needed, unwritten
from .node_recorder import storable
from .numbers import RecordingError
from .progress import progress
from .rerun import Models, Run, again, finer, format_of, masks_of_float32
from .rows import Row
from .settling import Settling
from .tracer import Node, Trace

Place = Tuple[int, str]  # (step, name)
Results = Dict[Tuple[int, int], Any]  # (the candidate's row, which of its results) -> numbers


class Judged(NamedTuple):
    """A recorded result that is judged."""

    row: int  # the candidate's row
    out: int  # which of its results
    name: str
    node: int  # of the reference

    def step(self, cand: Candidate) -> int:
        return int(cand.rows[self.row]["step"])


class Side:
    """The reference's run in one format, and which of its nodes the candidate's rows are."""

    def __init__(self, models: Models, cand: Candidate, dtype: Any, **how: Any) -> None:
        self.dtype, self.own = dtype, format_of(cand)
        self.run = again(models.get(dtype), cand, dtype, **how)
        self.trace = self.run.trace
        self.rows = self.run.rows
        self.pairs = align(cand.rows, self.rows)
        self.makers = self._makers(cand)
        self.chosen: Dict[int, choices.Choices] = {}  # node -> what it chose in the last replay
        self.change: Dict[int, List[Optional[choices.Change]]] = {}  # node -> what makes its choices others
        self.masks: Dict[FrozenSet[Place], Dict[int, List[Any]]] = {}  # what is computed in place of given -> unwritten
        self.marks: Dict[int, Flat] = {}  # node -> what was kept before it in the last replay
        self.narrow: Dict[int, Any] = {}  # node that computes in less than 64 bits -> in which format

    def _makers(self, cand: Candidate) -> Dict[int, int]:
        """By row of a result of the model: the node whose whole result it is, if no other record holds that. Nodes
        behind it are then computed from what was recorded of the result."""
        held = {j for i, j in self.pairs.items() if any((cand.rows[i]["step"], n) in cand.held
                                                        for n in cand.rows[i]["out"])}
        out: Dict[int, int] = {}
        for i, j in self.pairs.items():
            ref = self.trace.nodes[j].ins[:1]
            at = self.trace.maker_of(ref[0]) if ref and self.rows[j]["op"] == "result" and j in held else None
            if at is not None and at.index not in held and at.outs == ref:
                held.add(at.index)
                out[i] = at.index
        return out

    @contextlib.contextmanager
    def around(self, n: Node) -> Iterator[None]:
        """Keeps what a node chooses in a replay, as `change` makes it."""
        self.chosen[n.index] = choices.Choices(self.change.get(n.index, ()))
        with self.chosen[n.index], masks_of_float32(self.dtype, self.own):
            yield

    def node(self, row: int) -> Optional[Node]:
        at = self.makers.get(row, self.pairs.get(row))
        return self.trace.nodes[at] if at is not None else None


class Replay:
    """A candidate against its reference. `judged` is what can be judged, `unjudged` the rest with the reason.

    path: where the reference is recorded, too; shown: what reports call it. Raises RecordingError: the calls cannot be
    made again.
    """

    def __init__(self, models: Models, cand: Candidate, run: Run = None, path: Optional[str] = None,
                 force: bool = False, shown: str = "") -> None:
        self.cand, self.own = cand, format_of(cand)
        self.fine = Side(models, cand, finer(self.own), run=run, path=path, force=force, shown=shown)
        self.coarse = Side(models, cand, self.own, run=run, floor=True)
        if path is not None:
            with Candidate(path) as written:
                self.sum = written.sum()
        else:
            self.sum = sum_of(self.fine.run.recorder.held)
        self.same = align(self.fine.rows, self.coarse.rows)
        self.moved = moved(cand.rows, self.fine.rows, self.fine.pairs)  # judged, but not given to others
        self.judged: List[Judged] = []
        self.unjudged: List[Dict[str, Any]] = []
        self.given_alone: List[Judged] = []  # not judged, but others are computed from them
        self._select()
        if not self.judged:
            first = self.unjudged[0] if self.unjudged else dict(name="nothing", why="nothing is recorded")
            raise RecordingError(f"{cand.path}: no result is one of the model's: {first['name']}: {first['why']}")
        self.projections: Dict[Tuple[int, int], List[Dict[str, Any]]] = {}  # (row, result) -> see projections.py
        self.floor, self.failed = self.results(self.coarse)
        self.expected, more = self.results(self.fine, project=True)
        self.failed.update(more)
        # node of the reference -> how many choices are the candidate's, where rounding decides
        self.exchanged: Dict[int, int] = {}
        before = self.floor
        self.expected, self.floor = Settling(self, self.expected, self.floor).settled()
        if self.exchanged:  # a share of an error that has other causes
            self.projections = {k: v for k, v in self.projections.items() if before.get(k) is self.floor.get(k)}
        for k, t in [*self.expected.items()]:  # a mask of float64's least number, times 0 in float32
            if bool(t.isnan().any()) and not bool(self.floor.get(k, t).isnan().any()):
                self.failed[k[0]] = "the reference makes NaN there, the model in the candidate's format does not"
                del self.expected[k]

    def _select(self) -> None:
        loose = _strange_constants(self.fine, self.coarse, self.same)
        for i, r in enumerate(self.cand.rows):
            held = [(j, name) for j, name in enumerate(r["out"]) if (r["step"], name) in self.cand.held]
            if not held:
                continue
            fine, coarse = self.fine.node(i), self.coarse.node(i)
            why = ("the reference has no such operation there" if fine is None else
                   "the reference in the candidate's format has no such operation there" if coarse is None else
                   "nobody has written this memory" if fine.empty else
                   "it draws random numbers" if fine.random is not None else fine.blind or
                   ("it reads a value made where the recorder does not see it, which differs between runs"
                    if fine.index in loose else ""))
            whole = fine is not None and coarse is not None and all(
                j < min(len(fine.outs), len(coarse.outs)) and
                self.cand.shape(r["step"], name) == _shape(fine.outs[j]) == _shape(coarse.outs[j]) for j, name in held)
            if not why and not whole:
                why = "the reference's result has another shape"
            if why:
                self.unjudged += [dict(step=r["step"], name=name, why=why) for _, name in held]
            if fine is not None and whole and not fine.empty:
                (self.given_alone if why else self.judged).extend(Judged(i, j, name, fine.index) for j, name in held)

    # ---- computing -----------------------------------------------------------------------------

    def given(self, side: Side, without: Set[Place] = frozenset()) -> Given:  # type: ignore[assignment]
        """The candidate's results as those of the side's nodes; a node is given if all that others read of it is."""
        out: Given = {}
        held: Dict[int, Dict[int, str]] = {}
        for j in (*self.judged, *self.given_alone):
            if j.row not in self.moved and (self.cand.rows[j.row]["step"], j.name) not in without:
                held.setdefault(j.row, {})[j.out] = j.name
        for row, names in held.items():
            n = side.node(row)
            assert n is not None
            if len(names) == len(n.outs):
                out[n.index] = lambda row=row, names=names, n=n: [
                    self._as(self.cand.tensor(self.cand.rows[row]["step"], names[k]), r)
                    for k, r in enumerate(n.outs)]
        return out

    @staticmethod
    def _as(t: Any, r: Any) -> Any:
        t = torch.view_as_complex(t.to(torch.float64 if r.dtype == torch.complex128 else torch.float32).contiguous()) \
            if r.dtype.is_complex else t
        return t.reshape(r.size).to(r.dtype)

    def results(self, side: Side, without: Set[Place] = frozenset(), project: bool = False,  # type: ignore[assignment]
                begin: Optional[Tuple[Flat, Set[int], Set[int]]] = None,
                draw: Optional[int] = None) -> Tuple[Results, Dict[int, str]]:
        """((row, result) -> what the side computes from the candidate's results; row -> what failed). project: also
        fill `projections`. begin: what was kept before the first node, the nodes whose results are wanted, and those
        that are computed for them. draw: what is computed is rounded at random to the candidate's format."""
        given = self.given(side, without)
        rows = {side.node(j.row).index: j.row for j in self.judged}  # type: ignore[union-attr]
        out: Results = {}
        failed: Dict[int, str] = {}
        own = frozenset(without)
        if own not in side.masks:
            side.masks[own] = unwritten(side.trace, set(rows), given)
        masks = side.masks[own]
        progress.begin(f"replay in {about.WORDS[side.dtype]}{', round two' if without else ''}")
        p = Pass(side.trace, given)
        side.chosen, p.marks = {}, side.marks
        wanted, only = set(rows), None
        if begin:
            p.flat, wanted, only = dict(begin[0]), *begin[1:]
        # a mode makes torch leave the fast path of some leaves; those of float64 tell their formats
        plain = given if self.own != torch.float64 else {}
        p.around = lambda n: contextlib.nullcontext() if n.index in plain else side.around(n)
        if draw is not None:
            p.after = roundings(self.own, draw)
        for n, values, why in p.run(wanted, only):
            row = rows[n.index]
            step, names = self.cand.rows[row]["step"], self.cand.rows[row]["out"]
            if values is None:
                failed[row] = why
                continue
            if project and n.index not in masks and values and (step, names[0]) in self.cand.held:
                with contextlib.suppress(*FAILS):  # a module that is called otherwise than its name says
                    found = projections.of_node(p, n, values[0], self.cand.tensor(step, names[0]),
                                                self.floor.get((row, 0)))
                    if found:
                        self.projections[row, 0] = found
            for k, t in enumerate(p.another_order(n, values) if side is self.coarse else values):
                if n.index in masks and (step, (*names, "")[min(k, len(names))]) in self.cand.held:  # never judged
                    t = torch.where(masks[n.index][k], self._as(self.cand.tensor(step, names[k]), n.outs[k]), t)
                t = storable(t)
                out[row, k] = t if t.untyped_storage().nbytes() <= 2 * t.nbytes else t.clone()
        side.narrow.update((i, x.narrow) for i, x in side.chosen.items() if x.narrow)
        side.chosen = {i: x for i, x in side.chosen.items() if i not in given}
        return out, failed

    def region(self, node: int, given: Given) -> List[int]:
        return sorted(needed(self.fine.trace, node, given))

    def extra(self) -> Dict[int, List[str]]:
        """By judged row: the candidate's unrecorded operations behind it that the reference lacks."""
        names = {(r["step"], name): i for i, r in enumerate(self.cand.rows) for name in r["out"]}
        held = {j.row for j in (*self.judged, *self.given_alone)}
        out: Dict[int, List[str]] = {}
        for row in {j.row for j in self.judged}:
            seen, todo, found = {row}, [row], []
            while todo:
                for place in plan.places_read(self.cand.rows[todo.pop()]):
                    w = names.get(place)
                    if w is None or w in seen or w in held:
                        continue
                    seen.add(w)
                    todo.append(w)
                    if w not in self.fine.pairs and not self.cand.rows[w].get("cast"):
                        found.append(self.cand.rows[w]["out"][0])
            out[row] = sorted(found)
        return out

    def settings(self) -> List[Dict[str, Any]]:
        """The settings of aligned nodes that read the same, and of modules, that differ."""
        found = []
        for i, j in sorted((i, j) for i, j in self.fine.pairs.items() if i not in self.moved):
            a, b = self.cand.rows[i], self.fine.rows[j]
            found += [dict(name=a["out"][0], step=a["step"], **x) for x in different(a, b)]
        own = {r["path"]: r for r in plan.modules_of(self.fine.trace.model)}
        for r in self.cand.modules:
            if r.get("path") in own:
                found += [dict(name=r["path"] or "model", **x) for x in different(r, own[r["path"]])]
        return found


def roundings(dtype: Any, seed: int) -> Callable[[List[Any]], List[Any]]:
    """What rounds numbers at random to a format."""
    random, eps = torch.Generator().manual_seed(seed), torch.finfo(dtype).eps

    def rounded(t: Any) -> Any:
        if not t.is_floating_point():
            return t
        by = torch.rand(t.shape, generator=random, dtype=torch.float64) - 0.5
        return torch.where(t.abs() < 1e30, t.double() * (1 + eps * by.to(t.device)), t.double()).to(t.dtype)

    return lambda values: [rounded(t) for t in values]


def _shape(r: Any) -> Tuple[int, ...]:
    """The shape of a result in a file."""
    return tuple(storable(torch.empty(r.size, device="meta", dtype=r.dtype)).shape)


def _strange_constants(fine: Side, coarse: Side, same: Dict[int, int]) -> Set[int]:
    """Nodes that read a value that no node made, whose value differs between the two runs of the reference."""
    out: Set[int] = set()
    for i, j in same.items():
        mine = _constants(fine.trace, fine.trace.nodes[i])
        theirs = _constants(coarse.trace, coarse.trace.nodes[j]) if mine else []
        if len(mine) != len(theirs) or not all(map(_equal, mine, theirs)):
            out.add(i)
    return out


def _constants(trace: Trace, n: Node) -> List[Any]:
    """What the node reads, perhaps through casts, that no node made."""
    found = []
    for r in n.ins:
        at = trace.maker_of(r)
        while at is not None and at.cast:
            r = at.ins[0]
            at = trace.maker_of(r)
        if at is None and trace.source[r.key][0] == "const":
            found.append(trace.base[r.key].as_strided(r.size, r.stride, r.offset))
    return found


def _equal(x: Any, y: Any) -> bool:
    return bool(x.shape == y.shape and (torch.equal(x.to(y.dtype), y) or torch.equal(y.to(x.dtype), x)))


OF_FORMAT = {"name_or_path", "dtype", "device", "arg.dtype", "arg.device", "attn_implementation",
             "_attn_implementation"}
LARGE = 32752.0  # half of float16's largest: the least number of each format stands for minus infinity


def different(a: Row, b: Row) -> Iterator[Dict[str, Any]]:
    classes = a.get("class", ""), b.get("class", "")
    if classes[0] != classes[1] and not all(c.startswith("torch.jit.") for c in classes):  # a copy's is another
        yield dict(key="class", candidate=a.get("class"), reference=b.get("class"))
    x, y = a.get("const", {}), b.get("const", {})
    for k in x:
        if k in y and k not in OF_FORMAT and not _same_setting(x[k], y[k]):
            yield dict(key=k, candidate=x[k], reference=y[k])


def _same_setting(x: Any, y: Any) -> bool:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (x, y))
    return x == y or (numbers and abs(x) > LARGE and abs(y) > LARGE and (x > 0) == (y > 0))
