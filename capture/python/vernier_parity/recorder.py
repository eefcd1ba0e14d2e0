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
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Set, Tuple, Type, TypeVar, Union, cast

import numpy as np
from h5py import h5f

from . import h5, names, points, texts, weights as table
from .against import Against
from .dims import Dims
from .globs import hint
from .numbers import SAID, Diverged, Ids, RecordingError, digest_of, statistics, stored
from .printed import warn
from .source_line import LONGEST as LONGEST_LINE, source_line as line_of_caller
from .tokens import Tokens

MOST_FACTS = 64
# bytes; HDF5 stores at most 64 KiB of attributes with an object
LONGEST_WORD, LONGEST_FACT = 31, 60000
RESERVED = {"engine": "give the argument engine=", "precision": "give the argument precision=",
            "tokens": "give the argument token_ids=", "positions": "give the argument positions="}
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
                       be put after that; at the end of the block the recording is complete, and the fact `stopped`
                       names the tensor

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
        self._ids, self._dims = Tokens(self.path, token_ids, positions), Dims(self.path)
        self._step: Any = None
        self._groups: Dict[str, Any] = {}
        self._names: Dict[str, Tuple[str, ...]] = {}
        self._order = self._facts = self.steps = self.position = self.tokens = self.rows = 0
        self._force, self._published, self._spacers = force, 0.0, []
        self._lock, self._ended, self._changed = threading.RLock(), threading.Event(), False
        self._directory: Optional[str] = None  # the model's
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
        self._groups, self._step, self._run, self._spacers = {}, None, None, []
        self._ids.close()
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
        call = self._ids.begin(tokens, token_ids, positions)
        at, n = self._ids.total, call.token_ids.shape[-1]
        if rows is not None and not (rows[0] >= 0 and rows[1] >= 0 and sum(rows) <= n):
            raise RecordingError(f"begin_step: rows {rows}: the first and how many, of {n} tokens")
        self._ids.add(call)
        self.position, self.tokens = at, n
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
        self._ids.set_positions(positions)
        self._store_ids(again=True)

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
        stacklevel  which line of your program that is, as in warnings.warn: 1 calls put; give 2 in a function of your
                    own around put

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
        a, axes = self._dims.of(name, a, dims, row, self._ids, self.rows)
        for what, said, longest in (("op", op, LONGEST_WORD), ("basis", basis, LONGEST_WORD),
                                    ("source_line", source_line, LONGEST_LINE)):
            if said and (not said.isprintable() or len(said.encode()) > longest):
                raise RecordingError(f"{self.path}: {name}: {what} has {longest} printable bytes at most")
        if order is not None and order < 0:
            raise RecordingError(f"{self.path}: {name}: order {order}; it counts from 0")
        place = self._order if order is None else order
        facts: Dict[str, Optional[h5.Fact]] = dict(
            order=place, point=point if row else None, op=op or (row.op if row else None),
            basis=basis or (row.basis if row and row.axes in (axes, axes.replace("batch ", "", 1)) else None),
            axes=" ".join(axes.split()) or None,
            dtype=word if word in SAID else None, how=how, source_line=source_line
            or line_of_caller(self._folder, stacklevel), digest=digest_of(a))
        self._order = max(self._order, place) + 1
        self._keep(name, a, word, facts)

    def _keep(self, name: str, a: np.ndarray, word: str, facts: Dict[str, Optional[h5.Fact]]) -> None:
        """Write a tensor, or judge it by the reference, which may leave it out."""
        _, point = self._place(name)
        if self.statistics and word != "i32":
            facts.update(statistics(a, word))
        if self._against:
            kept = a.copy()  # it may be written later, after the caller changed it
            self._against.put(self, name, kept, word, str(facts["digest"]),
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
            group, path = self._group(name)
            d = h5.put_array(group, point, a, self._disk)
            self._paths[name] = path
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
        group, self._paths[name] = self._group(name)
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

    def _group(self, name: str) -> Tuple[Any, str]:
        """(the group that gets this name, the path that it has then in the group of the step). Names outside layers
        fill one group after the other: the step's own, and those that continue it (`vernier help checkpoint.md`,
        Names)."""
        path = names.path_of(name)
        head = path.rpartition("/")[0]
        if head:
            if head not in self._groups:
                self._groups[head] = h5.put_group(self._step.id, head, 40)
            return self._groups[head], path
        number, held = self._more
        if held == MOST_NAMES:
            number, held = number + 1, 0
            while f"more.{number}" in self._names:  # a tensor may have that name
                number += 1
            group = h5.put_group(self._step.id, f"more.{number}", 40)
            h5.put_attribute(group, "continues", 1, new=True)
            self._groups[""] = group
        self._more = number, held + 1
        return self._groups[""], f"more.{number}/{path}" if number else path

    # ---- what is on disk -------------------------------------------------------------------------

    def _publish(self, at_once: bool = False) -> None:
        """Write to disk what is finished. Afterwards the file can be opened, whatever happens to this process."""
        if at_once or time.monotonic() - self._published > PUBLISH_EVERY:
            h5f.flush(self._file.id, h5f.SCOPE_GLOBAL)
            if self._disk.ends_in_chunk:
                self._spacers.append(h5.put_spacer(self._run.id))
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
            self._ids.store(self._run, self._disk, again)
        except OSError as e:
            raise self._unwritten(e) from None

    # ---- the end ---------------------------------------------------------------------------------

    def _finish_ids(self, well: bool) -> None:
        tokens = self._ids
        if well and not tokens.calls:
            raise RecordingError(f"{self.path}: nothing was recorded")
        if well and tokens.given is not None and tokens.given.shape[-1] != tokens.total and not self._stopped:
            raise RecordingError(f"{self.path}: the steps have {tokens.total} tokens, token_ids "
                                 f"{tokens.given.shape[-1]}")
        ids = tokens.finish(self._run, self._disk).reshape(-1)
        text = texts.of_tokens(self._directory, ids) if well and self._directory else None
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
