"""align.py: pairs the nodes of two plans of one model: inside each module's path by the sequence of operations.

Casts are left out. Several calls of one leaf in a step are paired by their arguments and readers, since the order of
such calls may change from process to process (a loop over a `set`).
"""

import difflib
import json
from collections import defaultdict
from typing import Any, Dict, FrozenSet, List, Sequence, Set, Tuple

from .rows import Row, places_read

Key = Tuple[int, str, int]  # (step, path, turn)


def align(a: Sequence[Row], b: Sequence[Row]) -> Dict[int, int]:
    """Indices of rows of a -> indices of rows of b."""
    pairs: Dict[int, int] = {}
    alike = _turns(a).items() & _turns(b).items()
    groups_a, groups_b = _groups(a, alike), _groups(b, alike)
    readers_a, readers_b = _readers(a), _readers(b)
    for key, x in groups_a.items():
        y = groups_b.get(key, [])
        if not y:
            continue
        if all(a[i].get("leaf") for i in x) and all(b[j].get("leaf") for j in y) and len(y) > 1:
            found = _calls(a, b, x, y, readers_a, readers_b)
            if found is not None:
                pairs.update(found)
                continue
        ops_a, ops_b = [a[i]["op"] for i in x], [b[j]["op"] for j in y]
        if a[x[0]].get("leaf") and b[y[0]].get("leaf") and len(x) == len(y):
            pairs.update(zip(x, y))  # another class at the same place
        elif ops_a == ops_b:
            pairs.update(zip(x, y))
        else:
            for i, j, n in difflib.SequenceMatcher(None, ops_a, ops_b, autojunk=False).get_matching_blocks():
                pairs.update(zip(x[i:i + n], y[j:j + n]))
    return pairs


def moved(a: Sequence[Row], b: Sequence[Row], pairs: Dict[int, int]) -> Set[int]:
    """Rows of a, of functions, that read something else than their partners in b: perhaps they stand for another
    tensor. Nodes without a partner are looked through."""
    of_a, of_b = _sources(a, {i: i for i in pairs}), _sources(b, {j: i for i, j in pairs.items()})
    return {i for i, j in pairs.items() if not a[i].get("leaf") and a[i]["op"] != "result" and of_a[i] != of_b[j]}


def _sources(rows: Sequence[Row], numbers: Dict[int, int]) -> List[FrozenSet[Any]]:
    """By row: the numbers of the nodes that it reads, the inputs and the weights."""
    out: List[FrozenSet[Any]] = []
    made: Dict[Tuple[int, str], int] = {}
    for i, r in enumerate(rows):
        found: Set[Any] = set()
        for x, place in zip(r["in"], places_read(r)):
            at = made.get(place)
            if at is None:
                found |= {(k, x[k]) for k in ("input", "param") if k in x}
            else:
                found |= {numbers[at]} if at in numbers else out[at]
        out.append(frozenset(found))
        made.update(((r["step"], name), i) for name in r["out"])
    return out


def _turns(rows: Sequence[Row]) -> Dict[Tuple[int, str], int]:
    """By (step, path) of a module that is no leaf: the last of its calls."""
    out: Dict[Tuple[int, str], int] = {}
    for r in rows:
        if not r.get("leaf"):
            out[r["step"], r["path"]] = max(r.get("turn", 0), out.get((r["step"], r["path"]), 0))
    return out


def _groups(rows: Sequence[Row], alike: Set[Any]) -> Dict[Key, List[int]]:
    """alike: items of _turns() that both plans have: then each call of the module is a group."""
    last, out = dict(alike), defaultdict(list)  # type: ignore[var-annotated]
    for i, r in enumerate(rows):
        if r["op"] == "result":
            out[r["step"], "/" + r["out"][0], 0].append(i)  # results are known by name
        elif not r.get("cast"):
            out[r["step"], r["path"], r.get("turn", 0) if (r["step"], r["path"]) in last else 0].append(i)
    return out


def _readers(rows: Sequence[Row]) -> Dict[Tuple[int, str], str]:
    """By (step, name of a result): the paths of the modules that read it in its step."""
    out: Dict[Tuple[int, str], set] = defaultdict(set)  # type: ignore[type-arg]
    for r in rows:
        for x in r["in"]:
            if "from" in x and not x.get("back"):
                out[r["step"], x["from"]].add(r["path"])
    return {k: " ".join(sorted(v)) for k, v in out.items()}


def _calls(a: Sequence[Row], b: Sequence[Row], x: List[int], y: List[int], readers_a: Dict[Any, str],
           readers_b: Dict[Any, str]) -> Any:
    """Pairs of calls of one leaf whose arguments, or else readers, are the same and not those of another call; None
    if they do not tell the calls apart."""
    if len(x) != len(y):
        return None
    of_arguments = lambda r, readers: json.dumps({k: v for k, v in r.get("const", {}).items() if k.startswith("arg.")},
                                                 sort_keys=True)
    of_readers = lambda r, readers: " | ".join(readers.get((r["step"], n), "") for n in r["out"])
    for mark in (of_arguments, of_readers):
        marks_a = [mark(a[i], readers_a) for i in x]
        marks_b = [mark(b[j], readers_b) for j in y]
        if sorted(marks_a) == sorted(marks_b) and len(set(marks_a)) == len(x):
            return {i: y[marks_b.index(m)] for i, m in zip(x, marks_a)}
    return None
