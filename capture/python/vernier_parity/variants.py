"""variants.py: mistakes that a replay can make at a node of any model: what a variant is called, and by which calls it
is made. The words are those of the program's table of variants.

A table of what only needs the node (`of_node`); `Fit` finds, from the numbers, what no table can list.
"""

import itertools
import json
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.func import functional_call

from .compute import Call, Instead
from .tracer import Node, Trace, tensors, walk

F = torch.nn.functional


class Variant(NamedTuple):
    what: str  # a row of variants.def
    is_: str  # what its sentence says of the candidate,
    due: str  # and of the reference
    instead: Instead  # node of the fine run -> the call


# ---- activations ---------------------------------------------------------------------------------

ACTIVATIONS: Dict[str, Callable[[Any], Any]] = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_quick": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "relu": F.relu,
    "relu_squared": lambda x: F.relu(x) ** 2,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": F.softplus,
}
# of which the differences may be far below one rounding of the result
SMALL = {"activation": ("gelu", "gelu_tanh", "gelu_quick"), "eps": (1e-5, 1e-6, 1e-8, 1e-12)}
EPS = [0.0, *(10.0 ** -k for k in range(13))]
NAME = re.compile("GELU|SiLU|Swish|ReLU|Activation|Mish|Tanh|Sigmoid")


def own_activation(n: Node, x: Any, y: Any) -> str:
    """Which of ACTIVATIONS gives y of x; else the name of the class or function."""
    for word, f in ACTIVATIONS.items():
        if torch.allclose(f(x.double()), y.double(), rtol=1e-4, atol=1e-5 * float(y.abs().max() + 1e-30)):
            if word.startswith("gelu"):  # variants are closer to each other than that
                return min((w for w in ACTIVATIONS if w.startswith("gelu")),
                           key=lambda w: float((ACTIVATIONS[w](x.double()) - y.double()).abs().max()))
            return word
    return n.op


def _activations(n: Node, args: Any, out: Any, small: bool) -> Iterator[Variant]:
    x = tensors(args)
    if len(x) != 1 or x[0].shape != out.shape or not x[0].is_floating_point() or x[0].numel() < 2:
        return
    if n.leaf and (any(True for _ in n.fn.parameters()) or not NAME.search(type(n.fn).__name__)):
        return
    if not n.leaf and n.op not in ("gelu", "silu", "relu", "sigmoid", "tanh", "softplus", "mish", "hardswish"):
        return
    own = own_activation(n, x[0], out)
    words = [w for w in (SMALL["activation"] if small else ACTIVATIONS) if w != own]
    if small and own not in SMALL["activation"]:
        return
    for word in words:
        yield Variant("activation", word, own, {
            n.index: lambda fn, a, k, f=ACTIVATIONS[word]: rounded(f, tensors((a, k))[0])})


def rounded(f: Callable[[Any], Any], x: Any) -> Any:
    """f(x), rounded once."""
    return f(x if x.dtype == torch.float64 else x.float()).to(x.dtype)


def _inner_activations(n: Node) -> Iterator[Variant]:
    """Another activation inside a leaf, such as that of experts."""
    for path, m in n.fn.named_modules():
        if not path or not NAME.search(type(m).__name__):
            continue
        x = torch.linspace(-4, 4, 65)
        own = own_activation(Node(0, "", 0, type(m).__name__, m), x, m(x))
        for word, f in ACTIVATIONS.items():
            if word != own:
                yield Variant("activation", word, own, {n.index: _with_forward(path, f)})


def _with_forward(path: str, f: Callable[[Any], Any]) -> Call:
    """A call of a module in which a module of it computes f."""
    def call(fn: Any, args: Any, kwargs: Any) -> Any:
        m = fn.get_submodule(path)
        m.forward = lambda x: rounded(f, x)
        try:
            return fn(*args, **kwargs)
        finally:
            del m.forward
    return call


