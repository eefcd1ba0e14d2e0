"""settling.py: makes the reference choose as the candidate did, where rounding decides (choices.py) and the candidate's
results show it.

A choice is tried where what lies behind it is wrong. Rows of a result that are those of the choices are told apart, so
that all of a *wave*, a layer, are tried in one replay. Behind others (a prompt's last logits) each is tried alone. A
replay begins at the first node that it changes.

The rules are those of settle.h; where they differ: results of all steps are known here, so that rows are counted over
all of them. The floor is one run, that by which `compare` judges, so that a score's error is at least the median of
its node's. A node's own calls of topk are its choices, groups among them. Several choices behind one row are taken in
one round, since their changes are kept and add up. Of a single row a draw says nothing: it is not judged.
"""

from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from . import choices
from .compute import needed

if TYPE_CHECKING:
    from .replaying import Judged, Replay, Results

TRIALS = 96  # as many whole replays, at most
AGAIN = 12  # of those tried alone before, which promise most
RESTARTS = 2  # of rows that stay wrong
MOST_LEFT_OUT = 1 / 2  # of the rows of a result
FREE = 4.0  # times the squared change that exchanging all choices makes: others of them may make more
WRONG = 3.0  # floors from which a row may be behind another choice
FAR = 9.0  # times the squared error of the floor that are not explained by what was tried alone
MOST_UNEXPLAINED = 1 / 4  # of an error: the exchanged choices are then those of the candidate, or some are
BETTER = 0.97  # of its error is left, at most, where a choice is exchanged: others may still be wrong
STALLED, LESS = 2, 0.9  # rounds that may leave more than this of what is wrong: a fault leaves nearly all
FEW = 2  # steps of one row, of which each may be wrong
DRAWS = 4  # beside the floor's run
APART = 2  # times as often as a draw's a candidate's rows may stand apart
Place = Tuple[int, int]  # node, number of its choice
Cell = Tuple[Any, int]  # results, and which of their rows; -1: all


class Trial(NamedTuple):
    """In one replay: by row the way to choose (choices.WAYS), 0: as it was; -1: it is not tried."""

    rows: Dict[Place, Any]
    alone: bool = False  # of one row


