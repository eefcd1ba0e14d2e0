"""onnx.py: runs an ONNX model with every tensor that has a checkpoint's place as an output, and records them.

    from vernier_parity import onnx

    onnx.run("model.onnx", {"input_ids": ids}, "cand.h5")                       # ONNX Runtime
    onnx.run("model.onnx", {"input_ids": ids}, "cand.h5", engine="openvino")    # OpenVINO

Then `vernier capture ref MODEL --like cand.h5 -o ref.h5` and `vernier compare ref.h5 cand.h5 --model MODEL`. Graphs of
torch.onnx.export(dynamo=True) and of the builder of ONNX Runtime GenAI are known, by the modules that their nodes name;
config.json is read from the model's folder. An output more can keep an engine from fusing operations; so if the logits
change when nothing else is an output, a warning says so. Weights of MatMulNBits: `python -m vernier_parity dequantize`.
"""

import ast
import json
import os
import re
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np

from .h5 import Fact
from .named import Names, ids_of, width_of, word_of
from .numbers import RecordingError
from .printed import warn
from .recorder import Recorder

Runner = Callable[[List[str], Mapping[str, np.ndarray]], Dict[str, np.ndarray]]
SKIPS = ("SkipSimplifiedLayerNormalization", "SkipLayerNormalization")  # their fourth output is the residual stream


def _scopes(node: Any) -> List[str]:
    """The modules that a node belongs to, outermost first: from the exporter of torch, or from its name."""
    said = [p.value for p in node.metadata_props if p.key == "pkg.torch.onnx.name_scopes"]
    if said:
        return [s for s in ast.literal_eval(said[0])[1:-1] if s]
    path = node.name.strip("/").replace("/", ".").rpartition(".")[0].replace(".attn.", ".self_attn.")
    return [path] if path.startswith("model.") or path == "lm_head" else []


class _Values:
    """Which values of a graph each module takes and returns."""

    def __init__(self, graph: Any) -> None:
        self.taken: Dict[str, str] = {}
        self.made: Dict[str, str] = {}
        self.rotated: Dict[str, List[str]] = {}  # by attention: queries, keys
        maker = {out: node for node in graph.node for out in node.output}
        weights = {t.name for t in graph.initializer}
        for node in graph.node:
            scopes = _scopes(node)
            skips = node.op_type in SKIPS
            for scope in scopes:
                given = node.output[3] if skips and len(node.output) > 3 else None if skips else next(
                    (x for x in node.input if x and x not in weights), None)
                if given:
                    self.taken.setdefault(scope, given)
                if node.op_type not in ("Constant", "Split", "Reshape"):
                    self.made[scope] = node.output[0]
            if scopes and scopes[-1].endswith("self_attn") and node.op_type == "Add":  # x * cos + turned x * sin
                if all(x in maker and maker[x].op_type == "Mul" for x in node.input):
                    self.rotated.setdefault(scopes[-1], []).append(node.output[0])

    def names(self) -> List[str]:
        found = [*self.taken.values(), *self.made.values(), *(x for xs in self.rotated.values() for x in xs[:2])]
        return list(dict.fromkeys(found))

    def record(self, names: Names, values: Mapping[str, np.ndarray]) -> None:
        for scope in dict.fromkeys([*self.made, *self.taken]):
            taken, made = (values.get(of.get(scope, "")) for of in (self.taken, self.made))
            at = re.search(r"layers\.(\d+)\.(\w+)(?:\.(\w+))?$", scope)
            if at and at.group(2) == "final_norm_layernorm":
                names.took("model.norm", None, made)
            elif at and at.group(3) == "qkv_proj":
                names.fused(int(at.group(1)), made)
            else:
                names.took(scope, taken, made)
            if at and at.group(2) == "input_layernorm" and int(at.group(1)) and taken is not None:
                names.put(f"layer{at.group(1)}.input", taken, "batch token hidden")
        for scope, found in self.rotated.items():
            for point, value in zip(("q_rope", "k_rope"), found):
                names.rotated(int(scope.split(".")[-2]), point, values[value])


def _feeds(given: Mapping[str, Any], inputs: Mapping[str, Tuple[Any, np.dtype]],
           width: int) -> Dict[str, np.ndarray]:
    """The inputs of a first call: what is not given is a mask of ones, positions from 0, or an empty cache. width: of
    a head."""
    feeds = {k: np.asarray(v) for k, v in given.items()}
    ids = feeds["input_ids"]
    for name, (shape, kind) in inputs.items():
        if name == "position_ids" and name not in feeds:
            feeds[name] = np.broadcast_to(np.arange(ids.shape[1], dtype=kind), ids.shape)
        elif name not in feeds:
            sizes = [ids.shape[0], *(n if isinstance(n, int) and n > 0 else 0 for n in shape[1:-1]),
                     shape[-1] if isinstance(shape[-1], int) and shape[-1] > 0 else width]
            feeds[name] = np.ones(ids.shape, kind) if len(shape) == 2 else np.zeros(sizes, kind)
        feeds[name] = feeds[name].astype(kind)
    return feeds