# ---- leaves with weights -------------------------------------------------------------------------

def with_weights(change: Callable[[Dict[str, Any]], Dict[str, Any]]) -> Call:
    """A call of a module with other weights: change() gets those of the module by name."""
    def call(fn: Any, args: Any, kwargs: Any) -> Any:
        return functional_call(fn, change(dict(fn.named_parameters())), args, kwargs)
    return call


def with_setting(path: str, value: Any) -> Call:
    """A call of a module while an attribute of it, or of a module in it, has another value."""
    def call(fn: Any, args: Any, kwargs: Any) -> Any:
        owner, _, name = path.rpartition(".")
        m = fn.get_submodule(owner)
        old = getattr(m, name)
        setattr(m, name, value)
        try:
            return fn(*args, **kwargs)
        finally:
            setattr(m, name, old)
    return call


def eps_of(m: Any) -> Optional[str]:
    return next((k for k in ("eps", "variance_epsilon", "epsilon", "layer_norm_eps") if isinstance(
        getattr(m, k, None), float)), None)


def _norms(n: Node, small: bool) -> Iterator[Variant]:
    key = eps_of(n.fn)
    if key is None:
        return
    own = getattr(n.fn, key)
    for value in SMALL["eps"] if small else EPS:
        if abs(value - own) > 0.01 * own:
            yield Variant("eps", f"{value:.3g}", f"{own:.3g}", {n.index: with_setting(key, value)})
    w = getattr(n.fn, "weight", None)
    if isinstance(w, torch.Tensor) and w.ndim == 1 and not small:
        for by, said, due in ((1.0, "1 + weight", "weight"), (-1.0, "weight", "1 + weight")):
            yield Variant("norm_weight", said, due, {
                n.index: with_weights(lambda p, by=by: dict(weight=p["weight"] + by))})


def is_product(m: Any) -> bool:
    return isinstance(m, torch.nn.Linear) or type(m).__name__ in ("Conv1D", "Linear")


def _weights(trace: Trace, n: Node) -> Iterator[Variant]:
    m = n.fn
    for name, p in m.named_parameters():
        if "bias" in name and p.ndim < 3:
            yield Variant("bias", name, "", {n.index: with_weights(lambda q, name=name: {name: q[name] * 0})})
            yield Variant("bias_twice", name, "", {n.index: with_weights(lambda q, name=name: {name: q[name] * 2})})
    w = getattr(m, "weight", None)
    if not isinstance(w, torch.Tensor) or w.ndim != 2:
        return
    if is_product(m):
        if w.shape[0] == w.shape[1]:
            yield Variant("transposed", "the matrix", "", {
                n.index: with_weights(lambda q: dict(weight=q["weight"].t()))})
        else:
            yield Variant("bytes", "the matrix", "", {n.index: with_weights(
                lambda q: dict(weight=q["weight"].t().reshape(q["weight"].shape)))})
            yield Variant("bytes", "the matrix's transpose", "", {n.index: with_weights(
                lambda q: dict(weight=q["weight"].reshape(q["weight"].shape[::-1]).t()))})
    for path, o in alike(trace.model, n):
        other = {k: p for k, p in o.named_parameters()}
        yield Variant("other_weights", path, "", {n.index: with_weights(
            lambda q, other=other: {k: other[k].to(p.dtype).to(p.device) for k, p in q.items()})})


def _biases(trace: Trace, n: Node) -> Iterator[Variant]:
    """Of a function that gets a bias."""
    for i, r in enumerate(n.ins):
        kind, name, _ = trace.source.get((r.storage, r.write), ("", "", 0))
        if kind == "param" and name.endswith("bias"):
            yield Variant("bias", name.rpartition(".")[2], "", {n.index: replacing(i, torch.zeros_like)})


MOST_OTHERS = 160


