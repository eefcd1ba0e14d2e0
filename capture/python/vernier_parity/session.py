"""session.py: records the forward passes of a HuggingFace model of a known family, by the names of its checkpoints."""

import contextlib
import os
import traceback
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

import torch

from . import about, globs, h5, padding, points, quantised, watch
from .functions import Call
from .numbers import Ids, RecordingError, ids_array
from .places import Parts, Shape, kinds_of, mixer_of, module_of, path_of, shape_of
from .points import Point
from .printed import warn
from .recorder import Recorder
from .source_line import OWN
from .watch import cache_in, given_to, version

Points = Union[None, str, Sequence[str]]
Layers = Union[None, int, str]


def read_range(what: str, text: Union[int, str]) -> Tuple[int, int]:
    """Parse "3-7" or "3"; both ends are included."""
    first, dash, last = str(text).partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(first) > int(last or first):
        raise RecordingError(f"{what}: '{text}'; expected a number, or A-B with A not above B")
    return int(first), int(last or first)


class Place(NamedTuple):
    """Where a checkpoint is: what the module takes or returns when it is called as that at the path."""

    point: Point
    module: Any
    path: str
    shape: Shape


class Passes(Call):
    """The object that record() returns: it records the forward passes of one model inside one block."""

    def __init__(self, parts: Parts, path: str, wanted: Points, layers: Layers, tokens: Optional[str],
                 before: Optional[Ids]) -> None:
        super().__init__(path)
        self.parts, self.before = parts, before  # ids in the cache before the first call
        every = points.of_model(parts.family, len(parts.layers), kinds_of(parts.layers, parts.body.config))
        queries = getattr(mixer_of(parts.layers[0])[0], "q_a_proj", None)  # DeepSeek-V2-Lite has no latent queries
        every = [p for p in every if (parts.head is not None or p.row.basis != "vocab")
                 and (queries is not None or not p.row.point.startswith("q_a_"))]
        inside = read_range("layers", layers) if layers is not None else (0, len(parts.layers) - 1)
        if inside[1] >= len(parts.layers):
            raise RecordingError(f"layers: {layers}; the model has {len(parts.layers)}")
        keep = {p.name for p in every if not p.row.on_demand} if wanted is None else set(
            globs.select(wanted, [p.name for p in every]))
        self.points: Dict[str, Tuple[int, Point]] = {
            p.name: (i, p) for i, p in enumerate(every) if p.name in keep
            and (p.layer < 0 or inside[0] <= p.layer <= inside[1])}
        if not self.points:
            raise RecordingError(f"points: nothing of {wanted!r} is in layers {layers}")
        self.missing: List[str] = []
        self.places: List[Place] = []
        self.paths: Dict[int, List[str]] = {}  # by module: those in the body, in the order of its calls
        for p in every:
            if p.row.module is not None:
                self._find(p)
        if not self.points:
            raise RecordingError(f"{path}: the model has no module for {', '.join(self.missing)}")
        self.numbers = {id(layer): [n for n, x in enumerate(parts.layers) if x is layer] for layer in parts.layers}
        self.asked, self.last_only = tokens, tokens == "last"
        self.select = None if tokens is None or self.last_only else read_range("tokens", tokens)
        self.how: Dict[str, Set[str]] = {"patched": set(), "recomputed": set()}
        self.said: Optional[h5.Fact] = None  # the precision that the caller gave
        self.word: Optional[str] = None  # the precision found in the calls
        self.formats: Set[Any] = set()
        self.running = self.recorded = self.padded = False
        self.keep: Any = 0  # the argument logits_to_keep of the call
        self.forget()

    def _find(self, p: Point) -> None:
        """Find the module that takes or returns a checkpoint, if one does."""
        path = path_of(self.parts.of_layers, p.layer, p.row)
        module = module_of(self.parts, path)
        if module is None:
            if self.points.pop(p.name, None):
                self.missing.append(p.name)
            return
        paths = self.paths.setdefault(id(module), [])
        if path not in paths:
            paths.append(path)
        shape = shape_of(self.parts, p, module, lambda: (self.batch, self.tokens))
        if p.name in self.points:
            self.places.append(Place(p, module, path, shape))

    @property
    def names(self) -> List[str]:
        """The checkpoints that every call records, in execution order."""
        return list(self.points)

    # ---- one call --------------------------------------------------------------------------------

    def forget(self) -> None:
        super().forget()
        self.stream: Tuple[str, Any, int] = ("", None, 0)  # the residual stream that was put last
        self.batch = 0
        self.alone = True
        self.rows = (0, 0)
        self.looked = False  # device and precision of this call were read
        self.mask: Any = None
        self.hidden: Optional[Any] = None  # (B, T), True at padding; None without padding

    def _called(self, module: Any, args: Any, kwargs: Any) -> None:
        self.keep = kwargs.get("logits_to_keep", 0)

    @torch.compiler.disable
    def _begin(self, module: Any, args: Any, kwargs: Any) -> None:
        if self.running:
            raise RecordingError(f"{self.path}: a forward pass began inside another, or after one that failed")
        given = given_to(module, args, kwargs)
        self.watch.begins(given)
        self.forget()
        if given.get("inputs_embeds") is not None:
            raise RecordingError(f"{self.path}: inputs_embeds: a recording needs token ids")
        cache, self.mask = cache_in(given), given.get("attention_mask")
        self.past = int(cache.get_seq_length()) if cache is not None else 0
        self.running = True

    def _ids(self, module: Any, args: Any, kwargs: Any) -> None:
        ids = args[0] if args else kwargs["input"]
        if not self.running or self.tokens:  # the embedding is used outside a call, or again
            return
        self.batch, self.tokens = (int(x) for x in ids.shape)
        hidden = padding.hidden(self.mask, self.past, self.tokens)
        self.hidden = hidden.expand(self.batch, -1) if hidden is not None and bool(hidden.any()) else None
        if self.hidden is not None and bool(self.hidden[:, -1].any()):
            self.trailing = self.hidden.flip(-1).int().cummin(-1)[0].flip(-1).bool()
        self.padded = self.padded or self.hidden is not None
        self.alone = self.batch == 1 and not self.padded  # then the axis batch is dropped
        if self.past and not self.recorder._ids.total and self.before is not None:
            self._begin_before()
        done = self.recorder._ids.total
        if self.past != done:
            filled = ("; before= gives the tokens of a cache that was filled earlier" if not done
                      else "; it has tokens twice, or a call was not recorded" if self.past > done else "")
            raise RecordingError(f"{self.path}: a call starts after {self.past} tokens, but {done} were recorded; "
                                 f"a recording is one run, whose calls go on with the same cache: record other runs in "
                                 f"files of their own{filled} ({about.releases()})")
        first, last = self.select or (self.past, self.past + self.tokens - 1)
        if self.last_only:
            if self.trailing is not None:
                raise RecordingError(f"{self.path}: tokens: 'last', and a row that ends in padding; "
                                     f"its last token is another")
            first = self.past + self.tokens - 1
        low, high = max(first - self.past, 0), min(last - self.past + 1, self.tokens)
        self.rows = (low, high - low) if high > low else (0, 0)
        part = self.rows if self.select or self.last_only else None
        self.recorder.begin_step(token_ids=ids[0] if self.alone else ids, rows=part)
        self.waiting = set(self.points) if self.rows[1] else set()

    def _begin_before(self) -> None:
        """Record the call that filled the cache, of which nothing was kept."""
        ids = ids_array("before", self.before)
        ids = ids[None] if ids.ndim == 1 else ids
        if ids.shape != (self.batch, self.past):
            raise RecordingError(f"{self.path}: before: {ids.shape[-1]} tokens in {len(ids)} rows, and the cache holds "
                                 f"{self.past} in {self.batch}")
        self.recorder.begin_step(token_ids=ids[0] if self.alone else ids, rows=(0, 0))

    def _positions(self, module: Any, args: Any, kwargs: Any) -> None:
        args = [a for a in args if hasattr(a, "ndim")]  # Gemma 3 also gives the kind of layers
        given = args[-1] if args and (len(args) > 1 or "position_ids" not in kwargs) else kwargs["position_ids"]
        where = (given[0] if given.ndim == 3 else given).detach().expand(self.batch, self.tokens)
        if self.hidden is not None:
            where = where.masked_fill(self.hidden.to(where.device), -1)
        self.recorder.set_positions(where[0] if self.alone else where)

    def _end(self, module: Any, args: Any, kwargs: Any, out: Any) -> None:
        self.running = False
        self.watch.cache(out)
        left = [n for n in self.points if n in self.waiting and self.points[n][1].row.basis != "vocab"]
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
        where = self.recorder._ids.calls[-1].positions
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
        t, axes = tensor().detach(), point.row.axes.split()
        if t.device.type == "meta":
            return  # of a weight that accelerate's offload took away
        if "token" in axes and not (point.row.basis == "vocab" and self._ends_alone()):
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
            self.how[how].add(point.row.point)
        try:
            self.recorder.put(name, t, " ".join(axes), basis=point.row.basis, op=point.op, how=how, order=order)
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

    def _at(self, of: Place, t: Any, how: str = "hook") -> None:
        turn, paths = self.watch.stack[-1][1], self.paths[id(of.module)]
        if of.point.layer != self.layer or (len(paths) > 1 and paths[turn : turn + 1] != [of.path]):
            return  # this call of the module is for another checkpoint
        name, t = of.point.name, _of_several(t, of.point.row.how)
        if name == "embed" or name.endswith(".output"):
            self.stream = (name, t, version(t))
        self.put(name, lambda: of.shape(t), how)

    def _routed(self, of: Place, m: Any, given: Sequence[Any], out: Any) -> None:
        """Record what a router or experts return."""
        if of.point.name not in self.waiting:
            return
        row = of.point.row
        if row.how == "each":
            x, ids, weights = given[:3]
            with torch.no_grad():
                self._at(of, torch.stack([m.forward(x, ids[:, s : s + 1], torch.ones_like(weights[:, s : s + 1]))
                                          for s in range(ids.shape[1])], 1), "recomputed")
        elif row.point == "router_logits" and (out is None or _are_probabilities(_of_several(out, row.how))):
            with torch.no_grad():  # transformers 5.2 returns them in place of the logits, or does not call the router
                wide = torch.Tensor.float if out is None else lambda t: t
                self._at(of, torch.nn.functional.linear(wide(given[0].reshape(-1, given[0].shape[-1])), wide(m.weight),
                                                        getattr(m, "bias", None)), "recomputed")
        else:
            out = given[int(row.how[2:])] if row.how in ("in1", "in2") else _of_several(out, row.how)
            self._at(of, out.to(torch.int32) if row.point == "router_ids" else out)

    def _enter(self, layer: Any, args: Any, kwargs: Any) -> None:
        """A layer begins: its input is a second name of the tensor before it, unless that was changed in between."""
        name, t = f"layer{self.layer}.input", args[0] if args else kwargs["hidden_states"]
        before, stream, made = self.stream
        if (name in self.waiting and before in self.points and before not in self.waiting and stream is t
            and made == version(t)):
            self.waiting.discard(name)
            self.recorder.alias(name, before)
        else:
            self.put(name, lambda: t, "hook")

    def attach(self) -> Any:
        parts, on = self.parts, self.watch.module
        self.watch_functions()
        on(parts.model, self._called)
        on(parts.body, self._begin)
        on(parts.embedding, self._ids)
        on(parts.positions, self._positions)
        for layer in {id(layer): layer for layer in parts.layers}.values():  # a module may occur more than once
            on(layer, self._enter)
        for of in self.places:
            if of.point.row.how in ("1", "2", "in1", "in2", "each") or of.point.row.point == "router_logits":
                on(of.module, after=lambda m, a, k, o, of=of: self._routed(of, m, list(given_to(m, a, k).values()), o))
                if isinstance(of.module, torch.nn.Linear):  # DeepSeek-V2's in transformers 5.2: only its weight is used
                    on(parts.layers[of.point.layer].mlp.experts, lambda m, a, k, of=of: self._routed(
                        of, of.module, list(given_to(m, a, k).values()), None))
            elif of.point.row.how in ("in", "rows"):
                on(of.module, lambda m, a, k, of=of: self._at(of, a[0] if a else next(iter(k.values()))))
            else:
                on(of.module, after=lambda m, a, k, o, of=of: self._at(of, o))
        on(parts.body, after=self._end)
        self.watch.modules([parts.model, parts.body, *parts.layers, *(of.module for of in self.places)])
        return contextlib.nullcontext()

    def errors(self) -> Any:
        return _own_errors(self.path)

    def finish(self) -> None:
        rec = self.recorder
        if self.running and not rec._stopped:  # the caller may have caught Diverged
            raise RecordingError(f"{self.path}: the last forward pass did not end")
        if not rec.steps:
            raise RecordingError(f"{self.path}: the model was not called inside the block")
        if not self.recorded:
            raise RecordingError(f"{self.path}: nothing was recorded: tokens: '{self.asked}', "
                                 f"and the run has {rec.position + rec.tokens}")
        if self.said is None and self.word is not None:
            word = about.run_word(self.word, self.formats)
            rec.fact(precision=word + (about.inputs_format(self.parts.model) if word in about.WORDS.values() else ""))
        for how, found in self.how.items():
            if found:
                rec.fact(**{how: " ".join(sorted(found))})


