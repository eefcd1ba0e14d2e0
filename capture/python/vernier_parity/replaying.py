"""replaying.py: computes each recorded result of a candidate along the reference's edges, from the candidate's own
results before it: in the reference's format, and in the candidate's, whose difference is the floor.

Nodes between recorded results are computed together: the *region* of a result. What cannot be judged is listed.
"""

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from . import about, choices, projections, rows as plan
from .align import align, moved
from .candidate import Candidate, sum_of
from .compute import FAILS, Given, Pass, needed, unwritten
from .node_recorder import storable
from .numbers import RecordingError
from .progress import progress
from .rerun import Models, Run, again, finer, format_of
from .rows import Row
from .tracer import Node, Trace

Place = Tuple[int, str]  # (step, name)
Results = Dict[Tuple[int, int], Any]  # (the candidate's row, which of its results) -> numbers


TRIALS = 96  # replays, at most; of all that are tried together, one choice of a row is taken
RESTARTS = 2  # of rows that stay wrong
MOST_LEFT_OUT = 1 / 2  # of the rows of a result
WRONG = 3.0  # floors from which a row may be behind another choice
BETTER = 0.97  # of its error is left, at most, where a choice is exchanged: others may still be wrong


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
        self.dtype = dtype
        self.run = again(models.get(dtype), cand, dtype, **how)
        self.trace = self.run.trace
        self.rows = self.run.rows
        self.pairs = align(cand.rows, self.rows)
        self.makers = self._makers(cand)
        self.chosen: Dict[int, choices.Choices] = {}  # node -> what it chose in the last replay
        self.change: Dict[int, List[Optional[choices.Change]]] = {}  # node -> what makes its choices others

    def _makers(self, cand: Candidate) -> Dict[int, int]:
        """By row of a result of the model: the node whose whole result it is, if no other record holds that. Nodes
        behind it are then computed from what was recorded of the result."""
        held = {j for i, j in self.pairs.items() if any((cand.rows[i]["step"], n) in cand.held
                                                        for n in cand.rows[i]["out"])}
        out: Dict[int, int] = {}
        for i, j in self.pairs.items():
            ref = self.trace.nodes[j].ins[:1]
            at = self.trace.maker.get(ref[0][:2]) if ref and self.rows[j]["op"] == "result" and j in held else None
            if at is not None and at not in held and self.trace.nodes[at].outs == ref:
                held.add(at)
                out[i] = at
        return out

    def around(self, n: Node) -> choices.Choices:
        """Keeps what a node chooses in a replay, as `change` makes it."""
        self.chosen[n.index] = choices.Choices(self.change.get(n.index, ()))
        return self.chosen[n.index]

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
        self.expected, self.floor = self.settled(self.expected, self.floor)
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

    def results(self, side: Side, without: Set[Place] = frozenset(),  # type: ignore[assignment]
                project: bool = False) -> Tuple[Results, Dict[int, str]]:
        """((row, result) -> what the side computes from the candidate's results; row -> what failed). project: also
        fill `projections`."""
        given = self.given(side, without)
        rows = {side.node(j.row).index: j.row for j in self.judged}  # type: ignore[union-attr]
        out: Results = {}
        failed: Dict[int, str] = {}
        masks = unwritten(side.trace, set(rows), given)

        progress.begin(f"replay in {about.WORDS[side.dtype]}{', round two' if without else ''}")
        p = Pass(side.trace, given)
        side.chosen = {}
        p.around = lambda n: contextlib.nullcontext() if n.index in given else side.around(n)
        for n, values, why in p.run(set(rows)):
            row = rows[n.index]
            step, names = self.cand.rows[row]["step"], self.cand.rows[row]["out"]
            if values is None:
                failed[row] = why
                continue
            if project and n.index not in masks and values and (step, names[0]) in self.cand.held:
                with contextlib.suppress(*FAILS):  # a module that is called otherwise than its name says
                    found = projections.of_node(side.trace, n, values, lambda call, n=n: p.compute(n, call),
                                                self.cand.tensor(step, names[0]), self.floor.get((row, 0)))
                    if found:
                        self.projections[row, 0] = found
            for k, t in enumerate(p.another_order(n, values) if side is self.coarse else values):
                if n.index in masks and (step, (*names, "")[min(k, len(names))]) in self.cand.held:  # never judged
                    t = torch.where(masks[n.index][k], self._as(self.cand.tensor(step, names[k]), n.outs[k]), t)
                t = storable(t)
                out[row, k] = t if t.untyped_storage().nbytes() <= 2 * t.nbytes else t.clone()
        return out, failed

    def settled(self, expected: Results, floor: Results,
                without: Set[Place] = frozenset()) -> Tuple[Results, Results]:  # type: ignore[assignment]
        """The results of both sides, where the reference makes the choices that the candidate made, as far as rounding
        decides them and its results show them. Call it after results() of both sides."""
        if not any(c.made for c in self.fine.chosen.values()):
            return expected, floor
        given, nodes = self.given(self.fine, without), self.fine.trace.nodes
        behind: Dict[int, List[Judged]] = {}  # node that chooses -> results of its step in whose region it is
        wave: Dict[int, int] = {}  # -> how many of its region choose before it
        for j in self.judged:
            if (j.row, j.out) in expected:
                for at, i in enumerate(i for i in self.region(j.node, given) if i in self.fine.chosen
                                       and self.fine.chosen[i].made and nodes[i].step == nodes[j.node].step):
                    behind.setdefault(i, []).append(j)
                    wave[i] = max(at, wave.get(i, 0))
        by: Dict[Tuple[int, int], Any] = {}  # (node, number of its choice) -> how each row is exchanged (choices.py)
        if any(not torch.equal(a.ids, b.ids) for i in behind for a, b in self._pairs(i)):
            floor = self._same_choices(without)
        restarts, trials = RESTARTS, 0
        while trials < TRIALS:
            tried: Dict[Tuple[int, int, int], Any] = {}  # (.., .., how) -> the rows
            left: Dict[Tuple[int, int, int], Any] = {}  # -> by row, which share of its error is left
            least: Dict[Tuple[int, ...], Any] = {}  # by results and row, the least of these
            for i in wave:
                for k, (a, b) in enumerate(self._pairs(i)):
                    own = by.setdefault((i, k), torch.zeros(a.ids.shape[:-1], dtype=torch.int8, device=a.ids.device))
                    wrong = self._wrong_rows(behind[i], expected, floor, own)
                    tried.update({(i, k, to): wrong & (own != to) & choices.undecided(a, b, to) for to in (0, 1, 2)})
            tried = {at: x for at, x in tried.items() if x.any()}
            for w, to in sorted({(wave[i], to) for i, _, to in tried}):
                now = {at: x for at, x in tried.items() if (wave[at[0]], at[2]) == (w, to)}
                self._exchange({**by, **{at[:2]: torch.where(x, to, by[at[:2]]) for at, x in now.items()}})
                other, trials = self.results(self.fine, without)[0], trials + 1
                for at, x in now.items():
                    left[at] = torch.where(x, self._left(behind[at[0]], expected, other, x), torch.inf)
                    key = (x.numel(), *(j.row for j in behind[at[0]]))
                    least[key] = torch.minimum(left[at], least.get(key, left[at]))
            better = {at: (x < BETTER) & (x == least[(x.numel(), *(j.row for j in behind[at[0]]))])
                      for at, x in left.items()}
            for at, x in better.items():
                by[at[:2]] = torch.where(x, at[2], by[at[:2]])
            if not any(x.any() for x in better.values()):
                # Behind wrong rows, other choices may have been nearer: once more without them.
                stuck = [(at[:2], x) for at, x in tried.items() if bool((by[at[:2]][x] != 0).any())]
                if not stuck or not restarts:
                    break
                restarts -= 1
                for at, x in stuck:
                    by[at] = torch.where(x, 0, by[at])
            self._exchange(by)
            expected = self.results(self.fine, without)[0]
            floor = self._same_choices(without)
        made = {j: [(by[i, k], *pair) for i, of in behind.items() if j in of for k, pair in enumerate(self._pairs(i))
                    if (i, k) in by] for of in behind.values() for j in of}
        for name in sorted({j.name for j in made}):
            self._leave_out({j: x for j, x in made.items() if j.name == name}, expected, floor)
        self.exchanged = {}
        for (i, _), x in by.items():
            if x.any():
                self.exchanged[i] = self.exchanged.get(i, 0) + int((x != 0).sum())
        return expected, floor

    def _leave_out(self, made: Dict[Judged, List[Any]], expected: Results, floor: Results) -> None:
        """Leaves out the rows of a result, in all steps, that are wrong from one on of which rounding decides several
        choices: not every combination was tried. Most rows of a wrong result are wrong."""
        wrong: Dict[Judged, Any] = {}
        n = loose = 0
        for j, of in made.items():
            rows = of[0][0].numel() if of else 0
            if (j.row, j.out) in floor and rows and self._errors(j, expected[j.row, j.out], rows) is not None:
                wrong[j], n = self._wrong_rows([j], expected, floor, of[0][0]).flatten(), n + rows
                first = int(wrong[j].int().argmax())
                if wrong[j].any() and not loose:
                    loose = sum(int(choices.undecided(a, b, 1).flatten()[first] or own.flatten()[first])
                                for own, a, b in of if own.numel() == rows)
        if loose < 2 or sum(int(x.sum()) for x in wrong.values()) > n * MOST_LEFT_OUT:
            return
        for j, x in wrong.items():
            k = j.row, j.out
            c, rows = self.cand.tensor(j.step(self.cand), j.name), x.reshape(*expected[k].shape[:-1], 1)
            expected[k], floor[k] = (torch.where(rows, c.reshape(t.shape).to(t.dtype), t)
                                     for t in (expected[k], floor[k]))
            if x.any():
                self.unjudged.append(dict(step=j.step(self.cand), name=j.name, why=(
                    f"{int(x.sum())} of its {x.numel()} rows are behind choices that were not recorded, and that "
                    "rounding decides")))

    def _exchange(self, by: Dict[Tuple[int, int], Any]) -> None:
        self.fine.change = {}
        for (i, k), x in sorted(by.items(), key=lambda r: r[0]):
            self.fine.change.setdefault(i, []).append(choices.exchanged(x) if x.any() else None)

    def _pairs(self, node: int) -> List[Tuple[choices.Choice, choices.Choice]]:
        """The choices of a node of the reference in both runs."""
        other = self.coarse.chosen.get(self.same.get(node, -1))
        return list(zip(self.fine.chosen[node].made, other.made)) if other else []

    def _same_choices(self, without: Set[Place]) -> Results:
        """The floor of a run that chooses as the finer one did."""
        self.coarse.change = {self.same[i]: [choices.as_in(c) for c in x.made] for i, x in self.fine.chosen.items()
                              if i in self.same}
        return self.results(self.coarse, without)[0]

    def _errors(self, j: Judged, t: Any, rows: int) -> Optional[Any]:
        """The squared error of each of so many rows of a result; None: its rows are others."""
        if not t.is_floating_point() or t.ndim < 2 or t.shape[:-1].numel() != rows:
            return None
        c = self.cand.tensor(j.step(self.cand), j.name).reshape(t.shape)
        return (c.double() - t.double()).square().nan_to_num().reshape(rows, -1).sum(-1)

    def _wrong_rows(self, of: List[Judged], expected: Results, floor: Results, like: Any) -> Any:
        """The rows of some results that are off by more than rounding."""
        found = torch.zeros(like.numel(), dtype=torch.bool)
        for j in of:
            k = (j.row, j.out)
            e = self._errors(j, expected[k], like.numel()) if k in expected and k in floor else None
            if e is not None:
                f = (floor[k].double() - expected[k].double()).square().nan_to_num().reshape(like.numel(), -1).sum(-1)
                found |= (e > WRONG * torch.maximum(f, f.mean() / 4)).cpu()
        return found.reshape(like.shape).to(like.device)

    def _left(self, of: List[Judged], expected: Results, other: Results, like: Any) -> Any:
        """By row, of some results: the share of its error that is left in another run."""
        both = [[self._errors(j, t[j.row, j.out], like.numel()) for t in (expected, other)] for j in of
                if (j.row, j.out) in other]
        now, then = (sum(x for x in e if x is not None) for e in zip(*both))
        return (then / now).nan_to_num(1.0).reshape(like.shape).to(like.device)

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
                r = self.cand.rows[todo.pop()]
                for x in r["in"]:
                    w = names.get((r["step"] - int(x.get("back", 0)), x.get("from")))
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