def _onnxruntime(model: Any, options: Mapping[str, Any], facts: Dict[str, Fact]) -> Tuple[Runner, Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(model, **{"providers": ["CPUExecutionProvider"], **options})
    kinds = {"tensor(float)": "f4", "tensor(float16)": "f2", "tensor(int64)": "i8", "tensor(int32)": "i4",
             "tensor(bool)": "?"}
    facts.update(engine="onnxruntime", engine_version=onnxruntime.__version__)
    inputs = {i.name: (i.shape, np.dtype(kinds.get(i.type, "f4"))) for i in session.get_inputs()}
    return lambda names, feeds: dict(zip(names, session.run(names, feeds))), inputs


def _openvino(model: Any, options: Mapping[str, Any], facts: Dict[str, Fact]) -> Tuple[Runner, Any]:
    import openvino

    read = openvino.Core().read_model(model)
    compiled = openvino.compile_model(read, "CPU", dict(options))
    hint = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    facts.update(engine="openvino", engine_version=openvino.__version__, inference_precision=hint)
    inputs = {i.any_name: ([d.get_length() if d.is_static else 0 for d in i.partial_shape], np.dtype(
        i.element_type.to_dtype())) for i in compiled.inputs}

    def run_it(names: List[str], feeds: Mapping[str, np.ndarray]) -> Dict[str, np.ndarray]:
        out = compiled(dict(feeds))
        return {n: out[o] for o in compiled.outputs for n in o.names if n in names}

    return run_it, inputs


def _inputs_format(graph: Any) -> Tuple[str, List[int]]:
    """The format to which all products with weights round their inputs, as a role of the precision: that of
    MatMulNBits with accuracy_level 4 and blocks of 32; "" where some do otherwise. Also the accuracy levels."""
    weights = {t.name for t in graph.initializer}
    how = [{a.name: a.i for a in n.attribute} if n.op_type == "MatMulNBits" else {} for n in graph.node
           if n.op_type == "MatMulNBits" or (n.op_type in ("MatMul", "Gemm") and n.input[1] in weights)]
    levels = [h.get("accuracy_level", 0) for h in how]
    alike = all(h.get("accuracy_level") == 4 and h.get("block_size") == 32 for h in how)
    return ",linear=q8-inputs" if how and alike else "", levels


def run(model: Union[str, "os.PathLike[str]"], feeds: Mapping[str, Any], path: str, *, engine: str = "onnxruntime",
        options: Optional[Mapping[str, Any]] = None, force: bool = False, **run: Fact) -> np.ndarray:
    """Run a model once and record it; returns the logits.

    model    the .onnx file
    feeds    arrays by the names of inputs; input_ids (B, T) at least: a mask of ones, positions from 0 and an empty
             cache are made up
    path     the recording. force: replace an existing one
    engine   "onnxruntime" or "openvino"
    options  of the engine: arguments of InferenceSession, or the properties of OpenVINO's compile_model
    run      your own facts about the run

    Raises RecordingError: no input_ids; no node that names a module; as Recorder.
    """
    import onnx

    if "input_ids" not in feeds:
        raise RecordingError(f"{path}: feeds has no input_ids")
    engines = {"onnxruntime": _onnxruntime, "openvino": _openvino}
    if engine not in engines:
        raise RecordingError(f"{path}: engine {engine!r}; expected {' or '.join(engines)}")
    graph = onnx.load(os.fspath(model))
    values = _Values(graph.graph)
    known = {o.name for o in graph.graph.output}
    if not values.made:
        raise RecordingError(f"{path}: no node of {os.fspath(model)} names a module, so no tensor has a known place")
    config: Dict[str, Any] = {}
    beside = os.path.join(os.path.dirname(os.fspath(model)), "config.json")
    if os.path.exists(beside):
        with open(beside, encoding="utf-8") as f:
            config = json.load(f)
    extra = [v for v in values.names() if v not in known]
    with tempfile.TemporaryDirectory() as folder:
        facts: Dict[str, Fact] = {}
        plain, inputs = engines[engine](os.fspath(model), options or {}, facts)
        given = _feeds(feeds, inputs, width_of(config))
        graph.graph.output.extend(onnx.helper.make_empty_tensor_value_info(v) for v in extra)
        every = os.path.join(folder, "model.onnx")
        onnx.save(graph, every, save_as_external_data=True, location="model.data")
        alone = plain(["logits"], given)["logits"]
        found = engines[engine](every, options or {}, facts)[0](["logits", *extra, *(known - {"logits"})], given)
    if not np.array_equal(alone, found["logits"], equal_nan=True):
        apart = float(np.abs(alone.astype("f8") - found["logits"]).max())
        facts["logits_without_recording"] = f"differ by up to {apart:.3g}"
        warn(f"vernier_parity: {path}: the logits differ by up to {apart:.3g} when nothing else is an output: the "
             f"engine fuses operations then, and what is recorded is another run", stacklevel=3)
    hint = facts.get("inference_precision")
    if hint in ("bf16", "f16") and "INFERENCE_PRECISION_HINT" not in (options or {}) and found["logits"].dtype == "f4":
        warn(f"vernier_parity: {path}: OpenVINO computes in {hint}, though the model is in float32 and no precision "
             f"was asked for; options={{'INFERENCE_PRECISION_HINT': 'f32'}} makes it float32", stacklevel=3)
    inputs_format, levels = _inputs_format(graph.graph)
    if 4 in levels and not inputs_format:
        warn(f"vernier_parity: {path}: MatMulNBits with accuracy_level 4 rounds its inputs to int8; with level 1 it "
             f"computes in float32", stacklevel=3)
    facts["precision"] = word_of(found["logits"].dtype) + inputs_format
    facts.update(run)
    precision = str(facts.pop("precision"))
    with Recorder(path, engine=str(facts.pop("engine")), precision=precision, token_ids=ids_of(given["input_ids"]),
                  run=facts, force=force) as rec:
        names = Names(rec, config)
        rec.begin_step()
        values.record(names, found)
        names.put("logits", found["logits"], "batch token vocab")
    return alone
