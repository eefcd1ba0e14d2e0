"""session.py: records the forward passes of a HuggingFace model; the object that vernier_parity.record() returns."""

import contextlib
import json
import os
import sys
import traceback
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch

from . import about, globs, h5, modules, padding, points, quantised, weights as table, wrapped
from .call import Call
from .numbers import Diverged, RecordingError, ids_array
from .printed import warn
from .recorder import Recorder
from .source_line import OWN

Points = Union[None, str, Sequence[str]]
Layers = Union[None, int, str]


def read_range(what: str, text: Union[int, str]) -> Tuple[int, int]:
    """Parse "3-7" or "3"; both ends are included."""
    first, dash, last = str(text).partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(first) > int(last or first):
        raise RecordingError(f"{what}: '{text}'; expected a number, or A-B with A not above B")
    return int(first), int(last or first)


class Session(Call):
    """The object that record() returns: it records the forward passes of one model inside one block."""

    def __init__(self, model: Any, path: str, wanted: Points, layers: Layers, tokens: Optional[str]) -> None:
        self.path = os.fspath(path)
        self.parts = modules.parts_of(model)
        config = self.parts.body.config
        every = points.of_model(self.parts.family, len(self.parts.layers), getattr(config, "layer_types", None))
        if self.parts.head is None:
            every = [p for p in every if p.basis != "vocab"]
        inside = read_range("layers", layers) if layers is not None else (0, len(self.parts.layers) - 1)
        if inside[1] >= len(self.parts.layers):
            raise RecordingError(f"layers: {layers}; the model has {len(self.parts.layers)}")
        chosen = [p.name for p in every
                  if not p.on_demand] if wanted is None else globs.select(wanted, [p.name for p in every])
        keep = set(chosen)
        self.points: Dict[str, Tuple[int, points.Point]] = {
            p.name: (i, p) for i, p in enumerate(every) if p.name in keep
            and (p.layer < 0 or inside[0] <= p.layer <= inside[1])}
        if not self.points:
            raise RecordingError(f"points: nothing of {wanted!r} is in layers {layers}")
        self.missing = [h.name for h in self._places() if h.module is None and h.name in self.points]
        for name in self.missing:
            del self.points[name]
        if not self.points:
            raise RecordingError(f"{self.path}: the model has no module for {', '.join(self.missing)}")
        self.asked = tokens
        self.select = None if tokens is None or tokens == "last" else read_range("tokens", tokens)
        self.last_only = tokens == "last"
        self.turn = _turns(self._places())
        self.recorder: Optional[Recorder] = None
        self.how: Dict[str, Set[str]] = {"patched": set(), "recomputed": set()}
        self.history = {}
        self.said: Optional[h5.Fact] = None  # the precision that the caller gave
        self.word: Optional[str] = None  # the precision found in the calls
        self.formats: Set[Any] = set()
        self.running = self.moved = self.recorded = self.padded = False
        self.undo = contextlib.ExitStack()
        self.caches: Dict[int, Any] = {}
        self.before: Any = None  # ids in the cache before the first call
        self.keep: Any = 0  # the argument logits_to_keep of the call
        self.forget()

    def _places(self) -> Iterator[modules.Hook]:
        return modules.hooks(self.parts, lambda: (self.batch, self.tokens))

    @property
    def names(self) -> List[str]:
        """The checkpoints that every call records, in execution order."""
        return list(self.points)

    def fact(self, **run: h5.Fact) -> None:
        """Add facts about the run, strings and numbers by name, to those given to record(). Raises RecordingError:
        another type."""
        assert self.recorder is not None
        self.recorder.fact(**run)

    @property
    def differs(self) -> Optional[str]:
        """The first tensor that differed from the recording `against`, "step.2/layer3.q_rope"; None if none
        differed."""
        assert self.recorder is not None
        return self.recorder.differs

    # ---- one call --------------------------------------------------------------------------------

    def forget(self) -> None:
        super().forget()
        self.inside: Optional[int] = None  # the layer that runs
        self.entered: Dict[int, int] = {}  # by layer module: how often it was entered in this call
        self.calls: Dict[int, int] = {}  # by module that this layer has in several places: its calls so far
        self.stream: Tuple[str, Any, int] = ("", None, 0)  # the residual stream that was put last
        self.batch = 0
        self.alone = True
        self.rows = (0, 0)
        self.looked = False  # device and precision of this call were read
        self.mask: Any = None
        self.hidden: Optional[Any] = None  # (B, T), True at padding; None without padding

    def _watch(self, cache: Any) -> None:
        def moved() -> None:
            self.moved = True

        if cache is not None and id(cache) not in self.caches:
            self.caches[id(cache)] = cache
            wrapped.watch_cache(self.undo, cache, moved)

    def _called(self, module: Any, args: Any, kwargs: Any) -> None:
        self.keep = kwargs.get("logits_to_keep", 0)

    @torch.compiler.disable
    def _begin(self, module: Any, args: Any, kwargs: Any) -> None:
        if self.running:
            raise RecordingError(f"{self.path}: a forward pass began inside another, or after one that failed")
        if compiled():
            raise RecordingError(f"{self.path}: {COMPILED}")
        if self.moved:
            raise RecordingError(f"{self.path}: the cache's rows were put into another order since the last call (a "
                                 f"beam search?); a "
                                 "recording takes row i of every call for one sequence")
        self.forget()
        given = wrapped.given_to(module, args, kwargs)
        if given.get("inputs_embeds") is not None:
            raise RecordingError(f"{self.path}: inputs_embeds: a recording needs token ids")
        cache, self.mask = wrapped.cache_in(given), given.get("attention_mask")
        self._watch(cache)
        self.past = int(cache.get_seq_length()) if cache is not None else 0
        self.running = True

    def _ids(self, module: Any, args: Any, kwargs: Any) -> None:
        ids = args[0] if args else kwargs["input"]
        assert self.recorder is not None
        if not self.running or self.tokens:  # the embedding is used outside a call, or again
            return
        self.batch, self.tokens = (int(x) for x in ids.shape)
        hidden = padding.hidden(self.mask, self.past, self.tokens)
        self.hidden = hidden.expand(self.batch, -1) if hidden is not None and bool(hidden.any()) else None
        if self.hidden is not None and bool(self.hidden[:, -1].any()):
            self.trailing = self.hidden.flip(-1).int().cummin(-1)[0].flip(-1).bool()
        self.padded = self.padded or self.hidden is not None
        self.alone = self.batch == 1 and not self.padded  # then the axis batch is dropped
        done = self.recorder._total
        if self.past and not done and self.before is not None:
            self._begin_before()
            done = self.recorder._total
        if self.past != done:
            filled = "" if done else "; before= gives the tokens of a cache that was filled earlier"
            raise RecordingError(f"{self.path}: a call starts after {self.past} tokens, but {done} were recorded; "
                                 f"a recording is one run, whose calls go on with the same cache{filled} "
                                 f"({about.releases()})")
        first, last = self.select or (self.past, self.past + self.tokens - 1)
        if self.last_only:
            if self.trailing is not None:
                raise RecordingError(f"{self.path}: tokens: 'last', and a row that ends in padding; "
                                     f"its last token is another")
            first = self.past + self.tokens - 1
        low, high = max(first - self.past, 0), min(last - self.past + 1, self.tokens)
        self.rows = (low, max(high - low, 0)) if high > low else (0, 0)
        part = self.rows if self.select or self.last_only else None
        self.recorder.begin_step(token_ids=ids[0] if self.alone else ids, rows=part)
        self.waiting = set(self.points) if self.rows[1] else set()

    def _begin_before(self) -> None:
        """Record the call that filled the cache, of which nothing was kept."""
        assert self.recorder is not None
        ids = ids_array("before", self.before)
        ids = ids[None] if ids.ndim == 1 else ids
        if ids.shape != (self.batch, self.past):
            raise RecordingError(f"{self.path}: before: {ids.shape[-1]} tokens in {len(ids)} rows, and the cache holds "
                                 f"{self.past} in {self.batch}")
        self.recorder.begin_step(token_ids=ids[0] if self.alone else ids, rows=(0, 0))

    def _positions(self, module: Any, args: Any, kwargs: Any) -> None:
        given = args[-1] if args and (len(args) > 1 or "position_ids" not in kwargs) else kwargs["position_ids"]
        where = (given[0] if given.ndim == 3 else given).detach().expand(self.batch, self.tokens)
        if self.hidden is not None:
            where = where.masked_fill(self.hidden.to(where.device), -1)
        assert self.recorder is not None
        self.recorder.set_positions(where[0] if self.alone else where)

    def _end(self, module: Any, args: Any, kwargs: Any, out: Any) -> None:
        self.running, self.inside, self.layer = False, None, None
        self._watch(wrapped.cache_in(out))
        left = [n for n in self.points if n in self.waiting and self.points[n][1].basis != "vocab"]
        if left:
            raise RecordingError(f"{self.path}: {left[0]}{f' and {len(left) - 1} more' if len(left) > 1 else ''}: "
                                 f"the model's forward pass did not come where it is recorded: compiled, or replaced "
                                 f"by a kernel, or changed in this release ({about.releases()})")

    def _ends_alone(self) -> bool:
        """True if the scores of this call are those of the last token of each packed prompt."""
        if not isinstance(self.keep, torch.Tensor):
            return False
        kept = [int(i) % self.tokens for i in self.keep.reshape(-1).tolist()]
        if kept == list(range(self.tokens - len(kept), self.tokens)):
            return False
        assert self.recorder is not None
        where = self.recorder._calls[-1][1]
        ends = [i for i in range(self.tokens) if i + 1 == self.tokens or where[i + 1] == 0] if where.ndim == 1 else []
        if kept != ends or self.rows != (0, self.tokens):
            raise RecordingError(f"{self.path}: logits: logits_to_keep is a tensor of some tokens; "
                                 f"a file has the scores of every token, or "
                                 "of the last one: leave it out, or record without logits")
        return True

    # ---- one tensor ------------------------------------------------------------------------------

    def put(self, name: str, tensor: Callable[[], Any], how: str) -> None:
        if name not in self.waiting:
            return
        self.waiting.discard(name)
        order, point = self.points[name]
        t, axes = tensor().detach(), point.axes.split()
        if "token" in axes and not (point.basis == "vocab" and self._ends_alone()):
            at, n = 1 + axes.index("token"), t.shape[1 + axes.index("token")]
            first = self.rows[0] - (self.tokens - n)  # scores of the last tokens only
            if first >= 0:
                t = t.narrow(at, first, self.rows[1])
            elif sum(self.rows) == self.tokens:  # a file has scores of every row, or of the last row
                t = t.narrow(at, n - 1, 1)
            else:
                return
        self.recorded = True
        if not self.looked:
            self._look(t.device)
        self.formats.add(t.dtype)
        if self.alone and t.shape[0] == 1:
            t = t[0]
        else:  # also a state of each of several packed prompts
            axes.insert(0, "batch")
        if how != "hook":
            self.how[how].add(point.point)
        assert self.recorder is not None
        try:
            self.recorder.put(name, t, " ".join(axes), basis=point.basis, op=point.op, how=how, order=order)
        except RecordingError as e:
            if isinstance(e.__context__, OSError):
                raise
            raise RecordingError(f"{e} ({about.releases()})") from None

    def _look(self, device: Any) -> None:
        """Read precision and device inside the call: outside it autocast may be off, and a weight on another device."""
        word = about.call_word(device) or about.plain_word(self.parts.model)
        self.looked = True
        if self.word is None:
            self.fact(device=about.device_name(device))
        elif word != self.word:
            raise RecordingError(f"{self.path}: a call in {word} after one in {self.word}; a recording is one run, "
                                 f"in one precision")
        self.word = word

    def precision(self) -> Optional[str]:
        """The precision of the whole run; None if it is the one that was given."""
        return None if self.said is not None or self.word is None else about.run_word(self.word, self.formats)

    def _hook(self, h: modules.Hook, t: Any) -> None:
        if h.layer != (-1 if self.inside is None
                       else self.inside) or self.turn.get(h.name, 1) != self.calls.get(id(h.module), 1):
            return  # this call of the module is for another checkpoint
        t = t[0] if isinstance(t, (tuple, list)) else t
        if h.name in ("embed",) or h.name.endswith(".output"):
            self.stream = (h.name, t, _version(t))
        self.put(h.name, lambda: h.shape(t), "hook")

    def _enter(self, numbers: List[int], layer: Any, args: Any, kwargs: Any) -> None:
        """A layer begins. numbers: the layers that this module is, in order; several if layers share it."""
        before = self.entered.get(id(layer), 0)
        if self.running and before < len(numbers):
            self.entered[id(layer)], self.calls, self.inside = before + 1, {}, numbers[before]
            self._layer_input(numbers[before], args[0] if args else kwargs["hidden_states"])

    def _leave(self) -> None:
        self.inside, self.calls = None, {}

    def _count(self, module: Any) -> None:
        self.calls[id(module)] = self.calls.get(id(module), 0) + 1

    def _layer_input(self, n: int, t: Any) -> None:
        """Record the input of layer n: a second name of the tensor before it, unless that was changed in between."""
        name = f"layer{n}.input"
        before, stream, version = self.stream
        if (name in self.waiting and before in self.points and before not in self.waiting and stream is t
            and version == _version(t)):
            self.waiting.discard(name)
            assert self.recorder is not None
            self.recorder.alias(name, before)
        else:
            self.put(name, lambda: t, "hook")

    # ---- hooks -----------------------------------------------------------------------------------

    def _mixer(self, mixer: Any, delta: bool) -> List[Any]:
        def enter(m: Any, args: Any) -> None:
            self.layer = self.inside if self.running else None

        def leave(m: Any, args: Any, kwargs: Any, out: Any) -> None:
            if delta and self.layer is not None:
                wrapped.conv_state(self, self.layer, m, wrapped.cache_in(wrapped.given_to(m, args, kwargs)))
            self.layer = self.qkv = None

        def keep(m: Any, args: Any, out: Any) -> None:
            self.qkv = out

        def convolved(m: Any, args: Any, out: Any) -> None:
            wrapped.convolved(self, args[0], out)

        own = [(mixer.in_proj_qkv, keep), (mixer.conv1d, convolved)] if delta else []
        return [*(m.register_forward_hook(f) for m, f in own), mixer.register_forward_pre_hook(enter),
                mixer.register_forward_hook(leave, with_kwargs=True)]

    def _attach(self) -> List[Any]:
        parts = self.parts
        made = [parts.model.register_forward_pre_hook(self._called, with_kwargs=True),
                parts.body.register_forward_pre_hook(self._begin, with_kwargs=True),
                parts.embedding.register_forward_pre_hook(self._ids, with_kwargs=True),
                parts.positions.register_forward_pre_hook(self._positions, with_kwargs=True)]
        layers = {id(layer): layer for layer in parts.layers}  # a module may occur more than once
        for layer in layers.values():
            numbers = [n for n, x in enumerate(parts.layers) if x is layer]
            made.append(layer.register_forward_pre_hook(lambda m, a, k, n=numbers: self._enter(n, m, a, k),
                                                        with_kwargs=True))
        for mixer, delta in {id(x[0]): x for x in map(modules.mixer_of, layers.values())}.values():
            made += self._mixer(mixer, delta)
        places = [h for h in self._places() if h.name in self.points]
        for module in {id(h.module): h.module for h in places if h.name in self.turn}.values():
            made.append(module.register_forward_pre_hook(lambda m, a: self._count(m)))
        # parts of the residual stream that are needed but not recorded are kept by reference only
        for h in places:
            if h.into:
                made.append(h.module.register_forward_pre_hook(
                    lambda m, a, k, h=h: self._hook(h, a[0] if a else next(iter(k.values()))), with_kwargs=True))
            else:
                made.append(h.module.register_forward_hook(lambda m, a, o, h=h: self._hook(h, o)))
        made += [layer.register_forward_hook(lambda m, a, o: self._leave()) for layer in layers.values()]
        made.append(parts.body.register_forward_hook(self._end, with_kwargs=True))
        return made