def alike(model: Any, n: Node) -> Iterator[Tuple[str, Any]]:
    """Other modules whose weights fit: those of the same name in other layers first."""
    own = {k: p.shape for k, p in n.fn.named_parameters()}
    plain = lambda path: re.sub(r"\.\d+(?=\.|$)", ".*", path)
    parent = n.path.rpartition(".")[0]
    found = [(path, o) for path, o in model.named_modules()
             if o is not n.fn and type(o) is type(n.fn) and path != n.path
             and (plain(path) == plain(n.path) or path.rpartition(".")[0] == parent)
             and {k: p.shape for k, p in o.named_parameters()} == own]
    yield from found[:MOST_OTHERS]


def _taps(trace: Trace, n: Node, given: List[Any]) -> Iterator[Variant]:
    """Taps of a convolution's kernel: of a module, or of a function that gets a weight."""
    if n.leaf:
        w, changed = getattr(n.fn, "weight", None), lambda f: with_weights(lambda q: dict(weight=f(q["weight"])))
        if not isinstance(n.fn, torch.nn.modules.conv._ConvNd):
            return
    else:
        places = [i for i, r in enumerate(n.ins) if trace.source.get((r.storage, r.write), ("",))[0] == "param"]
        place = next((i for i in places if len(n.ins[i].size) > 2), None)
        if "conv" not in n.op or place is None or place >= len(given):
            return
        w, changed = given[place], lambda f, place=place: replacing(place, f)
    for axis in range(2, w.ndim):
        size, where = w.shape[axis], f" on axis {axis - 2}" if w.ndim > 3 else ""
        if size < 2:
            continue
        for tap in range(size if size <= 16 else 0):
            yield Variant("tap", str(tap), str(size) + where, {n.index: changed(
                lambda w, axis=axis, tap=tap: w.index_fill(axis, torch.tensor([tap], device=w.device), 0))})
        yield Variant("kernel", f"reversed{where}", "", {n.index: changed(lambda w, axis=axis: w.flip(axis))})


# ---- functions -----------------------------------------------------------------------------------

def _first(args: Any, kwargs: Any) -> Any:
    return tensors((args, kwargs))[0]


def left_out(fn: Any, args: Any, kwargs: Any) -> Any:
    return _first(args, kwargs).clone()


SUMS = {"add", "__add__", "__radd__", "add_", "__iadd__"}


def _functions(trace: Trace, n: Node, args: Any, kwargs: Any, out: Any) -> Iterator[Variant]:
    x = [t for t in tensors((args, kwargs)) if t.is_floating_point()]
    same = [t for t in x if t.shape == out.shape]
    if same and out.is_floating_point() and n.op != "result" and n.op not in ("clone", "contiguous") and not (
            n.leaf and type(n.fn).__name__ in ("Dropout", "Identity")):
        if n.op in SUMS and len(same) == 2:
            for k in (0, 1):
                yield Variant("left_out", named(trace, n, k), "", {
                    n.index: lambda fn, a, kw, k=k: tensors((a, kw))[1 - k].clone()})
                yield Variant("twice", named(trace, n, k), "", {
                    n.index: lambda fn, a, kw, k=k: fn(*a, **kw) + tensors((a, kw))[k]})
        else:
            yield Variant("left_out", n.op.strip("_"), "", {n.index: left_out})
    if n.op == "softmax" or (n.leaf and type(n.fn).__name__ == "Softmax"):
        for word, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
            yield Variant("format", "softmax", word, {n.index: lambda fn, a, k, d=dtype: softmax_in(fn, a, k, d)})


def softmax_in(fn: Any, args: Any, kwargs: Any, dtype: Any) -> Any:
    """Softmax whose exponentials, sum and result are rounded to a format of 16 bits."""
    out = fn(*args, **kwargs)
    x = _first(args, kwargs).to(dtype)
    axis = kwargs.get("dim", args[1] if len(args) > 1 and isinstance(args[1], int) else getattr(fn, "dim", -1))
    e = (x - x.amax(axis, keepdim=True)).exp()
    return (e / e.sum(axis, keepdim=True)).to(out.dtype)


