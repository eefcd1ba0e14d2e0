"""sources.py: which tensors of a model's files each weight in memory is: one, several joined along the first axis, one
cut or transposed, or one for each slice. Proved by digests of the numbers in the weight's format.

A line is {"weight": name, "parts": [part, ...]}: one part, or one for each slice of the first axis; a part is a list of
{"tensor": name, "rows": [first, behind the last], "transposed": true}, or null where the files have no such numbers.
"""

from collections import defaultdict
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import quantised
from .numbers import dense, digest_of, host
from .offload import release
from .weights import in_torch, stored_weights

Part = Optional[List[Dict[str, Any]]]


class Files:
    """The tensors of a directory in a number format."""

    def __init__(self, directory: str, dtype: Any) -> None:
        self.tensors = {name: in_torch(kind, bits) for name, kind, bits in stored_weights(directory)}
        self.dtype = dtype
        self._names: Dict[Tuple[Any, ...], List[str]] = defaultdict(list)  # (digest, shape)
        self._rows: Dict[Tuple[int, ...], set] = defaultdict(set)  # type: ignore[type-arg] # by the other axes
        for name, t in self.tensors.items():
            if t.ndim:
                self._names[self._key(t.to(dtype))].append(name)
                self._rows[tuple(t.shape[1:])].add(len(t))

    @staticmethod
    def _key(t: Any) -> Tuple[Any, ...]:
        return digest_of(host(t.contiguous())[0]), *t.shape

    def _joined(self, a: Any, own: str) -> Part:
        parts, at = [], 0
        while at < len(a):
            for n in sorted(self._rows.get(tuple(a.shape[1:]), ()), reverse=True):
                found = self._names.get(self._key(a[at : at + n])) if at + n <= len(a) else None
                if found:
                    parts.append(dict(tensor=next((x for x in found if x.endswith(own)), found[0])))
                    at += n
                    break
            else:
                return None
        return parts

    def _cut(self, a: Any) -> Part:
        for name, t in self.tensors.items():
            if t.ndim == a.ndim and t.shape[1:] == a.shape[1:] and len(t) > len(a):
                t = t.to(self.dtype)
                first = (t == a[0]).reshape(len(t), -1).all(1).nonzero().flatten().tolist()
                for k in first:
                    if t[k : k + len(a)].equal(a):
                        return [dict(tensor=name, rows=[k, k + len(a)])]
        return None

    def part(self, a: Any, own: str) -> Part:
        """What a weight, or a slice of one, is. own: the end of the name that a file has for it, if any."""
        found = self._joined(a, own) or self._cut(a)
        if found is None and a.ndim == 2:
            found = [{**x, "transposed": True} for x in self._joined(a.t(), own) or self._cut(a.t()) or ()] or None
        return found


def of_model(model: Any, directory: str) -> Tuple[List[Dict[str, Any]], Dict[str, Any]]:
    """(the lines, the weights of which some numbers are not in the files)."""
    files: Dict[Any, Files] = {}
    lines, rest = [], {}
    for name, t in quantised.of_model(model).items():
        if t.is_meta or not t.ndim:
            continue
        release()
        a = dense(t).cpu()
        of = files[a.dtype] = files.get(a.dtype) or Files(directory, a.dtype)
        parts = [of.part(a, name)]
        if parts == [None] and a.ndim > 2:
            parts = [of.part(x, name) for x in a]
            parts = parts if any(parts) else [None]
        lines.append(dict(weight=name, parts=parts))
        if not all(parts):
            rest[name] = t
    return lines, rest


def said(part: Part) -> str:
    """ "a + b[0:8] transposed" """
    def one(x: Mapping[str, Any]) -> str:
        rows = x.get("rows")
        return f"{x['tensor']}{f'[{rows[0]}:{rows[1]}]' if rows else ''}{' transposed' if x.get('transposed') else ''}"
    return "in no file" if not part else " + ".join(map(one, part))


def different(cand: Sequence[Mapping[str, Any]], ref: Sequence[Mapping[str, Any]]) -> List[Dict[str, str]]:
    """The weights, or slices, that are other tensors in the candidate: {"weight", "candidate", "reference"}."""
    due = {x["weight"]: x["parts"] for x in ref}
    found = []
    for x in cand:
        a, b = x["parts"], due.get(x["weight"], x["parts"])
        a, b = (y * (max(len(a), len(b)) if len(y) == 1 else 1) for y in (a, b))
        for i, (p, q) in enumerate(zip(a, b)):
            if p != q and q is not None:
                at = f"[{i}]" if len(a) > 1 else ""
                found.append(dict(weight=x["weight"] + at, candidate=said(p), reference=said(q)))
    return found


def few_differ(cand: Sequence[Mapping[str, Any]], ref: Sequence[Mapping[str, Any]]) -> bool:
    """Whether some weights differ, but not most: then it is not another checkpoint."""
    return 0 < len({x["weight"].partition("[")[0] for x in different(cand, ref)}) <= len(cand) / 2
