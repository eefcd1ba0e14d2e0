"""rows.py: a plan as rows of JSON: what a recording of any PyTorch model keeps of each node, module and value.

A row is {"op", "path", "step", "out": [names], "in": [{"from": name, "back": steps} | {"param"} | {"input", "back"} |
{"const": digest}], "const": {settings}, "weights", "class", "cast", "writes", "shape"}. What is false or empty is left
out. A step whose rows are those of the step before is one row: {"step": 6, "same_as": 5}.
"""

import itertools
import json
import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from .tracer import Listed, Node, Ref, Trace, is_leaf

Row = Dict[str, Any]
MOST_SETTINGS = 80
MOST_NODES = 1 << 22  # as the program has it


def setting(x: Any) -> Optional[Any]:
    """A setting as JSON, or None if it is no plain value. Numbers that JSON lacks are words."""
    if isinstance(x, bool) or (isinstance(x, str) and len(x) <= 60):
        return x
    if isinstance(x, int):
        return x if abs(x) < 1 << 53 else str(x)
    if isinstance(x, float):
        return x if math.isfinite(x) else str(x)
    if isinstance(x, slice):
        return str([y if isinstance(y, (int, type(None))) else "..." for y in (x.start, x.stop, x.step)])
    if isinstance(x, (list, tuple)) and len(x) <= 8 and all(isinstance(y, (bool, int, float, str)) for y in x):
        return [setting(y) for y in x]
    return None


def of_module(m: Any, inside: bool = False) -> Dict[str, Any]:
    """The plain attributes of a module; inside: also those of the modules in it."""
    found = {f"{path}.{k}".lstrip("."): setting(v) for path, x in (m.named_modules() if inside else [("", m)])
             for k, v in vars(x).items() if not k.startswith("_") and k != "training"}
    return {k: v for k, v in list(found.items())[:MOST_SETTINGS] if v is not None}


def of_arguments(n: Node) -> Dict[str, Any]:
    """The arguments of a node's call that are no tensors, by place or name."""
    out: Dict[str, Any] = {}

    def add(name: str, x: Any) -> None:
        if isinstance(x, (Ref, Listed)) or len(out) >= MOST_SETTINGS:
            return
        said = setting(x)
        if said is not None:
            out[name] = said
        elif isinstance(x, (list, tuple)):
            for i, y in enumerate(x[:8]):
                add(f"{name}.{i}", y)

    args, kwargs = n.args
    for i, x in enumerate(args):
        add(str(i), x)
    for k, x in kwargs.items():
        add(str(k), x)
    return out


def row_of(trace: Trace, n: Node) -> Row:
    made = {r.key for r in n.outs}
    row: Row = dict(op=n.op, path=n.path, step=n.step, out=n.names())
    row["in"] = [_source(trace, n, r) for r in n.ins if r.key not in made]
    const = of_arguments(n)
    if n.leaf:
        const = {**{f"arg.{k}": v for k, v in const.items()}, **of_module(n.fn, True)}
        row["class"] = f"{type(n.fn).__module__}.{type(n.fn).__qualname__}"
        row["weights"] = [f"{n.path}.{k}".lstrip(".") for k, _ in n.fn.named_parameters()]
    more = dict(const=const, turn=n.turn, cast=n.cast, leaf=n.leaf, blind=n.blind,
                writes=[_source(trace, n, r) for r in n.writes])
    row.update({k: v for k, v in more.items() if v})
    return row


def _source(trace: Trace, n: Node, r: Ref) -> Dict[str, Any]:
    m = trace.maker_of(r)
    if m is not None:
        names = [name for name, x in zip(m.names(), m.outs) if x.storage == r.storage] or m.names()
        return {"from": names[0], **({"back": n.step - m.step} if m.step != n.step else {})}
    kind, name, step = trace.source[r.key]
    if kind in ("param", "buffer"):
        return {"param": name}
    if kind == "input":
        return {"input": name, **({"back": n.step - step} if step != n.step else {})}
    return {"const": name}


def places_read(row: Row) -> List[Tuple[int, str]]:
    """(step, name) of the results that a row reads; the name of other things is ""."""
    return [(row["step"] - int(x.get("back", 0)), x.get("from", "")) for x in row["in"]]


def rows_of(trace: Trace) -> List[Row]:
    return [row_of(trace, n) for n in trace.nodes]


def modules_of(model: Any) -> List[Row]:
    """The modules that are no leaf, with their settings."""
    return [dict(path=path, **{"class": f"{type(m).__module__}.{type(m).__qualname__}"}, const=of_module(m))
            for path, m in model.named_modules() if not is_leaf(m)]


def lines_of(rows: Sequence[Row]) -> List[str]:
    """One JSON text for each row; see above for steps that repeat."""
    out: List[str] = []
    before: List[str] = []
    for step, every in itertools.groupby(rows, lambda r: r["step"]):
        of_step = list(every)
        now = [json.dumps({k: v for k, v in r.items() if k != "step"}) for r in of_step]
        if before and now == before:
            out.append(json.dumps({"step": step, "same_as": step - 1}))
        else:
            out += [json.dumps({**r, "step": step}) for r in of_step]
        before = now
    return out


def rows_from(lines: Sequence[str]) -> List[Row]:
    """The rows of the lines of a file. Raises ValueError, KeyError, TypeError: they are not such lines."""
    rows: List[Row] = []
    begin = 0  # of the rows of the last step
    for line in lines:
        r = json.loads(line)
        step, last = r["step"], rows[-1]["step"] if rows else -1
        if not isinstance(step, int) or step < last:
            raise ValueError(f"node {len(rows)}: its step is no number, or before that of the line before")
        before = len(rows)
        if "same_as" in r:
            if not rows or r["same_as"] != last or step == last:
                raise ValueError(f"node {before}: same_as is not the number of the step before")
            if 2 * before - begin > MOST_NODES:
                raise ValueError(f"more than {MOST_NODES} nodes")
            rows += [{**x, "step": step} for x in rows[begin:]]
        else:
            if not (isinstance(r["op"], str) and isinstance(r["path"], str) and isinstance(r.get("const", {}), dict)
                    and all(isinstance(x, str) for x in r["out"]) and all(isinstance(x, dict) for x in r["in"])):
                raise ValueError(f"node {before}: without op, path, out or in")
            rows.append(r)
        begin = before if step != last else begin
    return rows


def dtype_of(name: str) -> Any:
    """The torch format of a name as of str(dtype)."""
    found = getattr(torch, name.rpartition(".")[2], None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{name}: not a number format")
    return found
