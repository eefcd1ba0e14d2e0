"""recorder.py: writes a checkpoint file of any engine.

    with vernier_parity.Recorder("run.h5", engine="mine", precision="f32", token_ids=ids) as rec:
        rec.put("layer0.q_rope", array, dims="token head dim")
        rec.alias("layer1.input", "layer0.output")

In a run of several calls, begin_step marks the beginning of each call, and gives its tokens unless Recorder got them:

    with vernier_parity.Recorder("run.h5", engine="mine", precision="bf16") as rec:
        for tokens in calls:
            rec.begin_step(token_ids=tokens)
            rec.put("logits", scores)

The file gets its name only when the block ends without an exception. An exception leaves PATH.partial, a readable file
with complete = 0. `vernier help checkpoint.md` describes the format, `vernier points` lists names, dims and bases.
"""

import atexit
import contextlib
import functools
import os
import re
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Type, TypeVar, Union, cast

import numpy as np
from h5py import h5f, h5s

from . import h5, names, points, texts, weights as table
from .against import Against
from .globs import hint
from .numbers import SAID, Diverged, Ids, RecordingError, digest_of, ids_array, statistics, stored
from .printed import warn
from .source_line import LONGEST as LONGEST_LINE, source_line as line_of_caller

MOST_AXES, MOST_FACTS = 6, 64
# bytes; HDF5 stores at most 64 KiB of attributes with an object
LONGEST_DIMS, LONGEST_WORD, LONGEST_FACT = 63, 31, 60000
RESERVED = {"engine": "give the argument engine=", "precision": "give the argument precision=",
            "tokens": "give the argument token_ids=", "positions": "give the argument positions="}
SAME = ("hidden", "vocab")  # axes that have the same length in every tensor of a run
PUBLISH_EVERY = 0.1  # seconds; what was put since is lost if the process is killed
MOST_NAMES = 256  # of a group, outside layers: HDF5's time for a name grows with their number


_open: "weakref.WeakSet[Recorder]" = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    """Write the last tensors of recordings that were not closed."""
    for r in list(_open):
        r.__exit__(SystemExit, None, None)


_forking = threading.local()


def _before_fork() -> None:
    """Wait until no thread is inside HDF5, which the child would inherit half-way."""
    _forking.held = list(_open)
    for r in _forking.held:
        r._lock.acquire()


def _after_fork() -> None:
    for r in _forking.held:
        r._lock.release()
    _forking.held = []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)

_Method = TypeVar("_Method", bound=Callable[..., Any])


