"""replayed.py: writes what a replay computed to a file, from which `vernier compare --replayed` judges."""

import json
import os
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

import numpy as np
import torch

from . import about, choices, h5, sources
from .alternatives import Alternatives
from .candidate import Candidate
from .compute import Given
from .numbers import RecordingError, stored
from .replaying import Judged, Place, Replay, Results
from .settling import Settling

MOST_NAMES = 200  # of a region that are listed


def write(r: Replay, path: str, verdict: Optional[str] = None, force: bool = False, shown: str = "") -> int:
    """Write the result of a replay. verdict: a report of `vernier compare --format json`, whose wrong nodes are
    computed in place of given in a second round. shown: what reports call the file. Returns of how many wrong results
    not every mistake was tried."""
    wrong = origins_in(verdict, r) if verdict is not None else set()
    gone = wrong_in(verdict, r) if verdict is not None else set()
    tried = Alternatives(r) if wrong else None
    again, again_floor = (r.results(side, gone)[0] if gone else {} for side in (r.fine, r.coarse))
    first = r.fine.change, r.coarse.change, r.exchanged
    if gone:
        again, again_floor = Settling(r, again, again_floor, gone).settled()
        r.fine.change, r.coarse.change, r.exchanged = first
    lines, unjudged, tool = _Lines(r, gone, again, again_floor, tried), list(r.unjudged), "vernier_parity"
    with h5.written(path, force, format="vernier-replayed", format_version=1, tool=tool) as (file, disk):
        h5.group(file, "run", candidate=r.cand.sum(), reference=r.sum, format=about.WORDS[r.own], tool=tool,
                 rounds=1 if verdict is None else 2, **(dict(shown_as=shown) if shown else {}))
        steps = [h5.group(file, f"step.{n}") for n in range(r.cand.steps)]
        results = []
        for j in sorted(r.judged, key=lambda x: (x.node, x.out)):
            step = j.step(r.cand)
            if (j.row, j.out) not in r.expected or (j.row, j.out) not in r.floor:
                why = r.failed.get(j.row) or "it could not be computed"
                unjudged.append(dict(step=step, name=j.name, why=why))
                continue
            line, numbers = lines.of(j, (step, j.name) in wrong)
            results.append(line)
            at = h5.group(steps[step], j.name)
            for name, t in numbers.items():
                a = _array(t)
                h5.put_digest(h5.put_array(at.id, name, a, disk), a)
        at = h5.group(file, "replay")
        for key, said in (("results", results), ("unjudged", unjudged), ("settings", r.settings() + sources.different(
                r.cand.sources, r.fine.run.sources))):
            h5.put_lines(at, key, [json.dumps(x) for x in said])
    return tried.cut if tried else 0


class _Lines:
    """What a replay file says of each result: members of a line of JSON, and numbers by the name of their dataset.

    gone, again, again_floor: what is computed in place of given in a second round, and what that round computes.
    """

    def __init__(self, r: Replay, gone: Set[Place], again: Results, again_floor: Results,
                 tried: Optional[Alternatives]) -> None:
        self.r, self.gone, self.again, self.again_floor, self.tried = r, gone, again, again_floor, tried
        self.given, self.given_again = r.given(r.fine), r.given(r.fine, gone)
        self.extra, self.names = r.extra(), Names(r)

    def of(self, j: Judged, wrong: bool) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        r, k, step, region = self.r, (j.row, j.out), j.step(self.r.cand), self.r.region(j.node, self.given)
        before = lambda nodes: self.names.all_of((i for i in nodes if i != j.node), step)
        line = dict(step=step, name=j.name, reference=r.fine.rows[r.fine.pairs[j.row]]["out"][j.out], node=j.node,
                    op=r.cand.rows[j.row]["op"][:31], span=len(region), region=before(region)[-MOST_NAMES:],
                    extra=self.extra[j.row][:MOST_NAMES], floor_format=_word(r, j, region),
                    reads=self.names.read_by(region, step, self.given)[:MOST_NAMES])
        numbers = dict(expected=r.expected[k], floor=r.floor[k])
        line["kind"], beside = _kind(r.cand, j)
        exchanged = sum(r.exchanged.get(i, 0) for i in region)
        if exchanged:
            line["exchanged"] = exchanged
        if k in r.projections:
            line["projections"] = r.projections[k]
        if beside:
            line["scores" if line["kind"] == "choice" else "ids"] = beside
        wider = r.region(j.node, self.given_again)
        if k in self.again and (step, j.name) not in self.gone and wider != region:
            numbers.update(again=self.again[k], again_floor=self.again_floor[k])
            line["again_region"] = before(wider)
        if self.tried and wrong and line["kind"] == "numbers" and not beside:
            found, line["tried"] = self.tried.of(j)
            line["alternatives"] = [dict(what=x.what, due=x.due, **{"is": x.is_}) for x in found]
            for i, x in enumerate(found):
                numbers[f"alternative{i}"] = x.expected
                if x.floor is not None:
                    numbers[f"alternative{i}_floor"] = x.floor
        return line, numbers


