"""quantised.py: weights that are held in another form than they are computed with, as plain numbers.

    python -m vernier_parity dequantize SOURCE DIR      # an MLX or ONNX model, or a HuggingFace directory
    vernier_parity.record(model, "cand.h5", weights="DIR")   # a model in memory: torchao, quanto, bitsandbytes

DIR becomes a model directory that `vernier capture ref` reads: the reference then has the engine's own weights, so that
only mistakes of computing remain. The numbers are those of the formats' definitions, in float32 unless the weight says
otherwise.
"""

import glob
import json
import os
import re
import shutil
import sys
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import numpy as np

from .numbers import RecordingError, dense, stored, values

FORMATS = {"f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64"}
NUMPY = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8", "U32": "<u4", "I32": "<i4", "U8": "u1", "I8": "i1"}
_DROPPED = ("quantization_config", "quantization", "compression_config")  # of the config: it describes other files


# ---- models in memory ----------------------------------------------------------------------------


def plain(p: Any) -> Optional[Any]:
    """A torch parameter as numbers to compute with; None: it is plain already, or in a form that is not known."""
    import torch

    state, scale = getattr(p, "quant_state", None), getattr(p, "SCB", None)
    if state is not None:  # bitsandbytes, 4 bits
        return sys.modules["bitsandbytes"].functional.dequantize_4bit(p.data, state)
    if scale is not None:  # bitsandbytes, 8 bits: a scale for each row
        held = getattr(p, "CB", None)
        return (p.data if held is None else held).float() * (scale.float() / 127)[:, None]
    inner = p.data
    return dense(p) if type(inner) is not torch.Tensor and hasattr(inner, "dequantize") else None


def of_model(model: Any) -> Dict[str, Any]:
    """The weights of a torch model by name: those that are held in another form as numbers to compute with."""
    import torch

    state = model.state_dict(keep_vars=True)  # a quantised module also has values that are not tensors
    held = {k: v for k, v in state.items() if isinstance(v, torch.Tensor)}
    for at, module in model.named_modules():
        for leaf, p in list(module.named_parameters(recurse=False)):
            name, numbers = (f"{at}." if at else "") + leaf, None if p.is_meta else plain(p)
            if numbers is not None:
                parts = (name + ".", name + "_", *(f"{at}.{x}" for x in ("SCB", "input_scale", "output_scale")))
                held = {k: v for k, v in held.items() if not k.startswith(parts)}
                held[name] = numbers.detach()
    return {k: v.detach() for k, v in held.items() if v.is_floating_point()}


# ---- model files ---------------------------------------------------------------------------------


def read_safetensors(path: str) -> Iterator[Tuple[str, str, np.ndarray]]:
    """(name, dtype, the stored bits, mapped from the file) of every tensor in a file. Raises RecordingError: it is
    none."""
    try:
        # copy-on-write, because torch needs writable memory; nothing is written
        data = np.memmap(path, dtype=np.uint8, mode="c")
        n = int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8 : 8 + n].tobytes()) if n <= data.size - 8 else None
    except ValueError:  # also raised for an empty file
        header = None
    if not isinstance(header, dict):
        raise RecordingError(f"{path}: not a safetensors file: it has no valid header")
    for name, t in sorted(header.items()):
        if name != "__metadata__" and t["dtype"] in NUMPY:
            begin, end = (8 + n + x for x in t["data_offsets"])
            yield name, t["dtype"], np.ascontiguousarray(data[begin:end]).view(NUMPY[t["dtype"]]).reshape(t["shape"])


def write_safetensors(path: str, weights: Mapping[str, Any]) -> None:
    """weights: arrays by name, in float16, bfloat16, float32 or float64."""
    header, parts, at = {}, [], 0
    for name, x in weights.items():
        a, word = stored(x)
        if word not in FORMATS:
            raise RecordingError(f"{path}: {name}: {word} is not a format of weights")
        header[name] = dict(dtype=FORMATS[word], shape=list(a.shape), data_offsets=[at, at + a.nbytes])
        parts.append(a)
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for a in parts:
            f.write(np.ascontiguousarray(a).data)


def _float(dtype: str, a: np.ndarray) -> np.ndarray:
    return values(a, "bf16" if dtype == "BF16" else "f32").astype(np.float32)


