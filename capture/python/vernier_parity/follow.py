"""follow.py: records the calls of any PyTorch module: the results of its leaves, and the plan of the run."""

import contextlib
import importlib
import json
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

import torch

from . import about, calls, globs, h5, rows, sources
from .compute import differing
from .node_recorder import Digests, NodeRecorder, ids_in
from .numbers import RecordingError
from .progress import progress
from .tracer import Node, Trace, named, plain
from .transplant import Transplants
from .watch import COMPILED, Session, block

Functions = Union[None, str, Sequence[str]]


class Following(Session):
    """The object that record() returns for any model: it writes what a Trace sees."""

    def __init__(self, model: Any, path: str, functions: Functions, keep: bool = False,
                 replace: Optional[Mapping[str, str]] = None) -> None:
        super().__init__(path)
        self.functions = globs.listed(functions or [])
        self.objects, self.codes = calls.Objects(), []  # type: ignore[var-annotated]
        self.precision: Optional[str] = None
        self.formats: set = set()  # type: ignore[type-arg]
        self.names: List[str] = []
        self.order = 0
        self.zero: List[str] = []  # buffers that the run changed, which were 0 before it
        self.test, self.expected = keep, 0  # expected: nodes, for the progress
        self.sources: List[Dict[str, Any]] = []  # see sources.py
        self.rest: Dict[str, Any] = {}  # the weights of which the files have not all numbers
        self.rows: List[rows.Row] = []
        self.not_reproduced: List[str] = []  # nodes whose bits do not follow from the plan's edges, if that was tested
        self.trace = Trace(model, self.watch, keep, on_call=self._call, on_node=self._node, on_end=self._end,
                           on_state=self._state)
        self.transplants: Any = None
        if replace:
            self.transplants = self.trace.replace = Transplants(replace, path)

    def attach(self) -> Any:
        return self.trace

    def wants(self, n: Node) -> bool:
        """Whether the results of this node are recorded: of leaves always, of functions if asked."""
        if n.leaf or n.op == "result":
            return True
        return not n.cast and not n.empty and any(f == "all" or globs.match(f, name)
                                                     for f in self.functions for name in (n.name, n.own) if name)

    def _call(self, step: int, path: str, given: Dict[str, Any]) -> None:
        self.watch.begins(given)
        self.codes.append(json.dumps(dict(step=step, path=path, arguments={
            k: calls.coded(x, f"in.{k}", self.objects) for k, x in given.items()})))
        self.recorder.begin_call(ids_in(given))
        self.order = 0
        for name, t in named(given, "in"):
            if plain(t):
                self._put(name, t, "input")

    def _state(self, name: str, t: Any) -> None:
        """A buffer's numbers before the run changed them; the name alone if they are 0, as of a new cache."""
        if not bool(t.any()):
            self.zero.append(name)
        elif len(name.encode()) <= calls.LONGEST:
            self._put(calls.STATE + name, t, "input")

    def _put(self, name: str, t: Any, op: str, axes: str = "") -> None:
        if self.recorder.put_result(name, t, op, self.order, axes):
            self.order += 1
            if self.trace.step == 0:
                self.names.append(name)

    def _node(self, n: Node, results: List[Any]) -> None:
        progress.at(n.index + 1, self.expected)
        if self.precision is None and results:
            device = results[0].device
            self.precision = about.call_word(device) or about.plain_word(self.trace.model)
            self.recorder.fact(device=about.device_name(device))
        if self.wants(n):
            for name, t in zip(n.names(), results):
                self.formats.add(t.dtype)
                self._put(name, t, n.op, n.axes)

    def _end(self, out: Any) -> None:
        self.watch.cache(out)
        found = calls.returned(out, self.objects)
        if found:
            self.codes[-1] = json.dumps({**json.loads(self.codes[-1]), "returned": dict(found)})

    def finish(self) -> None:
        """Write the plan and the facts that are known only now."""
        if self.transplants:
            self.transplants.finish()
        self.trace.states()
        if self.test:
            progress.begin("the edges of its plan")
            self.not_reproduced = differing(self.trace)
        if self.zero:
            self.codes[0] = json.dumps(dict(json.loads(self.codes[0]), zero=self.zero))
        self.rows = rows.rows_of(self.trace)
        self.recorder.put_plan(lambda: dict(nodes=rows.lines_of(self.rows), calls=self.codes,
                                            modules=[json.dumps(r) for r in rows.modules_of(self.trace.model)],
                                            sources=[json.dumps(x) for x in self.sources]))
        facts: Dict[str, h5.Fact] = dict(nodes=len(self.trace.nodes))
        if self.precision:
            facts["precision"] = about.run_word(self.precision, self.formats)
        if self.trace.leaks:
            facts["values_read"] = ", ".join(f"{k} {n} times" for k, n in self.trace.leaks.most_common(20))
        if self.not_reproduced:
            facts["not_reproduced"] = f"{len(self.not_reproduced)} nodes: {', '.join(self.not_reproduced)}"[:2000]
        if self.trace.events["unseen write"]:
            facts["unseen_writes"] = self.trace.events["unseen write"]
        self.recorder.fact(**facts)


def refuse_compiled(model: Any, path: str) -> None:
    for m in model.modules():
        if type(m).__name__ == "OptimizedModule" or getattr(m, "_compiled_call_impl", None) is not None:
            raise RecordingError(f"{path}: {COMPILED}")


@contextlib.contextmanager
def session(model: Any, path: str, functions: Functions, *, weights: bool, run: Mapping[str, h5.Fact],
            keep: bool = False, digests: bool = False, test: bool = True,
            replace: Optional[Mapping[str, str]] = None, **how: Any) -> Iterator[Following]:
    """See vernier_parity.record(). keep: as of Trace; digests: write no file, keep the digests alone; test: whether the
    plan's edges give the bits of the run."""
    refuse_compiled(model, path)
    said: Dict[str, Any] = dict(engine="pytorch", precision=about.plain_word(model),
                                model_class=f"{type(model).__module__}.{type(model).__qualname__}")
    wide = sum(getattr(t, "dtype", None) == torch.float32 for t in model.state_dict().values())
    if wide:
        said["float32_weights"] = wide
    home = type(model).__module__.partition(".")[0]
    if home in ("transformers", "diffusers", "timm"):
        said["engine_version"] = f"{home} {importlib.import_module(home).__version__}"
    if functions is not None:
        said["functions"] = functions if isinstance(functions, str) else " ".join(functions)
    if replace:
        said["replaced"] = " ".join(sorted(replace))
    s = Following(model, path, functions, keep, replace)
    s.test = keep and test
    with (contextlib.nullcontext(Digests()) if digests else
          about.recording(NodeRecorder, path, said, model, run, **how)) as s.recorder:
        directory = about.directory_of(model) if weights and hasattr(model, "config") else None
        if directory:
            s.sources, s.rest = sources.of_model(model, directory)
        if not digests:
            s.recorder.model(**about.model_facts(model, type(model).__name__, weights)[0])
        if "precision" in run:
            s.precision = str(run["precision"])
        with block(s):
            yield s
