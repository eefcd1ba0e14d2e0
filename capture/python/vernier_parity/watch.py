"""watch.py: tells of the calls of a model's modules and functions inside a `with` block, and undoes it behind it. Both
kinds of recordings of PyTorch models see a model through it alone."""

import collections
import contextlib
import functools
import inspect
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from . import h5
from .numbers import Diverged, RecordingError

COMPILED = "a model compiled by torch.compile has no places to hook; record it as it was before"


@contextlib.contextmanager
def replaced(where: Any, name: str, by: Any) -> Iterator[None]:
    """where.name has another value inside the block."""
    own, before = name in vars(where), getattr(where, name)
    setattr(where, name, by)
    try:
        yield
    finally:
        setattr(where, name, before) if own else delattr(where, name)


class Watch:
    """The hooks of one recording."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.undo = contextlib.ExitStack()
        # (path, turn, module) of the modules that run; turn: which call of the module it
        # is since the outermost began
        self.stack: List[Tuple[str, int, Any]] = []
        self._turns: "collections.Counter[str]" = collections.Counter()
        self._caches: Dict[int, Any] = {}
        self._moved = False

    def module(self, m: Any, before: Optional[Callable[..., Any]] = None, after: Optional[Callable[..., Any]] = None,
               always: bool = False) -> None:
        """Call before(module, args, kwargs), and after(module, args, kwargs, result). always: before other hooks, and
        also after a call that failed, with None."""
        from torch import jit
        from torch.nn.modules import module

        if isinstance(m, jit.ScriptModule):  # it takes no hooks of its own, and those of all modules get no kwargs
            of: Callable[..., Any] = lambda f: lambda x, a, *out: f(x, a, {}, *out) if x is m else None
            for f, register in ((before, module.register_module_forward_pre_hook),
                                (after, functools.partial(module.register_module_forward_hook, always_call=always))):
                self.undo.callback(register(of(f)).remove if f else int)
            return
        if before:
            self.undo.callback(m.register_forward_pre_hook(before, with_kwargs=True, prepend=always).remove)
        if after:
            self.undo.callback(m.register_forward_hook(after, with_kwargs=True, always_call=always).remove)

    def down(self, m: Any, path: str, counted: bool = True) -> None:
        """A module's call begins."""
        if not self.stack:
            self._turns.clear()
        self.stack.append((path, self._turns[path] if counted else 0, m))
        self._turns[path] += counted

    def up(self, m: Any, *call: Any) -> None:
        """It ends. (Its beginning may have been refused.)"""
        if self.stack and self.stack[-1][2] is m:
            self.stack.pop()

    def modules(self, every: Iterable[Any]) -> None:
        """Keep the stack of these modules. What `module` was given before is called while its module is on it."""
        for m in {id(m): m for m in every}.values():
            self.module(m, lambda m, a, k: self.down(m, str(id(m))), self.up, always=True)

    def function(self, where: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace where.name by make(where.name); do nothing if it does not exist, or is None."""
        if getattr(where, name, None) is not None:
            self.undo.enter_context(replaced(where, name, make(getattr(where, name))))

    def begins(self, held: Any) -> None:
        """A call of the model begins, with these arguments by name. Raises RecordingError: it is compiled; its cache's
        rows have changed places."""
        if compiled():
            raise RecordingError(f"{self.path}: {COMPILED}")
        if self._moved:
            raise RecordingError(f"{self.path}: the cache's rows were put into another order since the last call (a "
                                 f"beam search?); a recording takes row i of every call for one sequence")
        self.cache(held)

    def cache(self, held: Any) -> None:
        """Notice when the rows of a cache among arguments or results are reordered, as beam search does between its
        calls."""
        cache = cache_in(held)
        if cache is None or id(cache) in self._caches:
            return
        self._caches[id(cache)] = cache

        def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
            def reorder(rows: Any, *args: Any, **kwargs: Any) -> Any:
                self._moved = self._moved or rows.tolist() != list(range(rows.numel()))
                return f(rows, *args, **kwargs)

            return reorder

        for name in ("reorder_cache", "batch_select_indices"):
            self.function(cache, name, wrap)


class Session:
    """What record() returns. A kind of recording fills in what is abstract here."""

    def __init__(self, path: str) -> None:
        self.path, self.watch = path, Watch(path)
        self.recorder: Any = None

    @property
    def differs(self) -> Optional[str]:
        """The first tensor that differed from the recording `against`, "step.2/layer3.q_rope"; None if none
        differed."""
        found: Optional[str] = self.recorder.differs
        return found

    def fact(self, **run: h5.Fact) -> None:
        """Add facts about the run, strings and numbers by name, to those given to record(). Raises RecordingError:
        another type."""
        self.recorder.fact(**run)

    def errors(self) -> Any:
        """A context in which exceptions of the model's and of this package's code get their words."""
        return contextlib.nullcontext()

    def attach(self) -> Any:
        """Begin to watch; a context, which the block ends."""
        raise NotImplementedError

    def finish(self) -> None:
        """The block ended well, or at the first tensor that differs."""
        raise NotImplementedError


@contextlib.contextmanager
def block(s: Session) -> Iterator[Any]:
    """The block of a recording, whose recorder is open."""
    stopped: Optional[Diverged] = None
    with s.watch.undo, s.errors():
        try:
            with s.attach():
                yield s
        except Diverged as e:
            if not s.recorder._stopped:  # raised by another recording
                raise
            stopped = e
        except Exception as e:
            if not type(e).__module__.startswith("torch._dynamo"):
                raise
            raise RecordingError(f"{s.path}: the model calls a function that torch.compile compiled, which cannot be "
                                 f"followed; record it uncompiled (attention: model.set_attn_implementation('sdpa')): "
                                 f"{' '.join(str(e).split())[:120]}") from None
    s.finish()
    if stopped:
        raise stopped


def compiled() -> bool:
    """True if a compiled function is among the callers."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper" and "_dynamo" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def version(t: Any) -> int:
    """How often a tensor was changed in place; -1 if torch does not count."""
    return -1 if t.is_inference() else int(t._version)


def given_to(m: Any, args: Any, kwargs: Mapping[str, Any]) -> Dict[str, Any]:
    """The arguments of a module's call by name; those without a name by number."""
    try:
        names = [p.name for p in inspect.signature(m.forward).parameters.values()
                 if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        names = []
    return {**{names[i] if i < len(names) else str(i): a for i, a in enumerate(args)}, **kwargs}


def cache_in(held: Any) -> Optional[Any]:
    """The cache among arguments or results, or None. It is known by its method: transformers has named it
    past_key_values, cache_params and (from 5.24) cache."""
    of = held.values() if isinstance(held, Mapping) else held if isinstance(held, (tuple, list)) else ()
    return next((x for x in of if hasattr(x, "get_seq_length")), None)