def has_small(n: Node) -> bool:
    """Whether the node may have variants whose differences are below a rounding."""
    if not n.leaf:
        return n.op == "gelu"
    return eps_of(n.fn) is not None or bool(NAME.search(type(n.fn).__name__))


def masks_in(args: Any, kwargs: Any) -> List[int]:
    """The places, among the tensors of a call, of additive masks: (..., queries, keys)."""
    return [i for i, t in enumerate(tensors((args, kwargs))) if t.ndim >= 2 and t.is_floating_point()
            and t.shape[-2] > 1 and t.shape[-1] > 1 and t.numel() and float(t.min()) < -3e4 and float(t.max()) <= 0]


MASKS = {
    "each query has that of the query after it": lambda m: torch.cat([m[..., 1:, :], m[..., -1:, :]], -2),
    "each query has that of the query before it": lambda m: torch.cat([m[..., :1, :], m[..., :-1, :]], -2),
    "there is none": torch.zeros_like,
    "it is transposed": lambda m: m.mT.contiguous() if m.shape[-1] == m.shape[-2] else m,
}


def replacing(place: int, by: Callable[[Any], Any]) -> Call:
    """The node's call with one of its tensors replaced."""
    def call(fn: Any, args: Any, kwargs: Any) -> Any:
        count = itertools.count()
        a, k = walk((args, kwargs), lambda t: by(t) if next(count) == place else t)
        return fn(*a, **k)
    return call


def _masks(n: Node, args: Any, kwargs: Any) -> Iterator[Variant]:
    for i in masks_in(args, kwargs):
        for said, by in MASKS.items():
            yield Variant("mask", said, "", {n.index: replacing(i, by)})


def named(trace: Trace, n: Node, place: int) -> str:
    """What a node's tensor `place` is, without the numbers of layers."""
    if place >= len(n.ins):
        return "a number"
    r = n.ins[place]
    at = trace.maker.get((r.storage, r.write))
    said = trace.nodes[at].name if at is not None else trace.source[r.storage, r.write][1]
    return re.sub(r"\.\d+(?=\.)", ".*", said)


def of_node(trace: Trace, n: Node, args: Any, kwargs: Any, out: Any, small: bool = False) -> Iterator[Variant]:
    """The variants of a node, of which a call is known. small: only those whose differences may be below a rounding."""
    yield from _activations(n, (args, kwargs), out, small)
    if n.leaf:
        yield from _norms(n, small)
    if small:
        return
    if n.leaf:
        yield from _weights(trace, n)
        yield from _inner_activations(n)
    else:
        yield from _biases(trace, n)
    yield from _taps(trace, n, tensors((args, kwargs)))
    yield from _masks(n, args, kwargs)
    yield from _functions(trace, n, args, kwargs, out)


# ---- what differs in the candidate's plan --------------------------------------------------------

def settings(n: Node, different: List[Dict[str, Any]]) -> Iterator[Variant]:
    """The candidate's settings of this node in place of the reference's."""
    for x in different:
        key, value = str(x["key"]), x["candidate"]
        if key == "class" or not isinstance(value, (bool, int, float)):
            continue
        said, due = (json.dumps(x[k]) for k in ("candidate", "reference"))
        argument = key[4:] if key.startswith("arg.") else "" if n.leaf else key
        if argument.isdigit():
            call = _with_argument(int(argument), value)
            said = f"argument {argument} of {n.op.strip('_')} is {said}"
        elif argument:
            call = lambda fn, a, k, name=argument, value=value: fn(*a, **{**k, name: value})
            said = f"{argument} of {n.op.strip('_')} is {said}"
        elif key.rpartition(".")[2] == (eps_of(n.fn) or ""):
            yield Variant("eps", said, due, {n.index: with_setting(key, value)})
            continue
        else:
            call, said = with_setting(key, value), f"{key} is {said}"
        yield Variant("setting", said, due, {n.index: call})