class Settling:
    """Of the results of both sides of a replay, after results(). without: as there. `unjudged` of the replay, its
    `exchanged` and the `change` of its sides are set."""

    def __init__(self, r: "Replay", expected: "Results", floor: "Results",
                 without: Set[Any] = frozenset()) -> None:  # type: ignore[assignment]
        self.r, self.expected, self.floor, self.without = r, expected, floor, without
        self.given = r.given(r.fine, without)
        self.behind: Dict[int, List[Judged]] = {}  # node that chooses -> results of its step in whose region it is
        self.wave: Dict[int, int] = {}  # -> how many of its region choose before it
        nodes, chosen = r.fine.trace.nodes, r.fine.chosen
        for j in r.judged if any(c.made for c in chosen.values()) else ():
            if (j.row, j.out) in expected:
                for at, i in enumerate(i for i in r.region(j.node, self.given) if i in chosen and chosen[i].made
                                       and nodes[i].step == nodes[j.node].step):
                    self.behind.setdefault(i, []).append(j)
                    self.wave[i] = max(at, self.wave.get(i, 0))
        self.by: Dict[Place, Any] = {}  # how each row is exchanged (choices.py)
        self.budget = float(TRIALS)
        self.rest = 0.0  # if not all that may be exchanged were tried: the squared error that they may make
        self.known: Dict[Tuple[Place, int, int], Any] = {}  # place, to, row of what was tried alone -> what it changed

    def settled(self) -> Tuple["Results", "Results"]:
        """The results of both sides, where the reference makes the choices that the candidate made."""
        if any(not torch.equal(a.ids, b.ids) for i in self.behind for a, b in self._pairs(i)):
            self.floor = self._same_choices()
        restarts, first = RESTARTS, self._left()
        least, kept, stalled = float("inf"), {}, 0  # type: float, Dict[Place, Any], int
        while True:
            wrong = self._how_wrong()
            stalled = 0 if wrong < LESS * least else stalled + 1
            if wrong < least:
                least, kept = wrong, {at: x.clone() for at, x in self.by.items()}
            trials = self._trials() if self.budget > 0 and stalled <= STALLED else []
            if not trials:
                break
            if not self._take(trials):
                # Behind wrong rows, other choices may have been nearer: once more without them.
                stuck = [(at, x >= 0) for t in trials for at, x in t.rows.items()
                         if bool((self.by[at][x >= 0] != 0).any())]
                if not stuck or not restarts or self.budget < TRIALS / 4:
                    break
                restarts -= 1
                for at, x in stuck:
                    self.by[at] = torch.where(x, 0, self.by[at])
            self._again()
        best = {at: kept.get(at, torch.zeros_like(x)) for at, x in self.by.items()}
        if any(not torch.equal(x, self.by[at]) for at, x in best.items()):
            self.by = best
            self._again()
        if self._left() < first * MOST_UNEXPLAINED:  # it is choices, of which not every combination was tried
            self.rest = self._of_one() * len({(at, row) for at, _, row in self.known})
        self._leave_out()
        self.r.exchanged, self.r.fine.marks = {}, {}
        for (i, _), x in self.by.items():
            if x.any():
                self.r.exchanged[i] = self.r.exchanged.get(i, 0) + int((x != 0).sum())
        return self.expected, self.floor

    # ---- what is tried -------------------------------------------------------------------------

    def _trials(self) -> List[Trial]:
        waves: Dict[Tuple[int, int], Dict[Place, Any]] = {}  # wave, turn: each row tries what only it has
        alone: List[Tuple[float, Trial]] = []
        for i in self.wave:
            before: Dict[int, Any] = {}  # rows -> how many ways of each
            for k, (a, b) in enumerate(self._pairs(i)):
                if k in self.r.fine.chosen[i].idle:
                    continue
                own = self.by.setdefault((i, k), torch.zeros(a.ids.shape[:-1], dtype=torch.int8, device=a.ids.device))
                of, rows = self._judging(i, own)
                wrong = self._wrong_rows(of, rows).to(own.device)
                if not wrong.any():
                    continue
                for to in range(len(choices.WAYS)):
                    far = choices.distance(a, b, to)
                    x = (far <= choices.WITHIN) & (own != to) & (wrong.reshape(own.shape) if rows > 1 else wrong)
                    if rows == own.numel():
                        turns = before.setdefault(rows, torch.zeros(rows, dtype=torch.int64, device=own.device))
                        for turn in turns[x.flatten()].unique().tolist():
                            tried = waves.setdefault((self.wave[i], turn), {}).setdefault(
                                (i, k), torch.full_like(own, -1))
                            tried[x & (turns == turn).reshape(x.shape)] = to
                        turns += x.flatten()
                    else:
                        for at in x.flatten().nonzero().flatten().tolist():
                            d = self.known.get(((i, k), to, at)) if not own.view(-1)[at] else None
                            gain = float((2 * self._error(of, rows, -1) - d) @ d) if d is not None else 0.0
                            one = torch.full_like(own, -1)
                            one.view(-1)[at] = to
                            if gain >= 0:
                                alone.append((-gain or float(far.flatten()[at]), Trial({(i, k): one}, True)))
        alone.sort(key=lambda x: x[0])
        known = sum(x[0] < 0 for x in alone)
        return [Trial(rows) for _, rows in sorted(waves.items())] + [
            t for n, (_, t) in enumerate(alone) if n >= known or n < AGAIN]

    def _judging(self, node: int, own: Any) -> Tuple[List["Judged"], int]:
        """The results by which a choice is judged, and how many rows are told apart."""
        held = [j for j in self.behind[node] if self.expected[j.row, j.out].is_floating_point()]
        same = [j for j in held if self.expected[j.row, j.out].ndim > 1
                and self.expected[j.row, j.out].shape[:-1].numel() == own.numel()]
        return (same, own.numel()) if same else (held, 1)

    def _take(self, trials: Sequence[Trial]) -> bool:
        """Try them, and take what lessens the error of a cell most, and with it what lessens the rest. Whether any
        was."""
        if not self.r.fine.marks:
            self._again()
        found: Dict[Cell, List[Tuple[Place, int, Any, Any]]] = {}  # place, to, row, what it changes
        least = self.budget / 3 if trials[-1].alone else 0.0  # for those that come to light behind it
        cut_short, first = False, not self.known
        for t in trials:
            if self.budget <= least:
                cut_short = True
                break
            other = self._tried(t)
            for at, x in t.rows.items():
                of, rows = self._judging(at[0], self.by[at])
                key = tuple(j.row for j in of)
                for row in (x.flatten() >= 0).nonzero().flatten().tolist():
                    to = int(x.view(-1)[row])
                    c = row if rows > 1 else -1
                    d = self._part(of, rows, c, other) - self._part(of, rows, c, self.expected)
                    found.setdefault((key, c), []).append((at, to, row, d))
                    if t.alone and not self.by[at].view(-1)[row]:
                        self.known[at, to, row] = d
        any_taken = False
        if first and cut_short:
            self.rest = self._of_one()
        for (key, c), of in found.items():
            e = self._error(*self._judging(of[0][0][0], self.by[of[0][0]]), c)
            left = float(e.square().sum())
            while of and left > 0:
                least_error, n = min((float((e - d).square().sum()), n) for n, (_, _, _, d) in enumerate(of))
                if not least_error < BETTER * left:
                    break
                at, to, row, d = of[n]
                self.by[at].view(-1)[row] = to
                e, left, any_taken = e - d, least_error, True
                of = [x for x in of if (x[0], x[2]) != (at, row)]
        return any_taken

    def _of_one(self) -> float:
        """The squared error that another choice makes."""
        return sum(float(d.square().sum()) for d in self.known.values()) / max(1, len(self.known))

    def _left(self) -> float:
        """The squared error of all results behind choices."""
        found = [self._errors(j, self.expected[j.row, j.out], 1) for j in self._every()]
        return sum(float(e.sum()) for e in found if e is not None)

    def _how_wrong(self) -> float:
        """Of each wrong row, the logarithm of what it is beyond."""
        found = [self._floors(j, self._rows(j)) / WRONG for j in self._every()]
        return sum(float(x[x > 1].log().sum()) for x in found)

    def _every(self) -> List["Judged"]:
        """The results behind choices."""
        return sorted({j for of in self.behind.values() for j in of if (j.row, j.out) in self.expected
                       and (j.row, j.out) in self.floor and self.expected[j.row, j.out].is_floating_point()})

    def _part(self, of: Sequence["Judged"], rows: int, c: int, t: Optional["Results"]) -> Any:
        """The numbers of a cell in some results; None: the candidate's."""
        parts = []
        for j in of:
            like = self.expected[j.row, j.out]
            x = self._cand(j) if t is None else t.get((j.row, j.out), like)
            x, of_row = x.reshape(rows, -1)[max(c, 0)], lengths(like).reshape(rows, -1)[max(c, 0)]
            parts.append((x.double().reshape(*of_row.shape, -1) / of_row[..., None]).flatten().cpu())
        return finite(torch.cat(parts))

    def _error(self, of: Sequence["Judged"], rows: int, c: int) -> Any:
        return self._part(of, rows, c, None) - self._part(of, rows, c, self.expected)

    # ---- replays -------------------------------------------------------------------------------

    def _again(self) -> None:
        """Both sides with the choices as they are now."""
        fine = self.r.fine
        self._exchange(self.by)
        fine.marks = {i: {} for i in self.wave}
        self.expected = self.r.results(fine, self.without)[0]
        self.floor = self._same_choices()
        self.budget -= 2

    def _tried(self, t: Trial) -> "Results":
        """The results behind what is exchanged."""
        fine = self.r.fine
        first = min(i for i, _ in t.rows)
        behind = {j.node for at in t.rows for j in self._judging(at[0], self.by[at])[0]}
        only = {i for n in behind for i in needed(fine.trace, n, self.given, True) if i >= first}
        self._exchange({**self.by, **{at: torch.where(x >= 0, x, self.by[at]) for at, x in t.rows.items()}})
        kept = fine.chosen, fine.marks
        fine.marks = {}
        out = self.r.results(fine, self.without, begin=(kept[1][first], behind, only))[0]
        fine.chosen, fine.marks = kept
        self.budget -= len(only) / len(fine.trace.nodes)
        return out

    def _exchange(self, by: Dict[Place, Any]) -> None:
        self.r.fine.change = {}
        for (i, k), x in sorted(by.items(), key=lambda r: r[0]):
            self.r.fine.change.setdefault(i, []).append(choices.exchanged(x) if x.any() else None)

    def _pairs(self, node: int) -> List[Tuple[choices.Choice, choices.Choice]]:
        """The choices of a node of the reference in both runs."""
        other = self.r.coarse.chosen.get(self.r.same.get(node, -1))
        return list(zip(self.r.fine.chosen[node].made, other.made)) if other else []

    def _same_choices(self) -> "Results":
        """The floor of a run that chooses as the finer one did."""
        r = self.r
        r.coarse.change = {r.same[i]: [choices.as_in(c) for c in x.made] for i, x in r.fine.chosen.items()
                           if i in r.same}
        return r.results(r.coarse, self.without)[0]

    # ---- errors --------------------------------------------------------------------------------

    def _cand(self, j: "Judged") -> Any:
        return self.r.cand.tensor(j.step(self.r.cand), j.name)

    def _rows(self, j: "Judged") -> int:
        t = self.expected[j.row, j.out]
        return t.shape[:-1].numel() if t.ndim > 1 else 1

    def _errors(self, j: "Judged", t: Any, rows: int, of: Any = None) -> Optional[Any]:
        """The squared error of each of so many rows of a result, 1: of all, each relative to its row; None: its rows
        are others. of: of other numbers than the candidate's."""
        if not t.is_floating_point() or (rows > 1 and (t.ndim < 2 or t.shape[:-1].numel() != rows)):
            return None
        x = (self._cand(j) if of is None else of).reshape(t.shape).double()
        each = finite((x - t.double()) / lengths(t)[..., None] if t.ndim else x - t.double()).square()
        return each.reshape(rows, -1).sum(-1).cpu()

    def _floors(self, j: "Judged", rows: int) -> Any:
        """The squared error of each row in floors, and at least a quarter of the mean one."""
        k = (j.row, j.out)
        e = self._errors(j, self.expected[k], rows) if k in self.expected and k in self.floor else None
        if e is None:
            return torch.zeros(rows)
        f = self._errors(j, self.expected[k], rows, self.floor[k])
        return e / torch.maximum(f, f.mean() / 4).clamp(min=torch.finfo(torch.float32).tiny)

    def _wrong_rows(self, of: Sequence["Judged"], rows: int, most: float = WRONG) -> Any:
        """The rows of some results that are off by more than rounding."""
        found = torch.zeros(rows, dtype=torch.bool)
        for j in of:
            found |= self._floors(j, rows) > most
        return found

    # ---- what cannot be settled ----------------------------------------------------------------

    def _leave_out(self) -> None:
        self._give_up()
        self._free_choices()
        for name, of in self._named().items():
            self._leave_rows_out({j: self._choices_before(j) for j in of})

    def _named(self) -> Dict[str, List["Judged"]]:
        """The results behind choices, in all steps."""
        every = self._every()
        return {name: [j for j in every if j.name == name] for name in sorted({j.name for j in every})}

    def _choices_before(self, j: "Judged") -> List[Any]:
        """Those of its rows: place, how they are exchanged, the choices of both runs."""
        return [((i, k), self.by[i, k], *pair) for i, of in self.behind.items() if j in of
                for k, pair in enumerate(self._pairs(i))
                if (i, k) in self.by and self.by[i, k].numel() == self._rows(j)]

    @staticmethod
    def _several(of: List[Any]) -> Any:
        """The rows of which rounding decides several of these choices."""
        return sum((choices.undecided(a, b, 1) | (own != 0)).flatten().int() for _, own, a, b in of) > 1

    def _free_choices(self) -> None:
        """Where most rows stay wrong although rounding decides several choices of them, a candidate may be like a run
        that rounds at random and chooses for itself. It is then judged as one of them."""
        free: Set[str] = set()
        for name, of in self._named().items():
            wrong = torch.cat([self._wrong_rows([j], self._rows(j)) for j in of])
            some = [torch.as_tensor(self._several(self._choices_before(j))).expand(self._rows(j)).cpu() for j in of]
            if 2 * int(wrong.sum()) > len(wrong) > 1 and 2 * int((torch.cat(some) & wrong).sum()) > int(wrong.sum()):
                free.add(name)
        refused: Set[str] = set()
        settled, least = self.expected, {j: self._floors_of(j) for j in self._every()}
        while free - refused:
            nodes = lambda names: {i for i, of in self.behind.items() if any(j.name in names for j in of)}
            loose = nodes(free - refused) - nodes(refused)
            if not loose:
                return
            expected, drawn = self._drawn(loose)
            more = {n for n in free - refused if not self._is_drawn(self._named()[n], expected, drawn, least)}
            refused |= more
            if more:
                continue
            for j in {j for i in loose for j in self.behind[i] if (j.row, j.out) in settled}:
                k = (j.row, j.out)
                if k in expected and all(k in d for d in drawn):
                    t, a = expected[k], drawn[0][k]
                    if t.is_floating_point():
                        most = torch.stack([(d[k].double() - t.double()).square() for d in drawn]).mean(0).sqrt()
                        a = (t.double() + most.copysign(a.double() - t.double())).to(torch.promote_types(
                            t.dtype, torch.float32))
                    self.expected[k], self.floor[k] = t, a
            for at, x in self.by.items():
                if at[0] in loose:
                    x.zero_()
            self._exchange(self.by)
            return

    def _floors_of(self, j: "Judged") -> Any:
        k = (j.row, j.out)
        return self._errors(j, self.expected[k], self._rows(j), self.floor[k]).mean() / 4

    def _drawn(self, loose: Set[int]) -> Tuple["Results", List["Results"]]:
        """What the reference computes, and what draws do, of which each makes these nodes' choices for itself: the
        floor's run, and others whose results are rounded at random."""
        fine, coarse = self.r.fine, self.r.coarse
        fine.marks = {}
        self._exchange({at: x for at, x in self.by.items() if at[0] not in loose})
        expected = self.r.results(fine, self.without)[0]
        chosen, change = fine.chosen, fine.change
        fine.change = {i: [choices.as_in(c) for c in x.made] for i, x in chosen.items() if i not in loose}
        coarse.change = {self.r.same[i]: x for i, x in fine.change.items() if i in self.r.same}
        drawn = [self.r.results(coarse, self.without)[0]]
        drawn += [self.r.results(fine, self.without, draw=n)[0] for n in range(DRAWS)]
        fine.chosen, fine.change = chosen, change
        return expected, drawn

    def _is_drawn(self, of: Sequence["Judged"], expected: "Results", drawn: Sequence["Results"],
                  least: Dict["Judged", Any]) -> bool:
        """Do the candidate's rows stand apart about as often as those of a draw?"""
        apart = torch.zeros(1 + len(drawn))
        for j in of:
            k, rows = (j.row, j.out), self._rows(j)
            if k not in expected or not all(k in d for d in drawn):
                return False
            e = [self._errors(j, expected[k], rows, *x) for x in ((), *((d[k],) for d in drawn))]
            for n, x in enumerate(e):
                others = torch.stack([y for m, y in enumerate(e) if m not in (0, n)]).amax(0)
                apart[n] += (x > WRONG * torch.maximum(others, least[j])).sum()
        return bool(apart[0] <= APART * apart[1:].max() + 1)

    def _give_up(self) -> None:
        """Where the choices that were tried alone do not explain an error, they are taken back; where those that were
        not tried may, the result is not judged."""
        stuck, lost = False, set()
        for at, own in self.by.items():
            of, rows = self._judging(at[0], own)
            if rows == 1 < own.numel() and self._wrong_rows(of, 1, FAR).any():
                if float(self._error(of, 1, -1).square().sum()) <= self.rest:
                    lost |= {(j.row, j.out) for j in of}
                stuck = bool(own.any()) or stuck
                own.zero_()
        if stuck:
            self._again()
        for k in lost & set(self.expected):  # after _again, one may have failed
            del self.expected[k]
            self.r.failed[k[0]] = "it is behind more choices that were not recorded, and that rounding decides, " \
                "than can be tried"

    def _leave_rows_out(self, made: Dict["Judged", List[Any]]) -> None:
        """Leaves out the wrong rows of a result, in all steps, whose error is no larger than what exchanging makes of
        them, in rows of which rounding decides several choices: not every combination was tried. Most rows of a wrong
        result are wrong."""
        wrong: Dict[Judged, Any] = {}
        by, n = dict(self.by), 0
        for j, of in made.items():
            if not of:
                continue
            wrong[j], n = self._wrong_rows([j], self._rows(j)), n + self._rows(j)
            several = self._several(of)
            for at, own, a, b in of if wrong[j].any() else ():
                free = choices.undecided(a, b, 1) | (own != 0)
                by[at] = torch.where(free & several.reshape(own.shape), (own == 0).to(own.dtype), own)
        if all(torch.equal(x, self.by[at]) for at, x in by.items()) or \
                sum(int(x.sum()) for x in wrong.values()) > (n + FEW * (n == len(wrong))) * MOST_LEFT_OUT:
            return
        other = self._as_exchanged(by)
        for j, x in wrong.items():
            k, step = (j.row, j.out), j.step(self.r.cand)
            t = self.expected[k]
            x &= self._errors(j, t, x.numel()) <= FREE * self._errors(j, t, x.numel(), other.get(k, t))
            c, rows = self.r.cand.tensor(step, j.name), x.to(t.device).reshape(*t.shape[:-1], 1)
            for held in (self.expected, self.floor):
                held[k] = torch.where(rows, c.reshape(held[k].shape).to(held[k].dtype), held[k])
            if x.any():
                self.r.unjudged.append(dict(step=step, name=j.name, why=(
                    f"{int(x.sum())} of its {x.numel()} rows are behind choices that were not recorded, and that "
                    "rounding decides")))

    def _as_exchanged(self, by: Dict[Place, Any]) -> "Results":
        """The results behind other choices, which are then again what they were."""
        fine = self.r.fine
        kept, fine.marks = fine.chosen, {}
        self._exchange(by)
        out = self.r.results(fine, self.without)[0]
        self._exchange(self.by)
        fine.chosen = kept
        return out


def finite(t: Any) -> Any:
    return torch.where(t.isfinite(), t, 0)


def lengths(t: Any) -> Any:
    """Of each row of numbers (..., n); 0: infinite, so that what is divided by it counts for nothing."""
    each = finite(t.double()).square().sum(-1).sqrt() if t.ndim else t.double().abs()
    return torch.where(each > 0, each, torch.inf)