class Names:
    """The names of a reference's nodes in a replay file: those of the candidate's results where it has them, with
    "step.N/" in front in another step."""

    def __init__(self, r: Replay) -> None:
        self.r = r
        self.held: Dict[int, List[str]] = {}
        for j in r.judged:
            self.held.setdefault(j.node, []).append(j.name)

    def of(self, node: int, step: int) -> List[str]:
        n = self.r.fine.trace.nodes[node]
        front = "" if n.step == step else f"step.{n.step}/"
        return [front + name for name in self.held.get(node, [n.name])]

    def all_of(self, nodes: Iterable[int], step: int) -> List[str]:
        return [name for i in nodes for name in self.of(i, step)]

    def read_by(self, region: List[int], step: int, given: Given) -> List[str]:
        """What the region was given."""
        trace, inside = self.r.fine.trace, set(region)
        found = {trace.maker.get(x.key) for i in region
                 for x in (*trace.nodes[i].ins, *trace.nodes[i].writes)}
        return self.all_of(sorted(w for w in found if w is not None and w not in inside and w in given), step)


def _word(r: Replay, j: Judged, region: List[int]) -> str:
    """The number format in which the floor's run keeps the result; of float64 the coarsest that something before it
    has (transformers' eager attention and its norms: float32, in any format)."""
    narrow = choices.coarsest(*(r.fine.narrow.get(i) for i in region))
    if r.own == torch.float64 and narrow:
        return about.WORDS[narrow]
    n = r.coarse.node(j.row)
    assert n is not None
    kept = n.outs[j.out].dtype
    return about.WORDS.get(torch.empty(0, dtype=kept).real.dtype if kept.is_complex else kept, "i32")


def _array(t: Any) -> np.ndarray:
    """Numbers as float32 or float64, ids as int32."""
    if t.is_floating_point() and t.dtype not in (torch.float32, torch.float64):
        t = t.float()
    return stored(t)[0]


def _kind(cand: Candidate, j: Judged) -> Tuple[str, str]:
    """("numbers", the ids beside them or ""), ("ids", ""), or ("choice", the scores beside the ids)."""
    row = cand.rows[j.row]
    held = [n for n in row["out"] if (row["step"], n) in cand.held]
    number = lambda n: cand.held[row["step"], n].dtype.kind == "f" or "dtype" in cand.held[row["step"], n].attrs
    beside = [n for n in held if cand.shape(row["step"], n) == cand.shape(row["step"], j.name)]
    scores, ids = ([n for n in beside if number(n) == of] for of in (True, False))
    if not number(j.name):
        return ("choice", scores[-1]) if scores else ("ids", "")
    return "numbers", ids[-1] if ids and j.name == scores[-1] else ""


def wrong_in(path: str, r: Replay) -> Set[Place]:
    """Those of origins_in() that a second round computes: results of the model are always judged."""
    results = {(j.step(r.cand), j.name) for j in r.judged if r.cand.rows[j.row]["op"] == "result"}
    return origins_in(path, r) - results


def origins_in(path: str, r: Replay) -> Set[Place]:
    """The results that a verdict calls wrong by their own operation. All results of such a node count. Raises
    RecordingError: not such a report."""
    try:
        with open(os.fspath(path), encoding="utf-8") as f:
            said = json.load(f)
        names = set(said["origins"]) | {x["name"] for x in said["divergences"] if x.get("origin")}
        places: Set[Place] = {(int(x["step"]), x["name"]) for x in said["checkpoints"] if x.get("origin")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise RecordingError(f"{path}: not a report of `vernier compare --format json`: {e}") from None
    for n in names:
        step, _, name = n.rpartition("/") if n.startswith("step.") else ("step.0", "", n)
        places.add((int(step[5:]), name))
    wrong = {j.row for j in r.judged if (j.step(r.cand), j.name) in places}
    return {(j.step(r.cand), j.name) for j in r.judged if j.row in wrong}
