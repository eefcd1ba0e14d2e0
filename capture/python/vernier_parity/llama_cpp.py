"""llama_cpp.py: records a model of llama-cpp-python.

    from vernier_parity import llama_cpp

    with llama_cpp.record(llm, "cand.h5"):
        llm.eval(tokens)

Then `vernier capture ref MODEL.gguf --like cand.h5 --names llama.cpp -o ref.h5` and `vernier compare ref.h5 cand.h5
--names llama.cpp --model MODEL.gguf`. Inside the block llm runs in a context of its own, with the same parameters and
llama.cpp's evaluation callback; each llama_decode is a step. Every token gets its scores, so that all rows of the last
layer are computed. The callback reads ggml's struct of a tensor: a ggml in which it is laid out otherwise is refused.
"""

import contextlib
import ctypes as c
import glob
import os
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from .h5 import Fact
from .numbers import RecordingError
from .recorder import Recorder

FORMATS = {0: ("<f4", None), 1: ("<f2", None), 26: ("<i4", None), 30: ("<u2", "bf16")}  # by ggml_type
NOTHING = ("NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE")  # operations without numbers of their own


class Tensor(c.Structure):
    """struct ggml_tensor, as far as it is read."""


Tensor._fields_ = [("type", c.c_int), ("buffer", c.c_void_p), ("ne", c.c_int64 * 4), ("nb", c.c_size_t * 4),
                   ("op", c.c_int), ("op_params", c.c_int32 * 16), ("flags", c.c_int32),
                   ("src", c.POINTER(Tensor) * 10), ("view_src", c.c_void_p), ("view_offs", c.c_size_t),
                   ("data", c.c_void_p), ("name", c.c_char * 64)]


class _Init(c.Structure):
    _fields_ = [("size", c.c_size_t), ("memory", c.c_void_p), ("no_alloc", c.c_bool)]


def _library(home: str) -> Any:
    """ggml, with the types of the functions that are called."""
    found = glob.glob(os.path.join(home, "lib", "*ggml-base.*"))
    if not found:
        raise RecordingError(f"{home}: no library of ggml")
    g, tensor = c.CDLL(sorted(found)[0]), c.POINTER(Tensor)
    for name, result, *taken in (
            ("init", c.c_void_p, _Init), ("free", None, c.c_void_p), ("set_name", tensor, tensor, c.c_char_p),
            ("new_tensor_3d", tensor, c.c_void_p, c.c_int, c.c_int64, c.c_int64, c.c_int64),
            ("add", tensor, c.c_void_p, tensor, tensor), ("op_name", c.c_char_p, c.c_int),
            ("op_desc", c.c_char_p, tensor),
            ("type_name", c.c_char_p, c.c_int), ("nbytes", c.c_size_t, tensor),
            ("backend_tensor_get", None, tensor, c.c_void_p, c.c_size_t, c.c_size_t)):
        f = getattr(g, "ggml_" + name)
        f.restype, f.argtypes = result, taken
    return g


def _check_layout(g: Any) -> None:
    """Refuse a ggml whose struct is another: tensors with known members are read back."""
    held = g.ggml_init(_Init(1 << 16, None, True))
    t = g.ggml_new_tensor_3d(held, 1, 5, 3, 2)
    g.ggml_set_name(t, b"vernier")
    sum_ = g.ggml_add(held, t, t)
    x, y = t.contents, sum_.contents
    good = (x.type == 1 and list(x.ne) == [5, 3, 2, 1] and list(x.nb) == [2, 10, 30, 60] and x.name == b"vernier" and
            g.ggml_op_name(x.op) == b"NONE" and g.ggml_op_name(y.op) == b"ADD" and not y.src[2] and all(
                y.src[i] and c.addressof(y.src[i].contents) == c.addressof(x) for i in (0, 1)))
    g.ggml_free(held)
    if not good:
        raise RecordingError("this ggml lays out its tensors in a way that the recorder does not know; use the "
                             "callback in C, which is compiled with ggml's header (vernier help guides/llama.cpp.md)")