def alone(method: _Method) -> _Method:
    """While the method runs, the thread that publishes waits: it finds finished objects alone."""
    @functools.wraps(method)
    def call(self: "Recorder", *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self._changed = True
            return method(self, *args, **kwargs)
    return cast(_Method, call)


def _publish_in_silence(recorder: "weakref.ref[Recorder]", ended: threading.Event) -> None:
    """What a thread does for a recording: it publishes what the last calls left, if no further call does."""
    wait = PUBLISH_EVERY
    while not ended.wait(wait):
        r = recorder()
        if r is None:
            return
        wait = r._publish_rest()
        del r


def counted(first: int, shape: Tuple[int, ...]) -> np.ndarray:
    """Positions from the first on."""
    return np.broadcast_to(np.arange(first, first + shape[-1], dtype="<i4"), shape)


class Recorder:
    """Writes a checkpoint file; use it in a `with` block. One thread at a time.

    Letters for shapes: T rows of tokens in a step, B prompts in a batch, N tokens of the run, H query heads, K head
    width. Arrays are outermost axis first. Values are stored as they are, in the engine's own units and
    number format. A call that raises RecordingError records nothing; the recording can go on.
    """

    def __init__(self, path: str, *, engine: str, precision: str, token_ids: Optional[Ids] = None,
                 positions: Optional[Ids] = None,
                 tool: str = "vernier_parity", tool_version: str = "0.1.0", created: Optional[str] = None,
                 statistics: bool = True,
                 run: Optional[Mapping[str, h5.Fact]] = None, force: bool = False, against: Optional[str] = None,
                 keep_above: Optional[float] = None, stop_at_first: bool = False) -> None:
        """Begin a recording.

        path          the file; until the recording is complete it is named PATH.partial
        engine        the name of the program that computes
        precision     "f32", "f16", "bf16", "f64", or your own word
        token_ids     whole numbers from 0, shape (N), or (B, N) for a batch; or pass them to begin_step, call by call
        positions     same shape as token_ids, counted in tokens from 0, -1 at padding; default: 0, 1, 2, ...
        tool          the program that writes the file, where it is not this package
        tool_version  its version
        created       time of creation, "2026-01-31T12:00:00Z"; default: now
        statistics    also store minimum, maximum, mean and so on of each tensor, for `vernier show`
        run           your own facts about the run: strings and numbers by name
        force         replace an existing recording; other files are never replaced
        against       a recording to judge this one by while it is made: only tensors that differ from it are written,
                      each with what was put before it in its layer. `vernier compare` knows what was left out
        keep_above    the nmse from which a tensor differs; default: 1e-9 for float32 and wider, 1e-5 for narrower
                      formats. Logits are left out only if they are equal; tensors with NaN or infinities never
        stop_at_first  raise Diverged at the first tensor that differs from against, after it was written. Nothing can
                       be
                      put after that; at the end of the block the recording is complete, and the fact `stopped` names
                      the tensor

        Raises RecordingError: the file exists, or cannot be written; token_ids are not whole numbers from 0; positions
        have another shape than token_ids; a fact is neither a string nor a number; run has engine, precision, tokens or
        positions.
        """
        taken = sorted(set(run or {}) & set(RESERVED))
        if taken:
            raise RecordingError(f"run: {taken[0]} is not given here: {RESERVED[taken[0]]}")
        self.statistics = statistics
        self.path, self.partial = os.fspath(path), os.fspath(path) + ".partial"
        h5.refuse_taken(self.path, force)
        for what, given in (("keep_above", keep_above is not None), ("stop_at_first", stop_at_first)):
            if given and against is None:
                raise RecordingError(f"{what} needs against, the recording to judge this one by")
        self._against = Against(against, keep_above) if against is not None else None
        self._stop_at_first, self._stopped = stop_at_first, False
        self._folder = os.getcwd()  # source_line is relative to it
        self._doubted: Set[str] = set()
        self._ids = None if token_ids is None else ids_array("token_ids", token_ids)
        self._positions = None if positions is None else ids_array("positions", positions)
        if self._ids is not None and self._ids.min() < 0:
            raise RecordingError("token_ids: an id below 0")
        if self._positions is not None and (self._ids is None or self._ids.shape != self._positions.shape):
            raise RecordingError("positions: expected token_ids of the same shape")
        if self._positions is not None:
            self._no_padding_alone(self._positions)
        self._calls: List[Tuple[np.ndarray, np.ndarray]] = []  # ids and positions of each step
        self._step: Any = None
        self._groups: Dict[str, Any] = {}
        self._names: Dict[str, Tuple[str, ...]] = {}
        self._shapes: Dict[str, Tuple[int, ...]] = {}
        self._sizes: Dict[str, Tuple[int, str]] = {}
        self._order = self._facts = self.steps = self.position = self.tokens = self.rows = 0
        self._force, self._published, self._gone = force, 0.0, []
        self._lock, self._ended, self._changed = threading.RLock(), threading.Event(), False
        self._total = 0  # tokens of the calls so far
        self._directory: Optional[str] = None  # the model's
        self._stored_ids: Dict[str, Any] = {}
        try:
            if against is not None and any(os.path.exists(p) and os.path.samefile(against, p)
                                           for p in (self.path, self.partial)):
                raise RecordingError(f"{self.path}: is the recording to judge this one by; give another name")
            self._disk, self._file = h5.begun(self.partial)
        except OSError as e:
            if self._against:
                self._against.file.close()
            raise self._unwritten(e) from None
        try:
            self._begin(created, tool, tool_version)
            self.fact(engine=engine, precision=precision, **(run or {}))
            self._publish(at_once=True)
            self._disk.check()
            _open.add(self)
            self._watch()
        except BaseException as e:
            self._close_file()
            self._disk.close()
            raise (self._unwritten(e) if isinstance(e, OSError) else e) from None

    def _unwritten(self, e: OSError) -> RecordingError:
        """The error of a failed write."""
        return RecordingError(f"{self.partial}: cannot write: {e.args[0] if len(e.args) == 1 else e}")

    def _close_file(self) -> None:
        self._groups, self._step, self._run, self._stored_ids, self._gone = {}, None, None, {}, []
        self._file.close()
        if self._against:
            self._against.file.close()

    def _begin(self, created: Optional[str], tool: str, tool_version: str) -> None:
        now = created or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        about = dict(format="vernier-checkpoint", format_version=1, complete=0, created=now, tool=tool,
                     tool_version=tool_version)
        for name, value in about.items():
            h5.put_attribute(self._file.id, name, value)
        self._run = h5.group(self._file, "run", 64)  # room for many facts
        h5.put_attribute(self._run.id, "precision", "", new=True, room=LONGEST_WORD)  # it may change until the end
        self._store_ids()

    # ---- facts about the run ---------------------------------------------------------------------

    @alone
    def fact(self, **run: h5.Fact) -> None:
        """Add facts about the run: strings and numbers by name, attributes of /run. An earlier value is replaced.

        Raises RecordingError: a value is neither a string nor a number; more than 64 facts; a name of more than 31
        bytes or a value of more than 60000; the recording is closed.
        """
        self._open("fact")
        for name, value in run.items():
            if not isinstance(value, (str, bool, int, float, np.integer, np.floating)):
                raise RecordingError(f"run: {name} is of type {type(value).__name__}; expected a string or a number")
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
                raise RecordingError(f"run: {name}: a number of more than 64 bits")
            if (not name.isprintable() or len(name.encode()) > LONGEST_WORD
                or len(str(value).encode("utf-8", "replace")) > LONGEST_FACT):
                raise RecordingError(f"run: {name[:40]}: a fact has a name of {LONGEST_WORD} printable bytes and a "
                                     f"value of {LONGEST_FACT} at most")
            h5.put_attribute(self._run.id, name, value)
        if len(self._run.attrs) > MOST_FACTS:
            raise RecordingError(f"run: more than {MOST_FACTS} attributes")
        self._publish()

    @alone
    def model(self, directory: Optional[str] = None, *, family: Optional[str] = None, config: Optional[str] = None,
              weights: Union[bool, Mapping[str, Any], Sequence[table.Row]] = True, provenance: str = "unknown") -> None:
        """Record which model runs: its config.json, and one row for every weight (digest and statistics, no values).

        directory   a model directory with config.json and safetensors files; or, without it, family and config:
        family      the model_type, "qwen2"
        config      the text of config.json
        weights     arrays by name, any shape; True: those of the directory; False: no table of weights
        provenance  "trained", "synthetic" or "unknown"

        Raises RecordingError: called twice; neither a directory nor family and config; config.json cannot be read or is
        not JSON; a safetensors file has no valid header; a weight in an array has another format than F16, BF16, F32,
        F64; the recording is closed.
        """
        self._open("model")
        if "model" in self._file:
            raise RecordingError(f"{self.path}: model: it was given before")
        if isinstance(weights, Mapping):
            for name in weights:
                if not name or len(name.encode()) > names.LONGEST_NAME or not name.isprintable():
                    raise RecordingError(f"{self.path}: model: weight {name[:60]!r}: "
                                         f"a name has 1 to {names.LONGEST_NAME} printable bytes")
        if directory is not None and not (family and config):
            config = table.config_of(directory)
            family = table.family_of(directory, config)
        if not family or not config:
            raise RecordingError(f"{self.path}: model: expected its directory, or its family and config")
        self._directory = directory
        group = h5.group(self._file, "model", 4, family=family, config=config, provenance=provenance, **(
            {} if directory is None else dict(format="safetensors", path=os.fspath(directory))))
        if isinstance(weights, Mapping):
            weights = [table.row_of(name, a) for name, a in weights.items()]
        elif isinstance(weights, bool):
            weights = [table.raw_row(*w) for w in table.stored_weights(directory)] if weights and directory else []
        table.write_table(group, list(weights))
        self._publish()

    # ---- steps -----------------------------------------------------------------------------------

    @alone
    def begin_step(self, tokens: Optional[int] = None, *, token_ids: Optional[Ids] = None,
                   positions: Optional[Ids] = None,
                   rows: Optional[Tuple[int, int]] = None) -> int:
        """Begin the next call of the engine; returns the number of its step, from 0. Step 0 is the prompt.

        tokens     how many of the token_ids given to Recorder this call takes; default: all that are left
        token_ids  the ids of this call, (T) or (B, T), if Recorder was given none
        positions  of these ids, same shape, -1 at padding; default: they continue those of the step before
        rows       (first, count): only these of the call's tokens will be put; default: all

        A recording of one call needs no begin_step: the first put begins step 0 with all token_ids.

        Raises RecordingError: no token_ids here or in Recorder, or in both; more tokens than are left; ids, positions
        and batch do not have the same shape; rows outside the call's tokens; the recording is closed.
        """
        self._going_on("begin_step")
        at = self._total
        if token_ids is not None:
            if self._ids is not None:
                raise RecordingError("begin_step: token_ids were given to Recorder already")
            ids = ids_array("token_ids", token_ids)
            where = counted(at, ids.shape) if positions is None else ids_array("positions", positions)
            if ids.min() < 0 or where.shape != ids.shape or (self._calls
                                                             and self._calls[0][0].shape[:-1] != ids.shape[:-1]):
                raise RecordingError(f"begin_step: expected ids of 0 or more, with positions and a batch of the same "
                                     f"shape; ids are {ids.shape}, "
                                     f"positions {where.shape}, and the first step's ids "
                                     f"{self._calls[0][0].shape if self._calls else ids.shape}")
            self._no_padding_alone(where)
        elif self._ids is None:
            raise RecordingError("begin_step: no token_ids, neither here nor in Recorder")
        else:
            left = self._ids.shape[-1] - at
            n = left if tokens is None else tokens
            if not 0 < n <= left:
                raise RecordingError(f"begin_step: {n} tokens, but token_ids has only {left} left")
            ids = self._ids[..., at : at + n]
            where = counted(at, ids.shape) if self._positions is None else self._positions[..., at : at + n]
        if rows is not None and not (rows[0] >= 0 and rows[1] >= 0 and sum(rows) <= ids.shape[-1]):
            raise RecordingError(f"begin_step: rows {rows}: the first and how many, of {ids.shape[-1]} tokens")
        self._calls.append((ids, where))
        self._total += ids.shape[-1]
        self.position, self.tokens = at, ids.shape[-1]
        first, self.rows = rows if rows is not None else (0, self.tokens)
        self._store_ids()
        self._new_step(position=self.position, tokens=self.tokens,
                       **({} if rows is None else dict(first_row=first, rows=self.rows)))
        return self.steps - 1

    def _new_step(self, **facts: int) -> None:
        if self._against:
            self._against.begin_step()
        self._step = h5.group(self._file, f"step.{self.steps}", **facts)
        self._groups, self._names, self._paths, self._order, self._more = {"": self._step.id}, {}, {}, 0, (0, 0)
        self.steps += 1
        self._publish()

    @alone
    def set_positions(self, positions: Ids) -> None:
        """Set the positions of this step's tokens, where they are known only after begin_step.

        Shape (T) or (B, T), as the step's token_ids; in tokens from 0, -1 at padding. Raises RecordingError: another
        shape, or no step has begun; padding in a single prompt.
        """
        where = ids_array("positions", positions)
        if not self._calls or where.shape != self._calls[-1][0].shape:
            raise RecordingError(f"{self.path}: positions of another shape than the step's tokens")
        self._no_padding_alone(where)
        self._calls[-1] = (self._calls[-1][0], where)
        self._store_ids(again=True)

    def _no_padding_alone(self, where: np.ndarray) -> None:
        if where.ndim == 1 and where.min() < 0:
            raise RecordingError(f"{self.path}: positions: -1, which is padding, in a single prompt; "
                                 f"ids and positions of (1, N) are a batch of one")

    # ---- tensors ---------------------------------------------------------------------------------

    @alone
    def put(self, name: str, array: Any, dims: Optional[str] = None, *, basis: Optional[str] = None,
            op: Optional[str] = None,
            dtype: Optional[str] = None, how: Optional[str] = None, order: Optional[int] = None,
            source_line: Optional[str] = None, stacklevel: int = 1) -> None:
        """Record one tensor of this step, in the number format that the engine computed in.

        name   the checkpoint, "layer3.q_rope" (`vernier points MODEL` lists the names), or your engine's own name,
               which `vernier compare --names` maps. A name that is nearly a checkpoint name gets a warning
        array  numpy, torch on any device, JAX, MLX, tinygrad, or lists of numbers; copied at once. Its shape is that of
               the dims: (T, H, K) for "token head dim", where T is the number of rows of this step. If token_ids are
               one prompt, (N), a batch axis of length 1 in front is dropped
        dims   one word per axis, outermost first: "token head dim"; several axes in one: "token (head dim)". Default:
               the dims that `vernier points MODEL` lists; "": a name map knows them. In dims of a checkpoint name, an
               unknown word is an error
        basis  the space that the last axes span, "head"; default: as `vernier points MODEL` lists it
        op     the operation that made the tensor, "rope"; default: as `vernier points MODEL` lists it
        dtype  "bf16" if the array is float32 with bfloat16 values; "bf16", "f8_e4m3" or "f8_e5m2" if it holds their
               bits
        how    how a recorder that watches another program got the tensor: "hook", "patched" or "recomputed"
        order  the place in execution order, from 0; default: after the tensor put last
        source_line  where the engine made the tensor, "model.py:123", which reports show; default: the line that calls
                     put
        stacklevel  which line of your program that is, as in warnings.warn: 1 calls put, 2 calls the function that
                    calls
               put, so give 2 in a function of your own around put

        Raises Diverged: the tensor is the first that differs from `against`, and stop_at_first was given; also at later
        tensors. RecordingError: the name is already in this step, or is not a valid name; the shape does not fit the
        dims, the step's tokens or an earlier step; the dims are not valid; the number format cannot be stored; the disk
        is full; the recording is closed.
        """
        self._going_on(name)
        if stacklevel < 1:
            raise RecordingError(f"{self.path}: {name}: stacklevel {stacklevel}; it counts from 1")
        if self._step is None:
            self.begin_step()
        _, point = self._place(name)
        try:
            a, word = stored(array, dtype)
        except RecordingError as e:
            raise RecordingError(f"{self.path}: {name}: {e}") from None
        row = points.known().get(point)
        if dims != "":
            self._doubt(name, stacklevel)
        axes = dims if dims is not None else self._own_axes(name, a, row)
        if axes.split()[:1] == ["batch"] and a.shape[:1] == (1,) and self._calls[-1][0].ndim == 1:
            a, axes = a[0], axes.split(None, 1)[-1]
        self._check(name, point, a, axes, row)
        for what, said, longest in (("op", op, LONGEST_WORD), ("basis", basis, LONGEST_WORD),
                                    ("source_line", source_line, LONGEST_LINE)):
            if said and (not said.isprintable() or len(said.encode()) > longest):
                raise RecordingError(f"{self.path}: {name}: {what} has {longest} printable bytes at most")
        if order is not None and order < 0:
            raise RecordingError(f"{self.path}: {name}: order {order}; it counts from 0")
        place = self._order if order is None else order
        facts: Dict[str, Optional[h5.Fact]] = dict(
            order=place, point=point if row else None, op=op or (row[3] if row else None),
            basis=basis or (row[2] if row and row[1] in (axes, axes.replace("batch ", "", 1)) else None),
            axes=" ".join(axes.split()) or None,
            dtype=word if word in SAID else None, how=how, source_line=source_line
            or line_of_caller(self._folder, stacklevel), digest=digest_of(a))
        self._order = max(self._order, place) + 1
        self._keep(name, a, word, facts)

    def _keep(self, name: str, a: np.ndarray, word: str, facts: Dict[str, Optional[h5.Fact]]) -> None:
        """Write a tensor, or judge it by the reference, which may leave it out."""
        layer, point = self._place(name)
        if self.statistics and word != "i32":
            facts.update(statistics(a, word))
        if self._against:
            kept = a.copy()  # it may be written later, after the caller changed it
            agrees, line = self._against.judge(self.steps - 1, names.path_of(name), name, kept, word,
                                               str(facts["digest"]))
            self._against.put(self, layer, self.steps - 1, name, agrees, line,
                              lambda: self._write(name, point, kept, facts))
        else:
            self._write(name, point, a, facts)
        self._names[name] = a.shape
        self._publish()
        if self._stop_at_first and self.differs is not None:
            self._stopped = True
            self._raise_diverged()

    def _raise_diverged(self) -> None:
        assert self._against and self.differs is not None
        raise Diverged(self.differs, self.path, self._against.path)

    def _write(self, name: str, point: str, a: np.ndarray, facts: Mapping[str, Optional[h5.Fact]]) -> None:
        try:
            d = h5.put_array(self._group(name), point, a, self._disk)
            self._paths[name] = self._place_in_step(name)
        except OSError as e:
            raise RecordingError(f"{self.path}: {name}: cannot write: {e}") from None
        for key, value in facts.items():
            if value is not None:
                h5.put_attribute(d, key, value, new=True)

    @property
    def differs(self) -> Optional[str]:
        """The first tensor that differed from the recording `against`, "step.2/layer3.q_rope"; None if none
        differed."""
        return self._against.first if self._against else None

    @alone
    def alias(self, name: str, of: str) -> None:
        """Give a tensor of this step a second name: alias("layer1.input", "layer0.output").

        Raises RecordingError: `of` is not recorded in this step; `name` is, or is not a valid name; the recording is
        closed.
        """
        self._going_on(name)
        self._place(name)
        if not self.steps:
            raise RecordingError(f"{self.path}: {name}: nothing is recorded yet; put {of} first, then its second name")
        if of not in self._names:
            raise RecordingError(f"{self.path}: {name}: a second name of {of}, which step {self.steps - 1} does not "
                                 f"have{hint(of, self._names)}")
        self._doubt(name)
        if not (self._against and self._against.alias(name, of)):
            self._link(name, of)
        self._names[name] = self._names[of]
        self._publish()

    def _link(self, name: str, of: str) -> None:
        group = self._group(name)
        self._paths[name] = self._place_in_step(name)
        group.links.create_hard(names.place_of(name)[1].encode(), self._step.id, self._paths[of].encode())

    def _place(self, name: str) -> Tuple[int, str]:
        """(layer, point) of a name. Raises RecordingError: the name is already used."""
        wrong = f"{name}: recorded twice in step {self.steps - 1}" if name in self._names else names.wrong_with(name)
        if wrong:
            raise RecordingError(f"{self.path}: {wrong}")
        return names.place_of(name)

    def _doubt(self, name: str, stacklevel: int = 1) -> None:
        """Warn, once per point, about a name that resembles a checkpoint name: no checkpoint would be compared with
        it."""
        meant = names.meant_by(name)
        if meant and meant[0] not in self._doubted:
            self._doubted.add(meant[0])
            warn(f"{self.path}: {name}: no checkpoint has this name; did you mean {meant[1]}?",
                          stacklevel=3 + stacklevel)

    def _open(self, what: str) -> None:
        if not self._disk.ours:
            raise RecordingError(f"{self.path}: {what}: this process was forked from the one that records")
        if not self._file.id.valid:
            raise RecordingError(f"{self.path}: {what}: the recording is closed")

    def _going_on(self, what: str) -> None:
        self._open(what)
        if self._stopped:
            self._raise_diverged()

    def _group(self, name: str) -> Any:
        """The group of the step that gets this name. Names outside layers fill one after the other: the step's own, and
        those that continue it (`vernier help checkpoint.md`, Names)."""
        head = names.path_of(name).rpartition("/")[0]
        if head:
            if head not in self._groups:
                self._groups[head] = h5.put_group(self._step.id, head, 40)
            return self._groups[head]
        number, held = self._more
        if held == MOST_NAMES:
            number, held = number + 1, 0
            while f"more.{number}" in self._names:  # a tensor may have that name
                number += 1
            group = h5.put_group(self._step.id, f"more.{number}", 40)
            h5.put_attribute(group, "continues", 1, new=True)
            self._groups[""] = group
        self._more = number, held + 1
        return self._groups[""]

    def _place_in_step(self, name: str) -> str:
        """The path of a name that was put last, in the group of its step."""
        number, path = self._more[0], names.path_of(name)
        return path if "/" in path or not number else f"more.{number}/{path}"

    # ---- what is on disk -------------------------------------------------------------------------

    def _publish(self, at_once: bool = False) -> None:
        """Write to disk what is finished. Afterwards the file can be opened, whatever happens to this process."""
        if at_once or time.monotonic() - self._published > PUBLISH_EVERY:
            h5f.flush(self._file.id, h5f.SCOPE_GLOBAL)
            if self._disk.ends_in_chunk:
                self._gone.append(h5.put_spacer(self._run.id))
                h5f.flush(self._file.id, h5f.SCOPE_GLOBAL)
            self._disk.publish()
            self._published, self._changed = time.monotonic(), False

    def _watch(self) -> None:
        """Start the thread that publishes in a silence. Without it, the next call does."""
        thread = threading.Thread(target=_publish_in_silence, args=(weakref.ref(self), self._ended), daemon=True)
        with contextlib.suppress(RuntimeError):  # no more threads
            thread.start()

    def _publish_rest(self) -> float:
        """Publish what has waited for PUBLISH_EVERY. Returns the seconds until there may be something again."""
        with self._lock:
            if not self._changed or not self._file.id.valid:
                return PUBLISH_EVERY
            try:
                self._publish()
            except (OSError, RuntimeError) as e:
                self._disk.refuse(OSError(str(e)))  # the next call reports it
                self._changed = False
            return max(0.0, self._published + PUBLISH_EVERY - time.monotonic()) if self._changed else PUBLISH_EVERY

    def _store_ids(self, again: bool = False) -> None:
        try:
            self._write_ids(again)
        except OSError as e:
            raise self._unwritten(e) from None

    def _write_ids(self, again: bool) -> None:
        """Store ids and positions: those given to Recorder at once, else those of the calls so far, in datasets that
        grow in their place. (Only the first call says whether they are a batch.)"""
        if self._ids is not None:
            if not self._stored_ids:
                where = counted(0, self._ids.shape) if self._positions is None else self._positions
                for name, a in (("token_ids", self._ids), ("positions", where)):
                    self._stored_ids[name] = h5.put_array(self._run.id, name, np.ascontiguousarray(a), self._disk)
            if not again:
                return
        rows = self._calls[0][0].shape[:-1] if self._calls else ()
        for i, name in enumerate(("token_ids", "positions")):
            d = self._stored_ids.get(name)
            if d is None or len(d.shape) != len(rows) + 1:
                self._drop_ids(name)
                d = self._stored_ids[name] = h5.put_growing(self._run.id, name, rows)
            if self._calls:
                new = np.ascontiguousarray(self._calls[-1][i], "<i4")
                if d.shape[-1] < self._total:
                    d.set_extent((*rows, self._total))
                place = d.get_space()
                place.select_hyperslab((0,) * len(rows) + (self._total - new.shape[-1],), new.shape)
                d.write(h5s.create_simple(new.shape), place, new)

    def _drop_ids(self, name: str) -> None:
        if name in self._stored_ids:
            self._run.id.unlink(name.encode())
            self._gone.append(self._stored_ids.pop(name))

    def _own_axes(self, name: str, a: np.ndarray, row: Optional[points.Row]) -> str:
        if row is None:
            raise RecordingError(f"{self.path}: {name}: not a checkpoint that vernier knows, so it needs dims: "
                                 f"\"token head dim\"")
        n = len(row[1].split())
        if a.ndim not in (n, n + 1):
            raise RecordingError(f"{self.path}: {name}: rank {a.ndim}, expected {n} ({row[1]})")
        return row[1] if a.ndim == n else "batch " + row[1]

    def _prompts(self) -> int:
        """The number of prompts that share one row of ids: the positions of each begin at 0."""
        return sum(int((c[1] == 0).sum()) for c in self._calls if c[1].ndim == 1)

    def _check(self, name: str, point: str, a: np.ndarray, axes: str, row: Optional[points.Row]) -> None:
        words, what = names.words_of(axes), f"{self.path}: {name}"
        if not axes and not row:  # a name map knows them
            words = [f"n{i}" for i in range(a.ndim)]
        if len(words) != a.ndim or not words or len(set(words)) != len(words):
            raise RecordingError(f"{what}: dims '{axes}' for an array of shape {a.shape}: one word per axis, "
                                 "no word twice")
        if a.size == 0 or a.ndim > MOST_AXES:
            raise RecordingError(f"{what}: shape {a.shape}; no empty axis and at most {MOST_AXES} axes")
        if len(" ".join(axes.split()).encode()) > LONGEST_DIMS:
            raise RecordingError(f"{what}: dims of more than {LONGEST_DIMS} bytes")
        if axes != axes.lower() or re.search(r"[()]", re.sub(r"\([^()]*\)", "", axes)):
            raise RecordingError(f"{what}: dims '{axes}': expected words in small letters, several of one axis in "
                                 f"brackets")
        # compare identifies the axes of a checkpoint by these words
        for word in re.findall(r"[^\s()]+", axes) if row else ():
            if not word.isdecimal() and word not in points.words():
                has = hint(word, points.words()) or f"; {name} has '{row[1]}'"
                raise RecordingError(f"{what}: dims '{axes}': unknown axis '{word}'{has}")
        # engines may compute what is behind the layers for the last token only
        few = (1, self._prompts()) if point in points.BEHIND else ()
        for word, size in zip(words, a.shape):
            expected = {"token": self.rows, "batch": (self._calls[-1][0].shape[:-1] or (1,))[0]}.get(word, size)
            packed = word == "batch" and size == self._prompts()  # a state of each prompt
            if size != expected and not packed and not (word == "token" and size in few):
                raise RecordingError(f"{what}: shape {a.shape} as '{axes}': {size} {word}, expected {expected}")
            if word in SAME and self._sizes.setdefault(word, (size, name))[0] != size:
                first = self._sizes[word]
                raise RecordingError(f"{what}: shape {a.shape} as '{axes}': {size} {word}, "
                                     f"and {first[1]} has {first[0]}")
        fixed = tuple(s for w, s in zip(words, a.shape) if axes and w not in ("token", "key", "block", "slot"))
        if self._shapes.setdefault(name, fixed) != fixed:
            raise RecordingError(f"{what}: shape {a.shape} as '{axes}' is not that of an earlier step")

    # ---- the end ---------------------------------------------------------------------------------

    def _finish_ids(self, well: bool) -> None:
        calls = self._calls
        ids = np.concatenate([c[0] for c in calls], -1) if calls else np.zeros(0, "<i4")
        where = np.concatenate([c[1] for c in calls], -1) if calls else np.zeros(0, "<i4")
        if well and not calls:
            raise RecordingError(f"{self.path}: nothing was recorded")
        if well and self._ids is not None and self._ids.shape != ids.shape and not self._stopped:
            raise RecordingError(f"{self.path}: the steps have {ids.shape[-1]} tokens, token_ids {self._ids.shape[-1]}")
        for name, a in (("token_ids", ids), ("positions", where)):
            d = self._stored_ids[name]
            if d.shape != a.shape:  # not all of the ids that were given
                self._drop_ids(name)
                d = h5.put_array(self._run.id, name, np.ascontiguousarray(a, "<i4"), self._disk)
            h5.put_digest(d, a.astype("<i4"))
        text = texts.of_tokens(self._directory, ids.reshape(-1)) if well and self._directory else None
        if text:
            h5.put_lines(self._run, "token_text", text)

    def _finish(self, well: bool) -> None:
        self._finish_ids(well)
        if self._against:
            self._against.finish(self._run)
            for key, fact in self._against.facts().items():
                h5.put_attribute(self._run.id, key, fact)
            if self._stopped:
                h5.put_attribute(self._run.id, "stopped", str(self.differs))
        if well:
            h5.put_attribute(self._file.id, "complete", 1)

    @alone
    def close(self, well: bool = True) -> None:
        """End the recording; the end of a `with` block does it. A second call does nothing.

        well  True: the recording is complete, and PATH.partial becomes PATH. False: PATH.partial stays, marked
              incomplete

        Raises RecordingError: nothing was recorded; the steps took fewer tokens than token_ids has; the disk is full;
        without force, another program has created PATH in the meantime. PATH.partial stays then. In a process that was
        forked from the one that records, this does nothing.
        """
        if not self._file.id.valid:
            return
        if not self._disk.ours:  # HDF5 would write what it keeps when Python has ended, and so crash this process
            self._close_file()
            return
        self._ended.set()
        good = False
        try:
            try:
                self._finish(well)
                good = well
            finally:
                self._close_file()
                other = good and self._force and os.path.exists(self.path) and not h5.is_replaceable(self.path)
                self._disk.end(self.path if good and not other else None, self._force)
                if other:
                    raise RecordingError(f"{self.path}: is not a recording; force=True replaces only recordings")
        except OSError as e:
            raise self._unwritten(e) from None

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is None or (issubclass(kind, Diverged) and self._stopped):  # raised by this recorder, not by another
            self.close()
            return
        try:
            self.close(well=False)
        except Exception:  # the first error is the one to report
            pass
