"""tracer.py: follows a run of any PyTorch module, and keeps its plan: the nodes, and the edges between them.

A node is a call of a leaf, or of a function outside every leaf. A leaf is a module none of whose children has weights
or buffers. An edge is (storage, write): every call that makes a storage, or writes into one, takes the storage's next
write number, so that a reader points to the value that it read. A view is no node: it is a size, strides and an offset.
A step is a call of the model, or of one of its modules, outside every other such call.
"""

import collections
import copy
import dataclasses
import functools
import math
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

from .names import BARE_LAYER
from .numbers import RecordingError, digest
from .offload import release
from .places import ROTATION, sources_of, standard
from .watch import Watch, given_to, version

CASTS = {"to", "float", "half", "bfloat16", "double", "type", "type_as"}
# values that leave the tensors: what is computed from them has no edge
LEAKS = {"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "numpy"}
PLAIN = {"__get__", "__set__", "size", "dim", "numel", "stride", "is_contiguous", "is_floating_point", "__len__"}
WRITES = {"__setitem__", "__iadd__", "__imul__", "__isub__", "__itruediv__"}
MOST_HELD = 16  # functions; behind rotated queries, rotated keys take 5
MOST_NOTED = 1 << 20  # bytes of a buffer of which a copy is made, as what writes into it may not be seen
MOST_LISTED = 4096  # numbers of a list that is an edge
# functions of transformers that run compiled code: a module and a name in it
COMPILED_IN = (("transformers.integrations.flex_attention", "compile_friendly_flex_attention"),
               ("transformers.masking_utils", "create_block_mask"))
# they choose other kernels where a hook is attached inside, or a function is followed
WHOLE = (torch.nn.TransformerEncoderLayer, torch.nn.MultiheadAttention)


class Ref(NamedTuple):
    """A tensor that a node reads or makes: a view of a storage as it is after one of its writes."""

    storage: int
    write: int
    size: Tuple[int, ...]
    stride: Tuple[int, ...]
    offset: int
    dtype: Any

    @property
    def key(self) -> Tuple[int, int]:
        """(storage, write)"""
        return self[:2]


class Listed(NamedTuple):
    """A list that `tolist` made of a tensor, as the argument of a node: where experts begin, for one."""

    of: Any  # Ref


@dataclasses.dataclass
class Node:
    """One operation of a run."""

    step: int
    path: str  # of the module; a function's is that of the module that calls it
    turn: int  # which call of the module in its step, from 0
    op: str
    fn: Any  # the module, or the function
    index: int = -1
    name: str = ""
    own: str = ""  # its name by module and function, where `name` is that of a checkpoint
    axes: str = ""  # of that checkpoint
    args: Any = None  # (args, kwargs), each tensor as its Ref
    result: Any = None
    ins: List[Ref] = dataclasses.field(default_factory=list)
    outs: List[Ref] = dataclasses.field(default_factory=list)
    rooms: List[int] = dataclasses.field(default_factory=list)  # numbers that the storage of each result holds
    writes: List[Ref] = dataclasses.field(default_factory=list)
    digests: List[str] = dataclasses.field(default_factory=list)  # of the results; only where values are kept
    blind: str = ""  # why the node cannot be computed again
    autocast: Any = None  # (device type, format)
    random: Any = None  # state of the generator before the call, if the call moved it

    @property
    def leaf(self) -> bool:
        return isinstance(self.fn, torch.nn.Module)

    @property
    def cast(self) -> bool:
        return self.op in CASTS

    @property
    def empty(self) -> bool:
        """The result is memory that nobody has written yet."""
        return self.op.startswith(("empty", "new_empty"))

    def names(self) -> List[str]:
        """The checkpoint name of each result."""
        return [self.name + (f":{i}" if i else "") for i in range(len(self.outs))]


def walk(x: Any, f: Callable[[Any], Any]) -> Any:
    """The structure x with f(y) for every tensor and Ref y in it; where a Listed becomes a tensor, with its list."""
    if isinstance(x, (torch.Tensor, Ref)):
        return f(x)
    if isinstance(x, Listed):
        y = f(x.of)
        return y.tolist() if isinstance(y, torch.Tensor) else Listed(y)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return tuple.__new__(type(x), [walk(y, f) for y in x])  # that of a packed sequence takes no Refs
    if isinstance(x, (list, tuple)):
        return (type(x) if type(x) in (list, tuple) else list)(walk(y, f) for y in x)
    if isinstance(x, dict):
        return {k: walk(y, f) for k, y in x.items()}
    return x


def tensors(x: Any) -> List[Any]:
    """The tensors in a structure; the Refs in one that holds Refs."""
    out: List[Any] = []
    walk(x, out.append)
    return out


def named(x: Any, name: str) -> Iterator[Tuple[str, Any]]:
    """(name, tensor) of the tensors in a structure: NAME.KEY, NAME.0."""
    if isinstance(x, torch.Tensor):
        yield name, x
    elif isinstance(x, dict):
        for k, y in x.items():
            yield from named(y, f"{name}.{k}")
    elif isinstance(x, (list, tuple)):
        for k, y in enumerate(x):
            yield from named(y, f"{name}.{k}")


def writes(op: str) -> bool:
    """Whether a function of this name writes into its first argument."""
    return op in WRITES or (op.endswith("_") and not op.endswith("__"))


def plain(t: Any) -> bool:
    """False for tensors without an ordinary storage: sparse, meta, inside vmap."""
    return (t.layout == torch.strided and t.device.type != "meta" and not t.is_nested
            and not torch._C._functorch.is_functorch_wrapped_tensor(t))


def bits(t: Any) -> Any:
    """The bytes of a tensor, outermost axis first."""
    return t.detach().contiguous().reshape(-1).view(torch.uint8).cpu().numpy()


def axes_as(r: Ref, t: Any, words: List[str]) -> str:
    """The axes of r, in whose memory t has these axes, the last two perhaps as one; "" if r has others. Axes are paired
    by their order in memory, those of length 1 by their order in t."""
    joined = len(words) - t.ndim
    if joined not in (0, 1):
        return ""
    groups = [[w] for w in words[: t.ndim - joined]] + ([words[-2:]] if joined else [])
    in_memory = lambda size, stride: sorted((i for i, n in enumerate(size) if n != 1), key=lambda i: -int(stride[i]))
    out, left = [""] * len(r.size), in_memory(r.size, r.stride)
    for i in in_memory(t.shape, t.stride()):
        whole = bool(left) and r.size[left[0]] == t.shape[i]
        at, left = (left[:1], left[1:]) if whole else (left[: len(groups[i])], left[len(groups[i]) :])
        if math.prod(r.size[j] for j in at) != t.shape[i]:
            return ""
        for j, word in zip(at, [" ".join(groups[i])] if whole else groups[i]):
            out[j] = f"({word})" if " " in word else word
    rest = [w for i, g in enumerate(groups) if t.shape[i] == 1 for w in g]
    return " ".join(w or rest.pop(0) for w in out) if not left and len(rest) == out.count("") else ""


def is_leaf(m: Any) -> bool:
    return isinstance(m, (*WHOLE, torch.jit.ScriptModule)) or not any(
        True for c in m.children() for _ in (*c.parameters(), *c.buffers()))


def nests(m: Any, args: Any, kwargs: Any) -> bool:
    """Whether a call of a module makes its rows a nested tensor, which it does not where functions are followed."""
    return (isinstance(m, torch.nn.TransformerEncoder) and m.use_nested_tensor and not m.training
            and (kwargs.get("src_key_padding_mask") is not None or len(args) > 2))


class Trace(TorchFunctionMode):
    """Follows the calls of a model inside a `with` block. The values of a run are not changed.

    keep     also keep what computing the plan again needs (values that no node made), and digests of all results
    on_call  gets (step, path, arguments by name) before each step; on_node gets (node, its results) after each node;
             on_end gets the results of each step; on_state (name, numbers) of a buffer that the run changes, as it was
    """

    def __init__(self, model: Any, watch: Optional[Watch] = None, keep: bool = False,
                 on_call: Callable[..., None] = lambda *a: None, on_node: Callable[..., None] = lambda *a: None,
                 on_end: Callable[..., None] = lambda *a: None,
                 on_state: Callable[..., None] = lambda *a: None) -> None:
        super().__init__()
        self.model, self.keep, self.watch = model, keep, watch or Watch("")
        self.on_call, self.on_node, self.on_end, self.on_state = on_call, on_node, on_end, on_state
        self.replace: Callable[..., None] = lambda step, name, t: None  # may change a new result
        self.nodes: List[Node] = []
        self.points = standard(model)
        self._held: List[Tuple[Node, List[Any]]] = []  # functions that may still get the name of a checkpoint
        self.step = -1
        self.events: "collections.Counter[str]" = collections.Counter()
        self.leaks: "collections.Counter[str]" = collections.Counter()
        # of this step, by id: a list, its numbers, what it was read of
        self._lists: Dict[int, Tuple[Any, str, Ref]] = {}
        self.maker: Dict[Tuple[int, int], int] = {}  # (storage, write) -> node
        self.source: Dict[Tuple[int, int], Tuple[str, str, int]] = {}  # of what no node made: (kind, name, step)
        self.base: Dict[Tuple[int, int], Any] = {}  # its values, if they are kept
        self.last: Dict[int, int] = {}  # storage -> its last write
        self._version: Dict[int, int] = {}
        self._number: Dict[Any, int] = {}
        self._alive: List[Any] = []
        self._stack = self.watch.stack
        self._leaf: Optional[Node] = None
        self._taken: "collections.Counter[Any]" = collections.Counter()
        self._names: Set[str] = set()
        self._stated: Set[int] = set()  # storages of buffers that were told of
        self._buffers: Dict[str, Tuple[Any, int, Any]] = {}  # as the first step found them: with version and copy
        self._parameters = {id(p) for p in model.parameters()}
        self._off = False
        self._known: Dict[int, Tuple[str, str]] = {}
        for n, t in model.named_parameters(remove_duplicate=False):
            self._known.setdefault(self.storage(t), ("param", n))
        for n, t in model.named_buffers(remove_duplicate=False):
            self._known.setdefault(self.storage(t), ("buffer", n))

    # ---- tensors and their storages ------------------------------------------------------------

    def storage(self, t: Any) -> int:
        """The number of a tensor's storage. A weak reference keeps its address, not its memory, from being reused. A
        view in another format (complex numbers, bits) counts as a copy."""
        key = (t.untyped_storage()._cdata, t.dtype)
        if key not in self._number:
            self._alive.append(StorageWeakRef(t.untyped_storage()))
            self._number[key] = len(self._number)
        return self._number[key]

    def ref(self, t: Any, read: bool = True) -> Ref:
        k, v = self.storage(t), version(t)
        if k not in self.last:  # nobody made it
            kind, name = self._known.get(k, ("const", ""))
            self._outside(t, k, 0, kind, name)
        elif read and self._version[k] != v:
            self.events["unseen write"] += 1
            self._outside(t, k, self.last[k] + 1, "const", "")
        return Ref(k, self.last[k], tuple(t.shape), tuple(t.stride()), t.storage_offset(), t.dtype)

    def _outside(self, t: Any, k: int, write: int, kind: str, name: str) -> None:
        """A value that no node made: of a weight, a buffer, an input, or of something that the trace does not see."""
        self.last[k], self._version[k] = write, version(t)
        if kind == "const":
            name = digest(bits(t)) or ""
        self.source[k, write] = (kind, name, self.step)
        if self.keep:
            same = kind == "param"
            t = t.detach()
            self.base[k, write] = t if same else torch.empty(0, dtype=t.dtype, device=t.device).set_(
                t.untyped_storage().clone(), 0, (t.untyped_storage().nbytes() // t.element_size(),))

    def maker_of(self, r: Ref) -> Optional[Node]:
        """The node that made what is read; None: no node did."""
        at = self.maker.get(r.key)
        return self.nodes[at] if at is not None else None

    # ---- nodes ---------------------------------------------------------------------------------

    def _begin(self, op: str, fn: Any, args: Any, kwargs: Any) -> Tuple[Node, List[Tuple[Any, int]]]:
        path, turn, _ = self._stack[-1]
        n, before, lists = Node(self.step, path, turn, op, fn), [], []

        def hold(t: Any) -> Any:
            if isinstance(t, Ref):  # of a list
                lists.append(t)
                return t
            if not plain(t):
                n.blind = "it reads a tensor without an ordinary storage"
                return None
            n.ins.append(self.ref(t))
            before.append((t, version(t)))
            return n.ins[-1]

        n.args = walk(self._with_lists((tuple(args), dict(kwargs))), hold)
        n.ins += lists  # behind the tensors, whose places count
        if self.keep:
            n.random = torch.get_rng_state()
            kind = before[0][0].device.type if before else "cpu"
            if torch.is_autocast_enabled(kind):
                n.autocast = (kind, torch.get_autocast_dtype(kind))
        return n, before

    def _with_lists(self, x: Any) -> Any:
        """The arguments, with a Listed for each list that was read of a tensor: an edge. A cache keeps its length."""
        if isinstance(x, list):
            _, said, ref = self._lists.get(id(x), (x, "", None))
            if ref is not None and repr(x) == said:
                return Listed(ref)
        if type(x) in (list, tuple):
            return type(x)(self._with_lists(y) for y in x)
        if self.keep and hasattr(x, "get_seq_length"):
            lengths, x = [int(x.get_seq_length(i)) for i in range(max(1, len(getattr(x, "layers", ()))))], copy.copy(x)
            x.get_seq_length = lambda layer_idx=0: lengths[layer_idx] if layer_idx < len(lengths) else 0
        return {k: self._with_lists(y) for k, y in x.items()} if type(x) is dict else x

    def _end(self, n: Node, before: List[Tuple[Any, int]], out: Any) -> None:
        outs, had = [t for t in tensors(out) if plain(t)], {self.storage(t) for t, _ in before}
        wrote = {self.storage(t): t for j, (t, v) in enumerate(before) if version(t) != v
                 or (v < 0 and j == 0 and writes(n.op))}
        new = [t for t in outs if self.storage(t) not in had and self.storage(t) not in self.last]
        if not new and not wrote:
            return  # a view, or no tensor
        n.index = len(self.nodes)
        n.writes = [r for r in n.ins if r.storage in wrote]
        for k, t in wrote.items():
            self.last[k], self._version[k] = self.last[k] + 1, version(t)
        for t in new:
            k = self.storage(t)
            self.last[k], self._version[k] = 0, version(t)
        made = {self.storage(t) for t in new} | set(wrote)
        for k in made:
            self.maker[k, self.last[k]] = n.index
        results = [t for t in outs if self.storage(t) in made]
        seen = {self.storage(t) for t in results}
        results += [t for k, t in wrote.items() if k not in seen]
        n.result = walk(out, lambda t: self.ref(t, False) if plain(t) else None)
        self._add(n, results)

    def _add(self, n: Node, results: List[Any]) -> None:
        n.outs = [self.ref(t, False) for t in results]
        n.rooms = [t.untyped_storage().nbytes() // max(1, t.element_size()) for t in results]
        n.name = self._name(n)
        for name, t in zip(n.names(), results):
            self.replace(n.step, name, t)
        if self.keep:
            n.digests = [digest(bits(t)) or "" for t in results]
            if n.random is not None and torch.equal(n.random, torch.get_rng_state()):
                n.random = None
        self.nodes.append(n)
        self._held.append((n, results))
        self._tell(0 if n.leaf or not self.points else MOST_HELD)

    def _tell(self, but: int = 0) -> None:
        """Tell of the nodes that were held back, the last ones excepted."""
        at = max(0, len(self._held) - but)
        held, self._held = self._held[:at], self._held[at:]
        for n, results in held:
            self.on_node(n, results)

    def _point(self, path: str, how: str, t: Any) -> None:
        """A module takes or returns t: if that is a checkpoint, and a function has made it, the node gets its name."""
        name, words = self.points.get((path, how), ("", []))
        if not name or not isinstance(t, torch.Tensor) or not plain(t):
            return
        k = self.storage(t)
        for n, results in self._held:
            if len(n.outs) == 1 and n.outs[0].key == (k, self.last.get(k)) and not n.own:
                n.axes = axes_as(n.outs[0], t, words)
                if n.axes:
                    n.own, n.name = n.name, self._free(name)
                    self.replace(n.step, n.name, results[0])

    def _name(self, n: Node) -> str:
        """MODULE of a leaf, MODULE.FUNCTION.K of the K-th call of a function in one call of a module."""
        where = n.path + (f"@{n.turn}" if n.turn else "")
        if n.leaf:
            name = where or "model"
            name += ".output" if BARE_LAYER.fullmatch(name) else ""
        else:
            name = f"{where}.{n.op}".lstrip(".") + f".{self._taken[where, n.op]}"
            self._taken[where, n.op] += 1
        if len(name.encode()) > 110:  # a file's names have at most 127 bytes, ":12" of a result included
            name = name[:40] + "~" + (digest(name.encode()) or "")[:8] + "~" + name[-60:]
        return self._free(name)

    def _free(self, name: str) -> str:
        plain_name, k = name, 0
        while name in self._names:
            k += 1
            name = f"{plain_name}~{k}"
        self._names.add(name)
        return name

    def __torch_function__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        op = getattr(f, "__name__", str(f))
        if self._leaf is not None or not self._stack or op in PLAIN:
            return f(*args, **kwargs)
        if self._held and (writes(op) or "out" in kwargs):
            self._tell()  # it may change what they have made
        if writes(op) and args and plain(args[0]):
            self._before_write(self.storage(args[0]))
        for t in tensors(kwargs.get("out")):
            if plain(t):
                self._before_write(self.storage(t))
        n, before = self._begin(op, f, args, kwargs)
        out = f(*args, **kwargs)
        self._end(n, before, out)
        if op in LEAKS:
            self.leaks[f"{n.path or 'model'}: {op}"] += 1
        if op == "tolist" and n.ins and args[0].numel() <= MOST_LISTED:
            self._lists[id(out)] = out, repr(out), n.ins[0]
        return out

    def _before_write(self, k: int) -> None:
        kind, name = self._known.get(k, ("", ""))
        if kind == "buffer" and k not in self._stated:
            with torch._C.DisableTorchFunction():
                self._state(name, k)
        if kind == "param" and self.keep:  # from now on it is kept as it was
            self._known[k] = ("buffer", name)
            self._stated.add(k)
            self.base.update({at: t.clone() for at, t in self.base.items() if at[0] == k})

    def _state(self, name: str, k: int) -> None:
        """Tell of a buffer as the first step found it, if that is still known."""
        self._stated.add(k)
        t, before, copied = self._buffers.get(name, (None, 0, None))
        held = t if t is not None and version(t) == before >= 0 else copied
        if held is not None:
            self.on_state(name, held)

    def states(self) -> None:
        """Tell of the buffers that the run changed unseen: inside a leaf, or by another in their place."""
        with torch._C.DisableTorchFunction():
            now = dict(self.model.named_buffers(remove_duplicate=False))
            for name, (t, before, copied) in self._buffers.items():
                k = self.storage(t)
                same = version(t) == before if before >= 0 else copied is None or torch.equal(t, copied)
                if k not in self._stated and (now.get(name) is not t or not same):
                    self._state(name, k)

    # ---- modules -------------------------------------------------------------------------------

    def __enter__(self) -> "Trace":
        inside: Set[int] = set()
        for path, m in self.model.named_modules():
            if id(m) in inside:
                continue
            leaf = is_leaf(m)
            if leaf:
                inside |= {id(x) for x in m.modules() if x is not m}
            if isinstance(m, WHOLE):  # followed without hooks
                self.watch.function(m, "forward", lambda f, m=m, path=path: self._followed(f, m, path))
            else:
                self.watch.module(m, lambda m, a, k, path=path, leaf=leaf: self._down(m, path, leaf, a, k),
                                  lambda m, a, k, o: self._up(m, o), always=True)
        for source in {sources_of(self.model.get_submodule(path)) for path, how in self.points if how == "q_rope"}:
            self.watch.function(source, ROTATION, self._rotation)
        for module, name in COMPILED_IN:
            self.watch.function(sys.modules.get(module), name, self._alone)
        super().__enter__()
        return self

    def __exit__(self, *e: Any) -> None:
        if not self._off:
            super().__exit__(*e)
        self.watch.undo.close()

    def _followed(self, forward: Callable[..., Any], m: Any, path: str) -> Callable[..., Any]:
        @functools.wraps(forward)
        def followed(*args: Any, **kwargs: Any) -> Any:
            self._down(m, path, True, args, kwargs)
            out = None
            try:
                out = forward(*args, **kwargs)
            finally:
                self._up(m, out)
            return out

        return followed

    def _alone(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function as one node, inside which nothing is followed: the compiler would follow this class."""
        @functools.wraps(f)
        def alone(*args: Any, **kwargs: Any) -> Any:
            if self._off or not self._stack:
                return f(*args, **kwargs)
            above = [torch.overrides._pop_mode()]  # other modes stay
            while above[-1] is not self:
                above.append(torch.overrides._pop_mode())
            others = [m for m in reversed(above) if m is not self]
            for m in others:
                torch.overrides._push_mode(m)
            try:
                return self.__torch_function__(f, (), args, kwargs)
            finally:
                for m in others:
                    torch.overrides._pop_mode()
                for m in reversed(above):
                    torch.overrides._push_mode(m)

        return alone

    def _rotation(self, f: Callable[..., Any]) -> Callable[..., Any]:
        def rotation(*args: Any, **kwargs: Any) -> Any:
            out = f(*args, **kwargs)
            with torch._C.DisableTorchFunction():
                for how, t in zip(("q_rope", "k_rope"), out if self._stack else ()):
                    self._point(self._stack[-1][0], how, t)
            return out

        return rotation

    @torch.compiler.disable
    def _down(self, m: Any, path: str, leaf: bool, args: Any, kwargs: Any) -> None:
        with torch._C.DisableTorchFunction():
            if self._leaf is None:
                self._point(path, "in", args[0] if args else next(iter(kwargs.values()), None))
                self._tell()
                if not self._stack:
                    self._call(m, path, args, kwargs)
            self.watch.down(m, path, self._leaf is None)
            if not (leaf or nests(m, args, kwargs)) or self._leaf is not None:
                return
            self._leaf, self._before = self._begin(type(m).__name__, m, args, kwargs)
            self._own = [(b, version(b)) for b in m.buffers()]
            if not self._parameters.issuperset(map(id, m.parameters())):
                self._leaf.blind = "its weights were exchanged for this call"
        stack = torch._C._len_torch_function_stack()
        if stack and torch._C._get_function_stack_at(stack - 1) is self:  # inside a leaf nothing is followed
            super().__exit__(None, None, None)
            self._off = True

    def _up(self, m: Any, out: Any) -> None:
        if not self._stack or self._stack[-1][2] is not m:  # the step was refused
            return
        path, turn, _ = self._stack.pop()
        n = self._leaf
        with torch._C.DisableTorchFunction():
            if n is not None and n.fn is m and (n.path, n.turn) == (path, turn):
                self._leaf = None
                if [(id(b), version(b)) for b in m.buffers()] != [(id(b), v) for b, v in self._own]:
                    n.blind = "it changes a buffer of its own"
                if out is not None:
                    self._end(n, self._before, out)
                release()
            if self._leaf is None:
                self._point(path, "out", out[0] if isinstance(out, (tuple, list)) and out else out)
                self._tell()
            if not self._stack and out is not None:
                self._results(m, out)
        if self._off and self._leaf is None:
            self._off = False
            super().__enter__()

    def _call(self, m: Any, path: str, args: Any, kwargs: Any) -> None:
        """A step begins."""
        if self.step >= 0 and self._versions() != self._weights:
            raise RecordingError(f"{self.watch.path}: a weight or a module was changed between two calls; a recording "
                                 f"is one run of one model")
        self._weights = self._versions()
        if self.step < 0:
            self._buffers = {n: (b, version(b), b.clone() if b.nbytes <= MOST_NOTED else None)
                             for n, b in self.model.named_buffers(remove_duplicate=False) if plain(b)}
        self.step += 1
        self._taken.clear()
        self._names.clear()
        self._lists.clear()
        given = given_to(m, args, kwargs)
        self.on_call(self.step, path, given)
        for name, t in named(given, "in"):
            if plain(t):
                k = self.storage(t)
                if k not in self.last:
                    self._known.setdefault(k, ("input", name))
                elif self._version[k] != version(t):
                    self._outside(t, k, self.last[k] + 1, "input", name)
                self.ref(t)

    def _versions(self) -> List[Tuple[int, int]]:
        return [(id(p), version(p)) for p in self.model.parameters() if not p.is_meta]

    def _results(self, m: Any, out: Any) -> None:
        """A step ends. Its results get a reader, so that an operation after the last node is judged too."""
        self._stack.append(("", 0, None))
        whole = out if isinstance(out, (dict, list, tuple)) else [out]
        for name, t in named(whole, "out"):
            if not plain(t):
                continue
            n, _ = self._begin("result", torch.clone, (t,), {})
            self._number["result", len(self._number)] = k = len(self._number)
            self.last[k], self.maker[k, 0], n.index = 0, len(self.nodes), len(self.nodes)
            stride = torch.empty(t.shape, device="meta").stride()
            n.outs, n.rooms, n.name = [Ref(k, 0, tuple(t.shape), stride, 0, t.dtype)], [t.numel()], self._free(name)
            n.result = n.outs[0]
            n.random = None
            n.digests = [digest(bits(t)) or ""] if self.keep else []
            self.nodes.append(n)
            self.on_node(n, [t])
        self._stack.pop()
        self._weights = self._versions()  # RWKV's first call divides some
        self.on_end(out)