class _Callback:
    """Records the nodes of the graphs that run."""

    def __init__(self, g: Any, rec: Recorder) -> None:
        self.g, self.rec = g, rec
        self.times: Dict[str, int] = {}
        self.error: List[BaseException] = []
        self.word = {"rounds": "", "cache": "", "flash": ""}

    def name_of(self, t: Tensor) -> str:
        if self.g.ggml_op_name(t.op) != b"FLASH_ATTN_EXT":
            return str(t.name.decode("utf-8", "replace"))
        layer = t.src[0].contents.name.decode().partition("-")[2].split(" ")[0] if t.src[0] else ""
        return f"fattn-{layer}" if layer.isdecimal() else ""

    def wanted(self, t: Tensor) -> bool:
        name, op = self.name_of(t), self.g.ggml_op_name(t.op).decode()
        return bool(self.rec.steps and not self.error and t.type in FORMATS and op not in NOTHING and name and
                    not name.startswith(("node_", "cache_")))

    def note(self, t: Any) -> None:
        """Which of ggml's formats the graph has, for the word of the precision (as vernier_callback.c)."""
        op = self.g.ggml_op_desc(t).decode()
        flash, of = op == "FLASH_ATTN_EXT", t.contents
        first = of.src[1 if flash else 0]
        if op == "GELU":
            self.word["rounds"] = "1"
        if (op != "MUL_MAT" and not flash) or not first or first.contents.type == 0:
            return
        if not flash and self.g.ggml_op_name(first.contents.op) == b"NONE":  # a weight
            self.word["rounds"] = "1"
            return
        kind = self.g.ggml_type_name(first.contents.type).decode()
        self.word.update(cache=kind, flash="1" if flash else self.word["flash"])

    def precision(self) -> str:
        cache = self.word["cache"]
        if cache not in ("", "f16"):
            return f"ggml-kv-{cache}"
        return ("ggml-flash16" if self.word["flash"] else "ggml-kv16" if cache else
                "ggml" if self.word["rounds"] else "f32")

    def take(self, t: Any) -> None:
        of, size = t.contents, self.g.ggml_nbytes(t)
        kind, word = FORMATS[of.type]
        rank = max([2, *(i + 1 for i in range(4) if of.ne[i] != 1)])
        held = c.create_string_buffer(size)
        self.g.ggml_backend_tensor_get(t, held, 0, size)
        shape, strides = [of.ne[i] for i in reversed(range(rank))], [of.nb[i] for i in reversed(range(rank))]
        a = np.ascontiguousarray(np.ndarray(shape, kind, held, strides=strides))
        name = self.name_of(of)
        self.times[name] = n = self.times.get(name, 0) + 1
        if a.size:
            self.rec.put(name if n == 1 else f"{name}.{n}", a, "", op=self.g.ggml_op_name(of.op).decode(), dtype=word)

    def __call__(self, t: Any, ask: bool, _: Any) -> bool:
        try:
            if ask and self.rec.steps:
                self.note(t)
            if self.wanted(t.contents) and not ask:
                self.take(t)
            return self.wanted(t.contents) if ask else True
        except BaseException as e:  # an exception cannot pass through C; the block raises it
            self.error.append(e)
            return True


@contextlib.contextmanager
def record(llm: Any, path: str, *, force: bool = False, **run: Fact) -> Iterator[Recorder]:
    """Record every llama_decode of a llama_cpp.Llama inside the block, which begins with an empty cache. Afterwards llm
    is as before. force: replace an existing recording. run: your own facts; precision= replaces the one that is found.

    Raises RecordingError: a ggml of another layout; a batch of several sequences, or longer than n_ubatch; as Recorder.
    """
    import llama_cpp
    from llama_cpp import _internals

    g = _library(os.path.dirname(llama_cpp.__file__))
    _check_layout(g)
    params = type(llm.context_params).from_buffer_copy(llm.context_params)
    facts: Dict[str, Fact] = {"precision": "f32", "engine_version": llama_cpp.__version__, **run}
    with Recorder(path, engine="llama.cpp", precision=str(facts.pop("precision")), run=facts, force=force) as rec:
        seen = _Callback(g, rec)
        call = c.CFUNCTYPE(c.c_bool, c.POINTER(Tensor), c.c_bool, c.c_void_p)(seen)
        params.cb_eval = (c.cast(call, c.c_void_p).value if params.cb_eval is None or isinstance(params.cb_eval, int)
                          else c.cast(call, type(params.cb_eval)))
        before: Tuple[Any, int] = (llm._ctx, llm.n_tokens)
        context = _internals.LlamaContext(model=llm._model, params=params, verbose=llm.verbose)
        decode = context.decode

        def decoded(batch: Any) -> Any:
            b = batch.batch
            if b.n_tokens > params.n_ubatch or any(b.seq_id[i][0] != b.seq_id[0][0] for i in range(b.n_tokens)):
                raise RecordingError(f"{path}: a batch of several sequences, or of more than n_ubatch tokens")
            for i in range(b.n_tokens):
                b.logits[i] = True
            seen.times.clear()
            rec.begin_step(token_ids=[b.token[i] for i in range(b.n_tokens)],
                           positions=[b.pos[i] for i in range(b.n_tokens)])
            out = decode(batch)
            if seen.error:
                raise seen.error[0]
            return out

        context.decode = decoded
        llm._ctx, llm.n_tokens = context, 0
        try:
            yield rec
        finally:
            llm._ctx, llm.n_tokens = before
            context.close()
        if "precision" not in run:
            rec.fact(precision=seen.precision())
