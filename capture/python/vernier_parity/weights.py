"""weights.py: the table of a model's weights: dtype, shape, digest of the stored bytes, and statistics of each.

The digests are those that vernier itself computes from the safetensors files. A weight in memory gets the row of the
file if its numbers are those of the file, converted to the model's dtype. Otherwise it gets a row of its own, so that a
comparison shows a weight that was changed, dropped or never loaded.
"""

import json
import os
import re
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Optional, Tuple

import h5py
import numpy as np

from . import quantised
from .numbers import RecordingError, dense, digest_of, statistics, stored
from .printed import warn

WORDS = quantised.FORMATS
FORMATS = {v: k for k, v in WORDS.items()}
PREFIXES = ("", "model.", "transformer.", "model.language_model.", "language_model.model.", "model.model.")
Row = Tuple[str, str, str, str, float, float, float, float, int, int]


def row_of(name: str, x: Any) -> Row:
    """The row of one weight x, a numpy array or torch tensor."""
    a, word = stored(x)
    if word not in WORDS:
        raise RecordingError(f"weight {name}: {word}; expected F16, BF16, F32 or F64")
    return raw_row(name, WORDS[word], a)


def raw_row(name: str, dtype: str, a: np.ndarray) -> Row:
    """The row of a weight whose bits are in a. dtype: its name in safetensors."""
    s = statistics(a, FORMATS[dtype])
    return (name, dtype, "x".join(map(str, a.shape)), digest_of(a) or "", s["min"], s["max"], s["mean"], s["rms"],
            int(s["nan"]), int(s["inf"]))


def files_of(directory: str) -> List[str]:
    """The paths of a model's safetensors files: the single file, or those that the index names. Empty if there are
    none."""
    one, index = (os.path.join(directory, n) for n in ("model.safetensors", "model.safetensors.index.json"))
    if os.path.exists(one):
        return [one]
    if not os.path.exists(index):
        return []
    with open(index, encoding="utf-8") as f:
        return [os.path.join(directory, n) for n in sorted(set(json.load(f)["weight_map"].values()))]


def stored_weights(directory: str) -> Iterator[Tuple[str, str, np.ndarray]]:
    """Yield (name, dtype, stored bits, mapped from the file) of every tensor in a floating-point format."""
    for path in files_of(directory):
        yield from (x for x in quantised.read_safetensors(path) if x[1] in FORMATS)


def config_of(directory: str) -> str:
    """The text of config.json, verbatim."""
    path = os.path.join(directory, "config.json")
    try:
        with open(path, encoding="utf-8", newline="") as f:
            return f.read()
    except OSError as e:
        raise RecordingError(f"{path}: {e.strerror}") from None


def family_of(directory: str, config: str) -> str:
    """The model_type of a config."""
    try:
        return str(json.loads(config).get("model_type", "unknown"))
    except (ValueError, AttributeError):
        raise RecordingError(f"{os.path.join(directory, 'config.json')}: not a JSON object") from None


def _plain(name: str) -> str:
    """A weight's name without the parts that PEFT adds: .base_layer of an adapted module, .modules_to_save.* of a kept
    one."""
    return re.sub(r"\.modules_to_save\.[^.]+\.", ".", name.replace(".base_layer.", "."))


def _there(model: Any, name: str, t: Any) -> Optional[Any]:
    """The numbers of weight t. accelerate fetches a weight that it offloaded. None if the numbers are not available."""
    if not t.is_meta:
        return t
    try:
        from accelerate.utils import align_module_device
    except ImportError:
        return None
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    with align_module_device(module, "cpu"):
        found = getattr(module, leaf).detach()
    return None if found.is_meta else found


def _place(t: Any) -> int:
    """The same for two names of one tensor."""
    try:
        return int(t.data_ptr())
    except RuntimeError:  # a subclass without storage of its own
        return id(t)


def in_torch(dtype: str, bits: np.ndarray) -> Any:
    """A tensor of a file in torch."""
    import torch

    return torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16) if dtype == "BF16" else torch.from_numpy(bits)