def unpacked(words: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of 2, 4 or 8 bits in unsigned integers, the lowest first, along the last axis."""
    each = words.dtype.itemsize * 8 // bits
    shifts = np.arange(each, dtype=words.dtype) * words.dtype.type(bits)
    return ((words[..., None] >> shifts) & words.dtype.type((1 << bits) - 1)).reshape(*words.shape[:-1], -1)


def of_mlx(folder: str, config: Mapping[str, Any]) -> Dict[str, np.ndarray]:
    """Of a folder of mlx-lm: groups of numbers with a scale and an offset each."""
    held = {name: (dtype, a) for path in sorted(glob.glob(os.path.join(folder, "*.safetensors")))
            for name, dtype, a in read_safetensors(path)}
    how, found = config["quantization"], {}
    for name, (dtype, a) in held.items():
        base = name[: -len(".weight")] if name.endswith(".weight") else None
        if name.endswith((".scales", ".biases")) and name.rpartition(".")[0] + ".weight" in held:
            continue
        if base is None or base + ".scales" not in held:
            found[name] = _float(dtype, a)
            continue
        own = {**how, **(how.get(base) or {})}
        if own.get("mode", "affine") != "affine" or own["bits"] not in (2, 4, 8):
            raise RecordingError(f"{folder}: {name}: {own['bits']} bits, {own.get('mode', 'affine')}; affine groups "
                                 f"of 2, 4 or 8 bits are read")
        numbers = unpacked(a, own["bits"]).astype(np.float32)
        groups = numbers.reshape(*numbers.shape[:-1], -1, own["group_size"])
        scale, offset = (_float(*held[f"{base}.{leaf}"])[..., None] for leaf in ("scales", "biases"))
        found[name] = (groups * scale + offset).reshape(numbers.shape)
    return found


def of_onnx(path: str, config: Mapping[str, Any]) -> Dict[str, np.ndarray]:
    """Of an ONNX graph with MatMulNBits, by the names of its initializers: those of the exporter, or of the builder of
    ONNX Runtime GenAI."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    held = {t.name: t for t in graph.initializer}
    read = lambda name: numpy_helper.to_array(held[name])
    found: Dict[str, np.ndarray] = {}
    used = {name for node in graph.node if node.op_type in ("MatMulNBits", "MatMul") for name in node.input}
    for name, t in held.items():
        if name not in used and t.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            found[_weight(name)] = read(name).astype(np.float32)
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            how = {a.name: a.i for a in node.attribute}
            rows, width, bits, block = how["N"], how["K"], how.get("bits", 4), how["block_size"]
            numbers = unpacked(read(node.input[1]).reshape(rows, -1), bits).astype(np.float32).reshape(rows, -1, block)
            zero: Any = np.float32(1 << (bits - 1))
            if len(node.input) > 3 and node.input[3]:
                points = read(node.input[3]).reshape(rows, -1)
                points = unpacked(points, bits)[:, : numbers.shape[1]] if points.dtype == np.uint8 else points
                zero = points[..., None].astype(np.float32)
            scale = read(node.input[2]).reshape(rows, -1, 1).astype(np.float32)
            found[_weight(node.input[1])] = ((numbers - zero) * scale).reshape(rows, -1)[:, :width]
        elif node.op_type == "MatMul" and node.input[1] in held:  # its weight is transposed
            found[_weight(node.input[1])] = read(node.input[1]).astype(np.float32).T
    # the builder gives queries, keys and values one product, a tied embedding the head's numbers
    heads, groups = config.get("num_attention_heads", 1), config.get("num_key_value_heads", 1)
    for name in [n for n in found if ".qkv_proj." in n]:
        rows = found[name].shape[0] // (heads + 2 * groups)
        parts = np.split(found.pop(name), [heads * rows, (heads + groups) * rows])
        found.update({name.replace("qkv_proj", f"{x}_proj"): a for x, a in zip("qkv", parts)})
    if "model.embed_tokens.weight" not in found and "lm_head.weight" in found:
        found["model.embed_tokens.weight"] = found["lm_head.weight"]
    return {k: v for k, v in found.items() if k.startswith(("model.", "lm_head."))}


def _weight(name: str) -> str:
    """The name of a weight in HuggingFace's files."""
    name = re.sub(r"(_Q\d+(G\d+)?|_quant\w*|_DQ_Q\d+)$", "", name.lstrip("/").replace("/", "."))
    name = re.sub(r"\.(MatMul|Add|layernorm)\.(weight|bias)$", r".\2", name).replace(".attn.", ".self_attn.")
    name = re.sub(r"layers\.\d+\.final_norm_layernorm", "norm", name)
    at = re.search(r"(model\.(layers|embed_tokens|norm)\b|lm_head\b).*", name)
    return at.group(0) if at else name


# ---- a model directory ---------------------------------------------------------------------------


def write(folder: str, weights: Mapping[str, Any], config: str, source: Optional[str] = None) -> int:
    """Write a model directory: config.json, model.safetensors, and the tokenizer's files of the directory `source`.

    weights: arrays by name, in float16, bfloat16, float32 or float64. Returns how many were written: a head that is
    the embedding's numbers is left out where the config ties them. Raises RecordingError: the folder holds files.
    """
    if os.path.isdir(folder) and os.listdir(folder):
        raise RecordingError(f"{folder}: is not empty; give the model a folder of its own")
    about = json.loads(config)
    for key in _DROPPED:
        about.pop(key, None)
    weights = dict(weights)
    tied = weights.get("model.embed_tokens.weight")
    if about.get("tie_word_embeddings") and tied is not None and "lm_head.weight" in weights:
        one, two = (stored(x) for x in (tied, weights["lm_head.weight"]))
        if one[1] == two[1] and np.array_equal(one[0], two[0]):
            del weights["lm_head.weight"]
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), weights)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(about, f, indent=2)
    for path in glob.glob(os.path.join(source, "*token*")) + glob.glob(os.path.join(source, "*.txt")) if source else ():
        if os.path.isfile(path):
            shutil.copy(path, folder)
    return len(weights)


def command(source: str, folder: str) -> int:
    """Dequantize a model's files into a directory; returns the number of weights."""
    onnx = source if source.endswith(".onnx") else os.path.join(source, "model.onnx")
    home = os.path.dirname(source) if source.endswith(".onnx") else source
    try:
        with open(os.path.join(home, "config.json"), encoding="utf-8") as f:
            text = f.read()
        config = json.loads(text)
    except (OSError, ValueError) as e:
        raise RecordingError(f"{home}: no config.json of the model: {e}") from None
    if os.path.isfile(onnx):
        return write(folder, of_onnx(onnx, config), text, home)
    if isinstance(config.get("quantization"), dict) and "group_size" in config["quantization"]:
        return write(folder, of_mlx(home, config), text, home)
    if not config.get("quantization_config"):
        raise RecordingError(f"{home}: neither model.onnx nor a quantization in config.json: its weights are plain")
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(home)
    return write(folder, of_model(model), text, home)
