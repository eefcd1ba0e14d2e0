"""variants.py: mistakes that a replay can make at a node of any model: what a variant is called, and by which calls it
is made. The words are those of the program's table of variants.

`of_node`: variants that need the node alone. fitted.py finds, from the error, what no table can list.
"""

import itertools
import json
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.func import functional_call

from .compute import Call, Instead
from .tracer import Node, Trace, tensors, walk
from .watch import replaced

F = torch.nn.functional


class Variant(NamedTuple):
    what: str  # a row of variants.def
    is_: str  # what its sentence says of the candidate,
    due: str  # and of the reference
    instead: Instead  # node of the fine run -> the call


Found = Iterator[Tuple[str, str, str, Call]]  # of one node


def at_node(n: Node, found: Found) -> Iterator[Variant]:
    return (Variant(what, is_, due, {n.index: call}) for what, is_, due, call in found)


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
    some = slice(None, None, max(1, x.numel() // 2048))
    x, y = x.reshape(-1)[some].double(), y.reshape(-1)[some].double()
    found = [(float((f(x) - y).abs().max()), word) for word, f in ACTIVATIONS.items()
             if torch.allclose(f(x), y, rtol=1e-4, atol=1e-5 * float(y.abs().max() + 1e-30))]
    return min(found)[1] if found else n.op


def _activations(n: Node, args: Any, out: Any, small: bool) -> Found:
    x = tensors(args)
    if len(x) != 1 or x[0].shape != out.shape or not x[0].is_floating_point() or x[0].numel() < 2:
        return
    if n.leaf and (any(True for _ in n.fn.parameters()) or not NAME.search(type(n.fn).__name__)):
        return
    if not n.leaf and n.op not in ("gelu", "silu", "relu", "sigmoid", "tanh", "softplus", "mish", "hardswish"):
        return
    own = own_activation(n, x[0], out)
    if small and own not in SMALL["activation"]:
        return
    for word in SMALL["activation"] if small else ACTIVATIONS:
        if word != own:
            yield "activation", word, own, lambda fn, a, k, f=ACTIVATIONS[word]: rounded(f, tensors((a, k))[0])


def rounded(f: Callable[[Any], Any], x: Any) -> Any:
    """f(x), rounded once."""
    return f(x if x.dtype == torch.float64 else x.float()).to(x.dtype)


def _inner_activations(n: Node) -> Found:
    """Another activation inside a leaf, such as that of experts."""
    for path, m in n.fn.named_modules():
        if not path or not NAME.search(type(m).__name__):
            continue
        x = torch.linspace(-4, 4, 65)
        own = own_activation(Node(0, "", 0, type(m).__name__, m), x, m(x))
        for word, f in ACTIVATIONS.items():
            if word != own:
                yield "activation", word, own, with_setting(path + ".forward", lambda x, f=f: rounded(f, x))


# ---- leaves with weights -------------------------------------------------------------------------

def with_weights(change: Callable[[Dict[str, Any]], Dict[str, Any]]) -> Call:
    """A call of a module with other weights: change() gets those of the module by name."""
    return lambda fn, args, kwargs: functional_call(fn, change(dict(fn.named_parameters())), args, kwargs)


def with_setting(path: str, value: Any) -> Call:
    """A call of a module while an attribute of it, or of a module in it, has another value."""
    owner, _, name = path.rpartition(".")

    def call(fn: Any, args: Any, kwargs: Any) -> Any:
        with replaced(fn.get_submodule(owner), name, value):
            return fn(*args, **kwargs)
    return call


def eps_of(m: Any) -> Optional[str]:
    return next((k for k in ("eps", "variance_epsilon", "epsilon", "layer_norm_eps") if isinstance(
        getattr(m, k, None), float)), None)


def _norms(n: Node, small: bool) -> Found:
    key = eps_of(n.fn)
    if key is None:
        return
    own = getattr(n.fn, key)
    for value in SMALL["eps"] if small else EPS:
        if abs(value - own) > 0.01 * own:
            yield "eps", f"{value:.3g}", f"{own:.3g}", with_setting(key, value)
    w = getattr(n.fn, "weight", None)
    if isinstance(w, torch.Tensor) and w.ndim == 1 and not small:
        for by, said, due in ((1.0, "1 + weight", "weight"), (-1.0, "weight", "1 + weight")):
            yield "norm_weight", said, due, with_weights(lambda p, by=by: dict(weight=p["weight"] + by))


def is_product(m: Any) -> bool:
    return isinstance(m, torch.nn.Linear) or type(m).__name__ in ("Conv1D", "Linear")


def _weights(trace: Trace, n: Node) -> Found:
    for name, p in n.fn.named_parameters():
        for what, by in (("bias", 0), ("bias_twice", 2)) if "bias" in name and p.ndim < 3 else ():
            yield what, name, "", with_weights(lambda q, name=name, by=by: {name: q[name] * by})
    w = getattr(n.fn, "weight", None)
    if not isinstance(w, torch.Tensor) or w.ndim != 2:
        return
    other: List[Tuple[str, str, Callable[[Any], Any]]] = [("transposed", "the matrix", lambda w: w.t())] if (
        w.shape[0] == w.shape[1]) else [
            ("bytes", "the matrix", lambda w: w.t().reshape(w.shape)),
            ("bytes", "the matrix's transpose", lambda w: w.reshape(w.shape[::-1]).t())]
    for what, said, f in other if is_product(n.fn) else ():
        yield what, said, "", with_weights(lambda q, f=f: dict(weight=f(q["weight"])))
    for path, o in alike(trace.model, n):
        theirs = dict(o.named_parameters())
        parts = [(path, theirs)] if len(theirs) == 1 else [(path, theirs), (f"{path}.weight", dict(weight=o.weight))]
        for said, part in parts:
            yield "other_weights", said, "", with_weights(lambda q, part=part: {
                k: part[k].to(p.dtype).to(p.device) for k, p in q.items() if k in part})


def source_of(trace: Trace, r: Any) -> Tuple[str, str]:
    """("param", its name) and so on of a tensor that no node made; ("", "") of others."""
    return trace.source.get(r.key, ("", "", 0))[:2]


def _biases(trace: Trace, n: Node) -> Found:
    """Of a function that gets a bias."""
    for i, (kind, name) in enumerate(source_of(trace, r) for r in n.ins):
        if kind == "param" and name.endswith("bias"):
            yield "bias", name.rpartition(".")[2], "", replacing(i, torch.zeros_like)


MOST_OTHERS = 160


def alike(model: Any, n: Node) -> List[Tuple[str, Any]]:
    """Other modules whose weights fit: those of the same name in other layers first."""
    shapes = lambda m: {k: p.shape for k, p in m.named_parameters()}
    plain = lambda path: re.sub(r"\.\d+(?=\.|$)", ".*", path)
    near = lambda path: plain(path) == plain(n.path) or path.rpartition(".")[0] == n.path.rpartition(".")[0]
    return [(path, o) for path, o in model.named_modules() if type(o) is type(n.fn) and o is not n.fn
            and path != n.path and near(path) and shapes(o) == shapes(n.fn)][:MOST_OTHERS]


def _taps(trace: Trace, n: Node, given: List[Any]) -> Found:
    """Taps of a convolution's kernel: of a module, or of a function that gets a weight."""
    if n.leaf:
        if not isinstance(n.fn, torch.nn.modules.conv._ConvNd):
            return
        w, changed = n.fn.weight, lambda f: with_weights(lambda q: dict(weight=f(q["weight"])))
    else:
        place = next((i for i, r in enumerate(n.ins) if source_of(trace, r)[0] == "param" and len(r.size) > 2), None)
        if "conv" not in n.op or place is None or place >= len(given):
            return
        w, changed = given[place], lambda f, place=place: replacing(place, f)
    for axis in range(2, w.ndim):
        size, where = w.shape[axis], f" on axis {axis - 2}" if w.ndim > 3 else ""
        if size < 2:
            continue
        for tap in range(size if size <= 16 else 0):
            yield "tap", str(tap), str(size) + where, changed(
                lambda w, axis=axis, tap=tap: w.index_fill(axis, torch.tensor([tap], device=w.device), 0))
        yield "kernel", f"reversed{where}", "", changed(lambda w, axis=axis: w.flip(axis))


# ---- functions -----------------------------------------------------------------------------------

def left_out(fn: Any, args: Any, kwargs: Any) -> Any:
    return tensors((args, kwargs))[0].clone()


SUMS = {"add", "__add__", "__radd__", "add_", "__iadd__"}


def _functions(trace: Trace, n: Node, args: Any, kwargs: Any, out: Any) -> Found:
    same = [t for t in tensors((args, kwargs)) if t.is_floating_point() and t.shape == out.shape]
    if n.op in SUMS and len(same) == 2 and out.is_floating_point():
        for i in (0, 1):
            yield "left_out", named(trace, n, i), "", lambda fn, a, k, i=i: tensors((a, k))[1 - i].clone()
            yield "twice", named(trace, n, i), "", lambda fn, a, k, i=i: fn(*a, **k) + tensors((a, k))[i]
    elif same and out.is_floating_point() and n.op not in ("result", "clone", "contiguous", "Dropout", "Identity"):
        yield "left_out", n.op.strip("_"), "", left_out
    if n.op == "softmax" or (n.leaf and n.op == "Softmax"):
        for word, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
            yield "format", "softmax", word, lambda fn, a, k, d=dtype: softmax_in(fn, a, k, d)


def softmax_in(fn: Any, args: Any, kwargs: Any, dtype: Any) -> Any:
    """Softmax whose exponentials, sum and result are rounded to a format of 16 bits."""
    out, x = fn(*args, **kwargs), tensors((args, kwargs))[0].to(dtype)
    axis = kwargs.get("dim", args[1] if len(args) > 1 and isinstance(args[1], int) else getattr(fn, "dim", -1))
    e = (x - x.amax(axis, keepdim=True)).exp()
    return (e / e.sum(axis, keepdim=True)).to(out.dtype)


def has_small(n: Node) -> bool:
    """Whether the node may have variants whose differences are below a rounding."""
    if not n.leaf:
        return n.op == "gelu"
    return eps_of(n.fn) is not None or bool(NAME.search(type(n.fn).__name__))


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


def _masks(args: Any, kwargs: Any) -> Found:
    """Of additive masks, (..., queries, keys), among the tensors of a call."""
    for i, t in enumerate(tensors((args, kwargs))):
        if t.ndim >= 2 and t.is_floating_point() and t.shape[-2] > 1 and t.shape[-1] > 1 and t.numel() and (
                float(t.min()) < -3e4 and float(t.max()) <= 0):
            yield from (("mask", said, "", replacing(i, by)) for said, by in MASKS.items())


def named(trace: Trace, n: Node, place: int) -> str:
    """What a node's tensor `place` is, without the numbers of layers."""
    if place >= len(n.ins):
        return "a number"
    r = n.ins[place]
    at = trace.maker_of(r)
    return re.sub(r"\.\d+(?=\.)", ".*", at.name if at is not None else source_of(trace, r)[1])


def of_node(trace: Trace, n: Node, args: Any, kwargs: Any, out: Any, small: bool = False) -> Iterator[Variant]:
    """The variants of a node, of which a call is known. small: only those whose differences may be below a rounding."""
    found = [_activations(n, (args, kwargs), out, small), *([_norms(n, small)] if n.leaf else [])]
    if not small:
        found += [_weights(trace, n), _inner_activations(n)] if n.leaf else [_biases(trace, n)]
        found += [_taps(trace, n, tensors((args, kwargs))), _masks(args, kwargs),
                  _functions(trace, n, args, kwargs, out)]
    return at_node(n, itertools.chain(*found))


# ---- what differs in the candidate's plan --------------------------------------------------------

def settings(n: Node, different: Sequence[Dict[str, Any]]) -> Iterator[Variant]:
    """The candidate's settings of this node in place of the reference's."""
    for x in different:
        key, value = str(x["key"]), x["candidate"]
        if key == "class" or not isinstance(value, (bool, int, float)):
            continue
        what, said, due = "setting", *(json.dumps(x[k]) for k in ("candidate", "reference"))
        argument = key[4:] if key.startswith("arg.") else "" if n.leaf else key
        call: Call = with_setting(key, value)
        if argument:
            call = lambda fn, a, k, name=argument, value=value: fn(*a, **{**k, name: value})
            said = f"{argument} of {n.op.strip('_')} is {said}"
        if argument.isdigit():
            call = lambda fn, a, k, at=int(argument), value=value: fn(*a[:at], value, *a[at + 1:], **k)
            said = "argument " + said
        elif not argument and key.rpartition(".")[2] == (eps_of(n.fn) or ""):
            what = "eps"
        elif not argument:
            said = f"{key} is {said}"
        yield Variant(what, said, due, {n.index: call})