def _with_argument(place: int, value: Any) -> Call:
    return lambda fn, a, k: fn(*(value if i == place else x for i, x in enumerate(a)), **k)


# ---- what is found from the numbers --------------------------------------------------------------

MOST_INPUTS = 4096


def of_numbers(n: Node, args: Any, kwargs: Any, place: int, out: Any, cand: Any) -> Iterator[Variant]:
    """Variants whose numbers follow from the error. out: result `place` as it should be; cand: as it is."""
    if n.leaf and is_product(n.fn) and len(tensors((args, kwargs))) == 1:
        yield from _inputs(n, _first(args, kwargs), out, cand)
        yield from _rows(n, _first(args, kwargs), out, cand)
    if n.leaf:
        yield from _experts(n, args, kwargs, out, cand)
        yield from _indices(n, args, kwargs, place, out, cand)


def _matrix(m: Any) -> Any:
    """(M,N), whatever the module stores."""
    return m.weight.t() if type(m).__name__ == "Conv1D" else m.weight


def _inputs(n: Node, x: Any, out: Any, cand: Any) -> Iterator[Variant]:
    """Some inputs are 0, not read, or multiplied: e = sum over j of s[j] x[j] W[:, j]."""
    w = _matrix(n.fn).double()
    x, e = x.reshape(-1, x.shape[-1]).double(), (cand - out).reshape(-1, out.shape[-1]).double()
    if w.shape[1] > MOST_INPUTS or w.shape != (e.shape[1], x.shape[1]) or not e.isfinite().all():
        return
    gram = (x.T @ x) * (w.T @ w)
    due = (x * (e @ w)).sum(0)
    gram += 1e-9 * gram.diagonal().mean() * torch.eye(len(gram)).to(gram)
    s = torch.linalg.solve(gram, due)
    gone = (s + 1).abs() < 0.25
    for which, by in ((gone, 0.0), ((s.abs() > 0.1) & ~gone, None)):
        if not bool(which.any()) or bool(which.all()):
            continue
        factor = by if by is not None else 1 + float(s[which].median())
        scale = torch.where(which, factor, 1.0)
        call = replacing(0, lambda t, scale=scale: t * scale.to(t))
        if by is not None:
            yield Variant("inputs_missing", ranges(which), str(len(s)), {n.index: call})
        else:
            yield Variant("inputs_scaled", ranges(which), f"{factor:.3g}", {n.index: call})


def _rows(n: Node, x: Any, out: Any, cand: Any) -> Iterator[Variant]:
    """Rows of the matrix are in another order, the bias is not."""
    b = getattr(n.fn, "bias", None)
    if not isinstance(b, torch.Tensor) or out.shape[-1] > MOST_INPUTS:
        return
    y, c = ((t.double() - b.double()).reshape(-1, out.shape[-1]) for t in (out, cand))
    if not c.isfinite().all():
        return
    order = ((y * y).sum(0)[None] - 2 * c.T @ y).argmin(1)
    if order.tolist() == list(range(len(order))):
        return

    def change(q: Dict[str, Any]) -> Dict[str, Any]:
        return dict(weight=q["weight"][:, order] if type(n.fn).__name__ == "Conv1D" else q["weight"][order])
    yield Variant("matrix_rows", moves(order.tolist()), "", {n.index: with_weights(change)})


MOST_PAIRS = 24