def _shape(r: Any) -> Tuple[int, ...]:
    size = tuple(r.size) + ((2,) if r.dtype.is_complex else ())
    return tuple(storable(torch.empty(size, device="meta", dtype=torch.float32)).shape)


def _strange_constants(fine: Side, coarse: Side, same: Dict[int, int]) -> Set[int]:
    """Nodes that read a value that no node made, whose value differs between the two runs of the reference."""
    out: Set[int] = set()
    for i, n in enumerate(fine.trace.nodes):
        mine = _constants(fine.trace, n)
        if mine and i in same:
            theirs = _constants(coarse.trace, coarse.trace.nodes[same[i]])
            if len(mine) != len(theirs) or any(not _equal(fine.trace, x, coarse.trace, y)
                                               for x, y in zip(mine, theirs)):
                out.add(i)
    return out


def _constants(trace: Trace, n: Node) -> List[Any]:
    """What the node reads, perhaps through casts, that no node made."""
    found = []
    for r in n.ins:
        at = trace.maker.get((r.storage, r.write))
        while at is not None and trace.nodes[at].cast:
            r = trace.nodes[at].ins[0]
            at = trace.maker.get((r.storage, r.write))
        if at is None and trace.source[r.storage, r.write][0] == "const":
            found.append(r)
    return found


def _equal(a: Trace, x: Any, b: Trace, y: Any) -> bool:
    if x.size != y.size:
        return False
    p, q = (t.base[r.storage, r.write].as_strided(r.size, r.stride, r.offset) for t, r in ((a, x), (b, y)))
    return torch.equal(p.to(q.dtype), q) or torch.equal(q.to(p.dtype), p)


OF_FORMAT = {"name_or_path", "dtype", "device", "arg.dtype", "arg.device", "attn_implementation",
             "_attn_implementation"}
LARGE = 32752.0  # half of float16's largest: the least number of each format stands for minus infinity


def different(a: Row, b: Row) -> Iterator[Dict[str, Any]]:
    if a.get("class", "") != b.get("class", ""):
        yield dict(key="class", candidate=a.get("class"), reference=b.get("class"))
    x, y = a.get("const", {}), b.get("const", {})
    for k in x:
        if k in y and k not in OF_FORMAT and not _same_setting(x[k], y[k]):
            yield dict(key=k, candidate=x[k], reference=y[k])


def _same_setting(x: Any, y: Any) -> bool:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (x, y))
    return x == y or (numbers and abs(x) > LARGE and abs(y) > LARGE and (x > 0) == (y > 0))