def of_memory(model: Any, directory: Optional[str], family: str = "") -> List[Row]:
    """The rows of a torch model's weights. A weight that equals the one in the directory's files gets the row of the
    file. family: of a model whose experts' weights are to be listed one by one."""
    import torch

    from .experts import apart
    from .offload import release  # torch is needed only here

    held = quantised.of_model(model)
    also = getattr(model, "all_tied_weights_keys", None) or {}  # second names of tied weights
    own: Dict[str, Tuple[str, Any, Any]] = {key: (k, v, part) for k, v in held.items() if not (v.is_meta and k in also)
                                            for _, key, part in apart(family, _plain(k), v)}
    gone: List[str] = []
    fetched: Dict[str, Any] = {}  # of one module: of several weights, parts may be read in turn

    def read(k: str) -> Optional[Any]:
        name, whole, part = own[k]
        if name not in fetched:
            if any(n.rpartition(".")[0] != name.rpartition(".")[0] for n in fetched):
                fetched.clear()
            fetched[name] = _there(model, name, whole)
        if fetched[name] is None:
            gone.append(k)
            return None
        return part(fetched[name])

    rows, seen = [], set()
    files = stored_weights(directory) if directory else ()
    for name, key, dtype, bits in ((name, key, dtype, part(x)) for file, dtype, x in files
                                   for name, key, part in apart(family, file, x)):
        bare = next((key[len(p) :] for p in sorted(PREFIXES, key=len, reverse=True) if key.startswith(p)), key)
        ours = next((k for k in (key, *(p + bare for p in PREFIXES)) if k in own), None)
        if ours is None:  # a tensor of the file that the model does not have: a vision tower, old buffers
            continue
        seen.add(ours)
        t = read(ours)
        if t is None:
            continue
        release()
        bits = bits if bits.flags.c_contiguous else np.ascontiguousarray(bits)
        there = in_torch(dtype, bits).to(t.dtype)
        same = there.shape == t.shape and torch.equal(there, dense(t).cpu())
        rows.append(raw_row(name, dtype, bits) if same else row_of(name, t.contiguous()))
    written = {_place(part(t)) for k in seen for _, t, part in [own[k]]}
    for k, (_, t, part) in sorted(own.items(), key=lambda x: x[1][0] in also):  # first the name that a file has
        t = part(t)
        if k in seen or (_place(t) in written and not t.is_meta):
            continue
        written.add(_place(t))
        found = read(k)
        if found is not None:
            rows.append(row_of(k, found.contiguous()))
    if gone:  # in a partial table, the other weights would count as missing from the model
        warn(f"vernier_parity: {len(gone)} weights (the first is {gone[0]}) are on no device, and their storage is not "
             f"known: recorded without a table of weights", stacklevel=6)
        return []
    return sorted(rows)


@lru_cache(maxsize=None)
def _say_without() -> None:
    warn("vernier_parity: without xxhash (pip install xxhash) a recording has no digests and no table of weights, and "
         "a comparison cannot tell a wrong checkpoint from a wrong engine", stacklevel=5)


def write_table(group: h5py.Group, rows: List[Row]) -> None:
    """Write /model/weights. Without xxhash there are no digests; then no table is written, and one warning says so."""
    if not rows:
        return
    if not all(r[3] for r in rows):
        _say_without()
        return
    widths = [max(len(str(r[i]).encode()) for r in rows) for i in range(4)]
    kind = np.dtype([(k, h5py.string_dtype("utf-8", max(w, 1))) for k,
                     w in zip(("name", "dtype", "shape", "digest"), widths)]
                    + [(k, "<f8") for k in ("min", "max", "mean", "rms")] + [("nan", "<i8"), ("inf", "<i8")])
    table = np.array([tuple(v.encode() if isinstance(v, str) else v for v in r) for r in rows], dtype=kind)
    d = group.create_dataset("weights", data=table, track_times=False)
    d.attrs["digest"] = np.bytes_(digest_of(table))