def _experts(n: Node, args: Any, kwargs: Any, out: Any, cand: Any) -> Iterator[Variant]:
    """Two experts are exchanged: exactly the rows that one of them serves are wrong."""
    held = {k for k, p in n.fn.named_parameters(recurse=False) if p.ndim == 3}
    count = {p.shape[0] for k, p in n.fn.named_parameters(recurse=False) if k in held}
    ids = [t for t in tensors((args, kwargs)) if not t.is_floating_point() and t.ndim == 2]
    if len(count) != 1 or not ids or out.reshape(-1, out.shape[-1]).shape[0] != ids[0].shape[0]:
        return
    e, f = ((t.double()).reshape(len(ids[0]), -1).pow(2).sum(1) for t in (cand - out, out))
    wrong = e > 1e-3 * f
    size = count.pop()
    serves = torch.stack([(ids[0] == k).any(1) for k in range(size)])
    found = [(float(((serves[a] | serves[b]) == wrong).double().mean()), a, b)
             for a, b in itertools.combinations(range(size), 2)]
    for right, a, b in sorted(found, key=lambda x: -x[0])[:MOST_PAIRS]:
        if right < 0.7:
            continue
        order = list(range(size))
        order[a], order[b] = b, a

        for only in ("", *sorted(held)):  # all of their weights, or one
            def change(q: Dict[str, Any], order: List[int] = order, only: str = only) -> Dict[str, Any]:
                return {k: p[order] for k, p in q.items() if p.ndim > 1 and p.shape[0] == size and only in ("", k)}
            yield Variant("experts", str(a), f"{b} of {only}" if only else str(b), {n.index: with_weights(change)})


def _indices(n: Node, args: Any, kwargs: Any, result: int, out: Any, cand: Any) -> Iterator[Variant]:
    """Ids or positions are off by one, perhaps from one of them on."""
    all_ = tensors((args, kwargs))
    for place, t in enumerate(all_):
        if t.dtype not in (torch.int64, torch.int32) or t.ndim < 1 or t.shape[-1] < 2:
            continue
        size = getattr(n.fn, "num_embeddings", None) or 1 << 40
        for by in (1, -1, 2, -2):
            move = lambda p, by=by, size=size: (p + by) % size
            try:
                all_moved = tensors(replacing(place, move)(n.fn, args, kwargs))
            except (RuntimeError, IndexError):
                continue
            said = f"{by:+d}"
            yield Variant("indices", said, "", {n.index: replacing(place, move)})
            moved, rows = all_moved[min(result, len(all_moved) - 1)], t.shape[-1]
            if moved.shape != out.shape or out.ndim < 2 or out.shape[-2] != rows:
                continue
            far, near = (((x - cand).double() ** 2).transpose(-2, 0).reshape(rows, -1).sum(1) for x in (out, moved))
            off = (near < far / 4).nonzero().flatten()
            if len(off) and int(off[0]) > 0:
                first = int(off[0])
                later = lambda p, by=by, first=first, size=size: torch.where(
                    torch.arange(p.shape[-1], device=p.device) >= first, (p + by) % size, p)
                yield Variant("indices", said, f", from number {first} on", {n.index: replacing(place, later)})


def ranges(which: Any) -> str:
    """ "0-7, 16-23" of a mask."""
    at = which.nonzero().flatten().tolist()
    out, i = [], 0
    while i < len(at):
        end = i
        while end + 1 < len(at) and at[end + 1] == at[end] + 1:
            end += 1
        out.append(f"{at[i]}-{at[end]}" if end > i else str(at[i]))
        i = end + 1
    return ", ".join(out[:6]) + ("..." if len(out) > 6 else "")


def moves(order: List[int]) -> str:
    """ "0-15 are 15-0" of an order."""
    out, i = [], 0
    while i < len(order):
        end = i
        if order[i] == i:
            i += 1
            continue
        step = order[i + 1] - order[i] if i + 1 < len(order) else 1
        while (end + 1 < len(order) and abs(step) == 1 and order[end + 1] - order[end] == step
               and order[end + 1] != end + 1):
            end += 1
        out.append(f"{i}-{end} are {order[i]}-{order[end]}" if end > i else f"{i} is {order[i]}")
        i = end + 1
    return ", ".join(out[:4]) + ("..." if len(out) > 4 else "")