def _of_several(t: Any, how: str) -> Any:
    """What a module returns, or the one of several things that is meant."""
    return t[int(how) if how.isdecimal() else 0] if isinstance(t, (tuple, list)) else t


def _are_probabilities(t: Any) -> bool:
    return bool((t >= 0).all()) and bool(((t.float().sum(-1) - 1).abs() < 1e-3).all())


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
def session(parts: Parts, path: str, wanted: Points, *, layers: Layers, tokens: Optional[str], before: Optional[Ids],
            weights: Union[bool, str], run: Mapping[str, h5.Fact], **how: Any) -> Iterator[Passes]:
    """See vernier_parity.record()."""
    with _own_errors(path):
        s = Passes(parts, path, wanted, layers, tokens, before)
    model = parts.model
    facts, changed = about.model_facts(model, parts.family, bool(weights), True)
    s.said = run.get("precision")
    said = dict(engine="transformers", engine_version=about.version(), precision=about.plain_word(model))
    with about.recording(Recorder, path, said, model, run, **how) as s.recorder:
        if isinstance(weights, str):
            quantised.write(weights, quantised.of_model(model), facts["config"], facts["directory"])
        s.recorder.model(**facts)
        if s.missing:
            s.fact(not_hooked=_short(s.missing))
            warn(f"vernier_parity: {path}: not recorded, since the model has no module for it: "
                 f"{_short(s.missing)} ({about.releases()})", stacklevel=4)
        if changed:
            s.fact(config_changed=changed)
        with watch.block(s):
            yield s