def _turns(places: Iterator[modules.Hook]) -> Dict[str, int]:
    """For modules that a layer has in several places: at which of the module's calls each checkpoint comes, from 1."""
    roles: Dict[Tuple[int, int], List[Tuple[int, str]]] = {}  # by layer and module
    of = []
    for h in places:
        if h.module is not None and h.layer >= 0:
            every, role = roles.setdefault((h.layer, id(h.module)), []), (id(h.owner), h.attribute)
            if role not in every:
                every.append(role)
            of.append((h.name, every, role))
    return {name: every.index(role) + 1 for name, every, role in of if len(every) > 1}


COMPILED = "a model compiled by torch.compile has no places to hook; record it as it was before"


def compiled() -> bool:
    """True if a compiled function is among the callers."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper" and "_dynamo" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _version(t: Any) -> int:
    """How often a tensor was changed in place; -1 if torch does not count."""
    return -1 if t.is_inference() else t._version


def _short(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _raised_here(e: BaseException) -> bool:
    """True if a line of this package raised the exception, itself or by a call of torch."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(e.__traceback__)]
    outside = [f for f in files if not f.startswith(os.path.dirname(torch.__file__) + os.sep)]
    return bool(outside) and os.path.abspath(outside[-1]).startswith(OWN)


@contextlib.contextmanager
def _own_errors(path: str) -> Iterator[None]:
    """Raise an exception of this package as one that names the releases: a model of a release that it does not know
    has other modules, or calls them otherwise."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as e:
        if isinstance(e, (RecordingError, torch.cuda.OutOfMemoryError)) or not _raised_here(e):
            raise
        said = " ".join(f"{type(e).__name__}: {e}".split())[:200]
        raise RecordingError(f"{path}: the recorder does not find its way in this model: {said} "
                             f"({about.releases()})") from e


@contextlib.contextmanager
def session(model: Any, path: str, wanted: Points, *, layers: Layers, tokens: Optional[str], weights: Union[bool, str],
            statistics: bool,
            run: Mapping[str, h5.Fact], force: bool, against: Optional[str], keep_above: Optional[float],
            stop_at_first: bool, before: Any) -> Iterator[Session]:
    """See vernier_parity.record()."""
    with _own_errors(os.fspath(path)):
        s = Session(model, path, wanted, layers, tokens)
    model = s.parts.model
    directory = about.directory_of(model)
    config, changed = about.config_of(model, directory)
    said = {**about.facts_of(model), **run}
    with Recorder(path, engine=str(said.pop("engine")), precision=str(said.pop("precision")), statistics=statistics,
                  run=said, force=force,
                  against=against, keep_above=keep_above, stop_at_first=stop_at_first) as recorder:
        s.recorder, s.said, s.before = recorder, run.get("precision"), before
        if isinstance(weights, str):
            quantised.write(weights, quantised.of_model(model), config, directory)
        recorder.model(directory, family=json.loads(config).get("model_type", s.parts.family), config=config,
                       weights=table.of_memory(model, directory) if weights else [])
        if s.missing:
            recorder.fact(not_hooked=_short(s.missing))
            warn(f"vernier_parity: {s.path}: not recorded, since the model has no module for it: "
                          f"{_short(s.missing)} ({about.releases()})", stacklevel=4)
        if changed:
            recorder.fact(config_changed=changed)
        made: List[Any] = []
        stopped: Optional[Diverged] = None
        with s.undo, _own_errors(s.path), wrapped.functions(s):
            try:
                made += s._attach()
                yield s
            except Diverged as e:
                if not recorder._stopped:  # raised by another recording
                    raise
                stopped = e
            except Exception as e:
                if not type(e).__module__.startswith("torch._dynamo"):
                    raise
                raise RecordingError(f"{s.path}: {COMPILED}") from None
            finally:
                for h in made:
                    h.remove()
        if s.running and not recorder._stopped:  # the caller may have caught Diverged
            raise RecordingError(f"{s.path}: the last forward pass did not end")
        if not recorder.steps:
            raise RecordingError(f"{s.path}: the model was not called inside the block")
        if not s.recorded:
            raise RecordingError(f"{s.path}: nothing was recorded: tokens: '{s.asked}', "
                                 f"and the run has {recorder.position + recorder.tokens}")
        kind = s.precision()
        if kind is not None:
            recorder.fact(precision=kind)
        for how, found in s.how.items():
            if found:
                recorder.fact(**{how: " ".join(sorted(found))})
        if stopped:
            raise stopped
