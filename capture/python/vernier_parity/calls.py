"""calls.py: the arguments of a model's calls as JSON, and made again from it, so that the reference gets equal calls.

Tensors are inputs, recorded by name. Caches and other objects are known by identity: one that a call got or returned is
the same object in a later call. Names of classes in a file choose among transformers' own caches and results, or
results of the model's own modules.
"""

import sys
from typing import Any, Callable, Dict, List, Tuple

import torch

from .numbers import RecordingError
from .rows import dtype_of

STATE = "in.buffer."  # in front of the name of a buffer that the run changes: its numbers before
LONGEST = 110  # bytes of such a name


class Objects:
    """The objects among the arguments and results of calls, in order of appearance."""

    def __init__(self) -> None:
        self.held: List[Any] = []  # keeps their ids from being reused
        self.number: Dict[int, int] = {}

    def add(self, x: Any) -> int:
        self.held.append(x)
        return self.number.setdefault(id(x), len(self.held) - 1)


def _is_result(x: Any) -> bool:
    return isinstance(x, dict) and type(x) is not dict


def coded(x: Any, name: str, objects: Objects) -> Any:
    """An argument as JSON; a tensor as {"in": its name, "dtype"}."""
    if x is None or isinstance(x, (bool, str)) or type(x) in (int, float):
        return x if x == x and x not in (float("inf"), float("-inf")) else {"number": str(x)}
    if isinstance(x, torch.Tensor):
        return {"in": name, "dtype": str(x.dtype)}
    if isinstance(x, torch.dtype):
        return {"dtype": str(x)}
    if id(x) in objects.number:
        return {"object": objects.number[id(x)]}
    if isinstance(x, dict):
        inner = {str(k): coded(y, f"{name}.{k}", objects) for k, y in x.items()}
        return {"dict": inner, **({"class": type(x).__name__} if _is_result(x) else {})}
    if isinstance(x, (list, tuple)):
        return {"tuple" if isinstance(x, tuple) else "list":
                [coded(y, f"{name}.{i}", objects) for i, y in enumerate(x)]}
    return {"object": objects.add(x), "new": type(x).__name__, **_settings(x)}


def _settings(x: Any) -> Dict[str, Any]:
    """What makes an equal new cache; "filled" if it holds something already."""
    if not hasattr(x, "get_seq_length"):
        return {}
    parts = [getattr(x, k, None) for k in ("self_attention_cache", "cross_attention_cache")]
    if parts[0] is not None:
        return {"parts": [{"new": type(p).__name__, **_settings(p)} for p in parts]}
    layers = getattr(x, "layers", None) or []
    filled = any(getattr(y, "is_initialized", False) for y in layers) and int(x.get_seq_length()) > 0
    longest = max((int(getattr(y, "max_cache_len", 0) or 0) for y in layers), default=0)
    return {**({"filled": True} if filled else {}), **({"longest": longest} if longest else {}),
            **({"layers": len(layers)} if layers else {})}


def returned(out: Any, objects: Objects) -> List[Tuple[str, int]]:
    """The objects among the results of a call: (key, number)."""
    found = []
    for k, x in out.items() if isinstance(out, dict) else enumerate(out) if isinstance(out, (list, tuple)) else ():
        if hasattr(x, "get_seq_length"):
            found.append((str(k), objects.number[id(x)] if id(x) in objects.number else objects.add(x)))
    return found


def made(code: Any, model: Any, tensor: Callable[[str, Any], Any], objects: Dict[int, Any]) -> Any:
    """The argument of the code. tensor: gives the input of a name in a format."""
    if not isinstance(code, dict):
        return code
    if "number" in code:
        return float(code["number"])
    if "in" in code:
        return tensor(code["in"], dtype_of(code["dtype"]))
    if "dtype" in code:
        return dtype_of(code["dtype"])
    if "dict" in code:
        inner = {k: made(y, model, tensor, objects) for k, y in code["dict"].items()}
        return _result(code["class"], model)(**inner) if "class" in code else inner
    if "list" in code or "tuple" in code:
        inner_list = [made(y, model, tensor, objects) for y in code.get("list", code.get("tuple"))]
        return tuple(inner_list) if "tuple" in code else inner_list
    if code["object"] not in objects:
        objects[code["object"]] = _cache(code, model)
    return objects[code["object"]]


def _result(name: str, model: Any) -> Any:
    """The class of results that has this name in transformers, or beside the model's own modules; else dict."""
    from transformers import modeling_outputs
    from transformers.utils import ModelOutput

    for where in modeling_outputs, *(sys.modules.get(n) for n in sorted({type(m).__module__ for m in model.modules()})):
        found = getattr(where, name, None)
        if isinstance(found, type) and issubclass(found, ModelOutput):
            return found
    return dict


def _cache(code: Dict[str, Any], model: Any) -> Any:
    name = code.get("new", "")
    if name not in ("DynamicCache", "StaticCache", "EncoderDecoderCache") or code.get("filled"):
        raise RecordingError(f"an argument of a call is an object of class {name[:40]}"
                             f"{', which was filled before the recording began' if code.get('filled') else ''}: "
                             f"it cannot be made again; pass run=, a function that calls the model as the candidate "
                             f"did")
    from transformers import cache_utils

    if "parts" in code:
        return cache_utils.EncoderDecoderCache(*(_cache(p, model) for p in code["parts"]))
    config = model.config.get_text_config(decoder=True)
    if name == "StaticCache":
        return cache_utils.StaticCache(config=config, max_cache_len=int(code.get("longest", 1)))
    return cache_utils.DynamicCache(config=config) if code.get("layers") else cache_utils.DynamicCache()
