#!/usr/bin/env python3
"""weights.py VERNIER [NAME...]: every kind of difference between two models' weights is named, and none between correct
twins.

Models are changed here with numpy, by the definitions of specs/faults.md, chapter W; digests come from the xxHash
library through ctypes. Each case is looked at three times: two directories (both sides' numbers are known), two
recordings whose tables were written here (statistics and digests alone), and the same with --model (the reference's
numbers).
"""
import ctypes
import ctypes.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
try:
    import editing as h5py
    import numpy as np
    XXH = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
except (ImportError, OSError) as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "..", "fixtures")
VERNIER = sys.argv[1]
RNG = np.random.default_rng(7)


class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XXH.XXH3_128bits.restype = Hash
XXH.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def digest(data):
    h = XXH.XXH3_128bits(data, len(data))
    return f"{h.high:016x}{h.low:016x}"


# ---- formats: a tensor is (word of its format, array of its stored type) -------------------------

STORED = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "F64": np.float64}


def values(t):
    word, x = t
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64) if word == "BF16" else x.astype(np.float64)


def bf16_bits(x, cut=False):
    bits = np.asarray(x, np.float32).view(np.uint32)
    if not cut:
        bits = bits + 0x7FFF + (bits >> 16 & 1)
    return (bits >> 16).astype(np.uint16)


def as_format(x, word):
    x = np.asarray(x, np.float64)
    return word, bf16_bits(x.astype(np.float32)) if word == "BF16" else x.astype(STORED[word])


def each(f):
    """Changes on the stored array: orders of numbers."""
    return lambda t: (t[0], np.ascontiguousarray(f(t[1])))


def number(f):
    """On the numbers, rounded to the format again."""
    return lambda t: as_format(f(values(t)), t[0])


# ---- files ---------------------------------------------------------------------------------------

def read_model(path):
    with open(os.path.join(path, "model.safetensors"), "rb") as f:
        data = f.read()
    n = 8 + int.from_bytes(data[:8], "little")
    out = {}
    for name, t in json.loads(data[8:n]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = t["dtype"], np.frombuffer(data[n + a:n + b], STORED[t["dtype"]]).reshape(t["shape"])
    return out


def write_model(source, path, tensors):
    os.makedirs(path)
    shutil.copy(os.path.join(source, "config.json"), path)
    header, data = {}, b""
    for name, (word, x) in tensors.items():
        raw = np.ascontiguousarray(x).tobytes()
        header[name] = {"dtype": word, "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)
    return path


def write_table(base, path, tensors):
    """A recording like base whose table of weights lists these."""
    shutil.copy(base, path)
    with h5py.File(path, "r+") as f:
        old = f["model/weights"]
        rows = np.zeros(len(tensors), old.dtype)
        for row, (name, t) in zip(rows, tensors.items()):
            x = values(t)
            good = x[np.isfinite(x)]
            given = {"name": name, "dtype": t[0], "shape": "x".join(map(str, t[1].shape)),
                     "digest": digest(np.ascontiguousarray(t[1]).tobytes()),
                     "min": good.min(), "max": good.max(), "mean": good.mean(), "rms": np.sqrt(np.mean(good * good)),
                     "nan": int(np.isnan(x).sum()), "inf": int(np.isinf(x).sum())}
            for key, value in given.items():
                row[key] = value
        del f["model/weights"]
        f["model"].create_dataset("weights", data=rows, dtype=old.dtype)
    return path


def ask(*args):
    p = subprocess.run([VERNIER, "weights", *args, "--format", "json", "--threads", "1"], capture_output=True,
                       text=True)
    if p.returncode == 2:
        return p.stderr
    r = json.loads(p.stdout)
    assert p.returncode == (1 if r["differ"] else 0), p
    return {w["name"]: (g["kind"], g["id"], g["certain"], g["words"]) for g in r["groups"] for w in g["weights"]}


# ---- blocks of ggml, by the formulas -------------------------------------------------------------

def half(x):
    return x.astype(np.float16).astype(np.float32)


def requantised(kind):
    def f(t):
        x = values(t).astype(np.float32)
        b = x.reshape(-1, 32)
        one = np.float32(1)
        if kind == "q8_0":
            d = np.abs(b).max(1, keepdims=True) / np.float32(127)
            r = b * np.where(d > 0, one / d, 0)
            y = half(d) * (np.sign(r) * np.floor(np.abs(r) + np.float32(0.5)) + np.float32(0))
        elif kind in ("q4_0", "q5_0"):
            top = {"q4_0": 8, "q5_0": 16}[kind]
            d = np.take_along_axis(b, np.abs(b).argmax(1)[:, None], 1) / np.float32(-top)
            q = np.minimum(2 * top - 1, np.trunc(b * np.where(d != 0, one / d, 0) + np.float32(top + 0.5)))
            y = half(d) * (q - top).astype(np.float32)
        else:
            top = {"q4_1": 15, "q5_1": 31}[kind]
            low = b.min(1, keepdims=True)
            d = (b.max(1, keepdims=True) - low) / np.float32(top)
            q = np.minimum(top, np.trunc((b - low) * np.where(d != 0, one / d, 0) + np.float32(0.5)))
            y = half(d) * q.astype(np.float32) + half(low)
        return as_format(y.reshape(x.shape), t[0])
    return f


# ---- orders --------------------------------------------------------------------------------------

def pairs(K, period=None):
    """Rows of each head: half-split to neighbours, models.md 1.5."""
    period = period or K

    def f(x):
        y = x.copy()
        for base in range(0, len(x), period):
            for i in range(K // 2):
                y[base + 2 * i] = x[base + i]
                y[base + 2 * i + 1] = x[base + i + K // 2]
        return y
    return f


def unpairs(K):
    def f(x):
        y = x.copy()
        for base in range(0, len(x), K):
            for i in range(K // 2):
                y[base + i] = x[base + 2 * i]
                y[base + i + K // 2] = x[base + 2 * i + 1]
        return y
    return f


def parts(order, axis, sizes=None):
    def f(x):
        ends = np.cumsum(sizes or [x.shape[axis] // 3] * 3)[:-1]
        p = np.split(x, ends, axis)
        return np.concatenate([p[i] for i in order], axis)
    return f


def by_head(H, axis):
    def f(x):
        p = [np.split(y, H, axis) for y in np.split(x, 3, axis)]
        return np.concatenate([p[k][h] for h in range(H) for k in range(3)], axis)
    return f


def halves(H, K):
    """[q, gate] of each head becomes all q, then all gates."""
    def f(x):
        y = x.reshape(H, 2, K, *x.shape[1:])
        return y.swapaxes(0, 1).reshape(x.shape)
    return f


def tiled(nk, nv, width, axis=0):
    r = nv // nk

    def f(x):
        at = np.concatenate([np.arange(width) + ((j % nk) * r + j // nk) * width for j in range(nv)])
        return np.take(x, at, axis)
    return f


def sheared(stride):
    def f(x):
        M, N = x.shape
        wide = np.zeros((M, stride), x.dtype)
        wide[:, :N] = x
        return wide.reshape(-1)[:M * N].reshape(M, N)
    return f


# ---- the cases -----------------------------------------------------------------------------------

CASES = []


def fuse(order=(0, 1, 2), by_group=False):
    """q, k and v as one, of every layer, weights and biases."""
    def change(m):
        out = {}
        for n, t in m.items():
            if "q_proj" in n:
                p = [m[n.replace("q_proj", x)] for x in ("q_proj", "k_proj", "v_proj")]
                x = np.concatenate([p[i][1] for i in order])
                if by_group:
                    x = np.concatenate([np.split(y[1], 2)[g] for g in range(2) for y in p])
                out[n.replace("q_proj", "qkv_proj")] = (t[0], x)
            elif "k_proj" not in n and "v_proj" not in n:
                out[n] = t
        return out
    return change



def case(name, family, kind, id_, change, likely=(), seen=None, base=None):
    """kind, id_: what it is. likely: what statistics alone may say as well, (kind, id) each, and None: nothing. seen:
    what numbers of both sides say, where no digest decides. base: makes the reference."""
    CASES.append((name, family, (kind, id_), change, likely, seen or (kind, id_), base))


def on(pattern, f):
    def change(m):
        out = {n: (f(t) if pattern in n else t) for n, t in m.items()}
        assert any(pattern in n for n in m), pattern
        return out
    return change


def swap(a, b):
    def change(m):
        return {n: m[n.replace(a, "@").replace(b, a).replace("@", b)] if a in n or b in n else t for n, t in m.items()}
    return change


def shift_layers(m):
    out = dict(m)
    for n in m:
        if ".layers.1." in n:
            out[n] = m[n.replace(".layers.1.", ".layers.0.")]
    return out


def interleave(m):
    """Gate and up fused as halves, split row by row."""
    out = dict(m)
    for n in m:
        if "gate_proj" in n:
            u = n.replace("gate_proj", "up_proj")
            both = np.concatenate([m[n][1], m[u][1]])
            out[n], out[u] = (m[n][0], both[0::2]), (m[u][0], both[1::2])
    return out


def together(names, f):
    """Rows of several weights of a layer, changed as one matrix."""
    def change(m):
        out = dict(m)
        for n in m:
            if names[0] in n and n.endswith("weight"):
                all_ = [n.replace(names[0], x) for x in names]
                x = np.concatenate([m[k][1] for k in all_])
                at = np.cumsum([len(m[k][1]) for k in all_])[:-1]
                for k, part in zip(all_, np.split(f(x), at)):
                    out[k] = (m[k][0], np.ascontiguousarray(part))
        return out
    return change


def joined(order, axis):
    """Shards of a matrix in another order."""
    return each(lambda x: np.concatenate([np.split(x, len(order), axis)[i] for i in order], axis))


def put(name, f):
    """A weight made of others: f(model)."""
    return lambda m: {**m, name: f(m)}


Q, K, O, UP = ("layers.1.self_attn.q_proj.weight", "layers.1.self_attn.k_proj.weight",
               "layers.1.self_attn.o_proj.weight", "layers.1.mlp.up_proj.weight")
ORDER, REVISION, OTHER = [("order", None)], [("revision", None)], [("other", None)]

case("zeros", "qwen2", "zeros", "W11", on(UP, number(lambda x: 0 * x)))
case("bias zero", "qwen2", "zeros", "W6", on("q_proj.bias", number(lambda x: 0 * x)))
case("ones", "qwen2", "constant", "W11", on("input_layernorm", number(lambda x: 0 * x + 1)))
case("fresh", "qwen2", "random", "W11", on(O, number(lambda x: RNG.normal(0, 0.02, x.shape))))
case("fresh uniform", "qwen3", "random", "W11",
     on(UP, number(lambda x: RNG.uniform(-1, 1, x.shape) / np.sqrt(x.shape[1]))))
case("nan", "qwen2", "not-finite", None,
     on(O, each(lambda x: np.where(np.arange(x.size).reshape(x.shape) < 5, np.float32("nan"), x))))
case("missing", "qwen2", "missing", None, lambda m: {n: t for n, t in m.items() if not n.endswith(UP)})
case("extra", "qwen2", "extra", None, put("model.layers.0.extra.weight", lambda m: m["model.norm.weight"]))
case("square transposed", "qwen2", "transposed", "W1", on(O, each(np.transpose)))
case("square q transposed", "qwen2", "transposed", "W1", on(Q, each(np.transpose)), likely=ORDER)
case("transposed and widened", "llama", "transposed", "W1",
     on(O, lambda t: as_format(values((t[0], t[1].T.copy())), "F32")), likely=[None])
case("transposed", "qwen3", "transposed", "W1", on(UP, each(np.transpose)))
case("transposed bytes", "qwen2", "reinterpreted", "W1b", on(UP, each(lambda x: x.T.reshape(x.shape))))
case("taken for transposed", "qwen2", "reinterpreted", "W1b", on(UP, each(lambda x: x.reshape(x.shape[::-1]).T)))
case("qkv transposed before the split", "llama", "reinterpreted", "W1b",
     together(("q_proj", "k_proj", "v_proj"), lambda x: x.T.reshape(x.shape)), likely=ORDER)
case("qkv taken for transposed", "qwen3", "reinterpreted", "W1b",
     together(("q_proj", "k_proj", "v_proj"), lambda x: x.reshape(x.shape[::-1]).T), likely=ORDER)
case("gate and up transposed before the split", "qwen2", "reinterpreted", "W1b",
     together(("gate_proj", "up_proj"), lambda x: x.T.reshape(x.shape)), likely=ORDER)
case("up and gate taken for transposed", "mistral", "reinterpreted", "W1b",
     together(("up_proj", "gate_proj"), lambda x: x.reshape(x.shape[::-1]).T), likely=ORDER)
case("qkv shuffled", "llama", "order", None,
     together(("q_proj", "k_proj", "v_proj"), lambda x: RNG.permutation(x.reshape(-1)).reshape(x.shape)))
case("four shards", "llama", "shards", "P18.order", on("down_proj", joined((2, 0, 3, 1), 1)),
     likely=[("reinterpreted", "W1b")])
case("three shards of rows", "mistral", "shards", "P18.order", on("o_proj", joined((1, 0, 2), 0)),
     likely=[("reinterpreted", "W1b"), ("transposed", "W1")])
case("eight shards", "qwen3", "order", None, on(UP, joined((7, 1, 2, 3, 5, 4, 6, 0), 0)),
     likely=[("reinterpreted", "W1b")], seen=("shards", "P18.order"))
case("same bytes", "qwen2", "reinterpreted", "W1b", on(UP, each(lambda x: x.reshape(x.shape[::-1]))))
case("rope rows q", "qwen2", "rope-rows", "R1b", on("q_proj", each(pairs(8))), likely=ORDER)
case("rope rows k", "qwen2", "rope-rows", "R1b", on("k_proj", each(pairs(8))), likely=ORDER)
case("rope rows back", "llama", "rope-rows", "R1b", on("k_proj", each(unpairs(8))), likely=ORDER)
case("rope rows partial", "qwen3_5_text", "rope-rows", "R1b", on("k_proj", each(pairs(4, 16))), likely=ORDER)
case("rope rows of a norm", "qwen3", "rope-rows", "R1b", on("q_norm", each(pairs(16))))
case("parts", "gpt2", "parts", "W2", on("c_attn", each(lambda x: parts((0, 2, 1), x.ndim - 1)(x))), likely=ORDER)
case("parts by head", "gpt2", "parts", "W2", on("c_attn", each(lambda x: by_head(6, x.ndim - 1)(x))), likely=ORDER)
case("halves", "qwen3_5_text", "halves", "W3", on("q_proj", each(halves(4, 16))), likely=ORDER)
case("gate and up", "qwen2", "exchanged", "W4", swap("gate_proj", "up_proj"))
case("up for gate", "llama", "other-weight", "W4",
     put("model.layers.0.mlp.gate_proj.weight", lambda m: m["model.layers.0.mlp.up_proj.weight"]))
case("interleaved", "qwen2", "interleaved", "W5", interleave, likely=ORDER)
case("keys and values", "qwen2", "exchanged", "W4", swap("k_proj.weight", "v_proj.weight"))
case("bias of v", "qwen2", "exchanged", "W8", swap("k_proj.bias", "v_proj.bias"))
case("layer before", "qwen3", "layer", "W9", shift_layers)
case("embedding for head", "qwen3", "other-weight", "W10",
     put("lm_head.weight", lambda m: m["model.embed_tokens.weight"]))
case("q and k norms", "qwen3", "exchanged", "N11", swap("q_norm", "k_norm"))
case("block norms", "qwen3", "exchanged", "N12", swap("input_layernorm", "post_attention_layernorm"))
case("b and a", "qwen3_5_text", "exchanged", "G3", swap("in_proj_b", "in_proj_a"))
case("decay", "qwen3_5_text", "decay", "G1", on("A_log", number(lambda x: -np.exp(x))))
case("value heads", "qwen3_5_text", "value-heads", "G10", on("in_proj_z", each(tiled(2, 6, 6))), likely=ORDER)
case("value heads out", "qwen3_5_text", "value-heads", "G10", on("out_proj", each(tiled(2, 6, 6, 1))), likely=ORDER)
case("taps", "qwen3_5_text", "taps", "G11", on("conv1d", each(lambda x: x[:, :, ::-1])), likely=ORDER)
case("conv parts", "qwen3_5_text", "parts", "G14", on("conv1d", each(parts((2, 0, 1), 0, [16, 16, 36]))), likely=ORDER)
case("misread", "mistral", "misread", "W12", on(UP, lambda t: ("BF16", t[1].view(np.uint16))))
case("misread and widened", "mistral", "misread", "W12",
     on(UP, lambda t: as_format(values(("BF16", t[1].view(np.uint16))), "F32")))
case("cut", "qwen2", "truncated", "W13", on("_proj.weight", lambda t: ("BF16", bf16_bits(values(t), cut=True))))
case("cut and widened", "qwen2", "truncated", "W13",
     on("_proj.weight", lambda t: as_format(values(("BF16", bf16_bits(values(t), cut=True))), "F32")))
case("rounded on the way", "qwen2", "rounded", None,
     on("_proj.weight", lambda t: as_format(values(as_format(values(t), "BF16")), "F32")))
LARGE = on(UP, number(lambda x: x * 1e6))
case("saturated", "qwen2", "saturated", "W14", on(UP, lambda t: as_format(np.clip(values(t), -65504, 65504), "F16")),
     base=LARGE)
warnings.simplefilter("ignore", RuntimeWarning)  # numbers overflow on purpose
case("overflowed", "qwen2", "overflowed", "W13", on(UP, lambda t: as_format(values(t), "F16")), base=LARGE)
SMALL = on(UP, number(lambda x: x * 1e-4))
case("flushed", "qwen2", "flushed", "W14",
     on(UP, lambda t: as_format(np.where(np.abs(values(t)) < 2.0 ** -14, 0, values(t)), "F16")), base=SMALL,
     likely=OTHER + REVISION)
for kind in ("q8_0", "q4_0", "q5_0", "q4_1", "q5_1"):
    case(kind, "qwen2", "quantised", "W15", on("down_proj", requantised(kind)), likely=REVISION)
case("plus one", "qwen3_5_text", "plus-one", "N6", on("input_layernorm", number(lambda x: x + 1)))
case("less one", "qwen2", "plus-one", "N6", on("input_layernorm", number(lambda x: x - 1)))
case("by sqrt(K)", "qwen2", "scaled", None, on(Q, number(lambda x: x / np.sqrt(8.0))))
case("by 1.01", "qwen2", "scaled", None, on("norm.weight", number(lambda x: x * 1.01)))
case("negated", "qwen2", "scaled", None, on(O, number(lambda x: -x)))
case("by 1.25 in bf16", "llama", "scaled", None, on(O, number(lambda x: x * 1.25)))
case("revision", "qwen2", "revision", None,
     on("_proj.weight", number(lambda x: x + RNG.normal(0, 3e-3, x.shape) * x.std())))
case("shuffled", "qwen3", "order", None,
     on("layers.1.mlp.down_proj", each(lambda x: RNG.permutation(x.reshape(-1)).reshape(x.shape))),
     likely=[("reinterpreted", "W1b")])
case("stride", "qwen3", "stride", "W18", on(UP, each(sheared(64))), likely=OTHER)
case("shards", "qwen2", "shards", "W19", on("embed_tokens", each(lambda x: np.concatenate([x[256:], x[:256]]))),
     likely=ORDER)
FUSED = [("fused", None)]
case("fused in another order", "qwen2", "parts", "W2", fuse((0, 2, 1)), likely=FUSED)
case("fused by group", "llama", "parts", "W2", fuse(by_group=True), likely=FUSED)
case("padded", "qwen2", "vocabulary", "W19", on("embed_tokens", each(lambda x: np.concatenate([x, x[:64]]))))


UNSURE = {"revision", "order", "other", "random"}  # no digest says these


def check(wrong, what, got, want, sure=False):
    """want: of each weight that differs the pairs (kind, id) that may be said, the true one first. What is certain is
    true; sure: and what is true is certain."""
    if isinstance(got, str):
        return wrong.append(f"{what}: {got.strip()}")
    for n in sorted({*got, *want}):
        said, may = got.get(n), want.get(n, ())
        if said is None and None in may:
            continue
        if said is None or said[:2] not in may:
            wrong.append(f"{what}: {n}: {said}, not {may}")
        elif said[2] and said[:2] != may[0]:
            wrong.append(f"{what}: {n}: certain, and wrong: {said}")
        elif sure and not said[2] and said[0] not in UNSURE:
            wrong.append(f"{what}: {n}: only likely: {said}")
    return None


def packed(unmodified):
    """Cases of one family that touch different weights share a model: [family, reference, candidate, {name:
    (case...)}]."""
    out = []
    for c in CASES:
        if sys.argv[2:] and c[0] not in sys.argv[2:]:
            continue
        family, change, base = c[1], c[3], c[6]
        ref = base(unmodified[family]) if base else unmodified[family]
        cand = change(ref)
        names = {k for k in {*ref, *cand} if k not in ref or k not in cand or ref[k][0] != cand[k][0]
                 or ref[k][1].shape != cand[k][1].shape or ref[k][1].tobytes() != cand[k][1].tobytes()}
        assert names, c[0]
        for p in out:
            if not base and p[0] == family and p[1] is unmodified[family] and not names & set(p[3]):
                break
        else:
            p = [family, ref, dict(ref), {}]
            out.append(p)
        for k in names:
            p[3][k] = c
            if k in cand:
                p[2][k] = cand[k]
            else:
                del p[2][k]
    return out


def try_cases(work, models, unmodified, recorded, wrong):
    for n, (family, ref, cand, cases) in enumerate(packed(unmodified)):
        where = os.path.join(work, str(n))
        a = models[family] if ref is unmodified[family] else write_model(models[family], where + "-ref", ref)
        b = write_model(models[family], where, cand)
        ra = write_table(recorded[family], where + "-ref.h5", ref)
        rb = write_table(recorded[family], where + ".h5", cand)
        what = "/".join(sorted({c[0] for c in cases.values()}))
        check(wrong, f"{what}: directories", ask(a, b), {k: [c[5]] for k, c in cases.items()}, True)
        check(wrong, f"{what}: recordings", ask(ra, rb), {k: [c[2], *c[4]] for k, c in cases.items()})
        check(wrong, f"{what}: --model", ask(ra, rb, "--model", a), {k: [c[2]] for k, c in cases.items()}, True)


def try_twins(work, models, unmodified, recorded, wrong):
    """The same numbers in every format, and in GGUF files: not a word."""
    for family, m in unmodified.items():
        wide = {k: as_format(values(t), "F32") for k, t in m.items()}
        base = write_model(models[family], os.path.join(work, f"{family}-wide"), wide)
        tables = write_table(recorded[family], base + ".h5", wide)
        for word in ("F16", "BF16"):
            twin = {k: as_format(values(t), word) for k, t in wide.items()}
            path = write_model(models[family], os.path.join(work, f"{family}-{word}"), twin)
            check(wrong, f"{family} in {word}", ask(base, path), {})
            check(wrong, f"{family} in {word}, recorded",
                  ask(write_table(recorded[family], path + ".h5", twin), tables), {})
    # What a GGUF file holds as 1 + w and -exp(A_log), undone; of no GGUF file it is
    # another revision.
    wide = {k: as_format(values(t), "F32") for k, t in unmodified["qwen3_5_text"].items()}
    one = np.float32(1)
    undone = {k: ("F32", np.log(np.exp(t[1])).astype(np.float32)) if "A_log" in k else
              ("F32", (t[1] * np.float32(1.0001) + one) - one) if "layernorm" in k else t for k, t in wide.items()}
    wide = {k: ("F32", t[1] * np.float32(1.0001)) if "layernorm" in k else t for k, t in wide.items()}
    a, b = write_table(recorded["qwen3_5_text"], os.path.join(work, "a.h5"),
                       wide), write_table(recorded["qwen3_5_text"], os.path.join(work, "b.h5"), undone)
    differ = {k: REVISION for k in wide if wide[k][1].tobytes() != undone[k][1].tobytes()}
    assert len(differ) > 8
    check(wrong, "undone, of no GGUF", ask(a, b), differ)
    with h5py.File(b, "r+") as f:
        f["model"].attrs["format"] = "gguf F32"
    check(wrong, "undone", ask(a, b), {})
    for family in ("llama", "qwen2"):
        path = write_model(models[family], os.path.join(work, f"{family}-fused"), fuse()(unmodified[family]))
        check(wrong, f"{family} fused", ask(models[family], path), {})
        check(wrong, f"{family} split", ask(path, models[family]), {})
    # A model as published, with a vision part; and GPT-2 as transformers 4 wrote it.
    for family, old, new in (("qwen3_5_text", "model.", "model.language_model."), ("gpt2", "transformer.", "")):
        twin = {k.replace(old, new, 1): t for k, t in unmodified[family].items()}
        path = write_model(models[family], os.path.join(work, f"{family}-prefixed"), twin)
        check(wrong, f"{family}, other prefix", ask(models[family], path), {})
        check(wrong, f"{family}, other prefix before", ask(path, models[family]), {})
    for kind in ("f32", "f16"):
        check(wrong, f"GGUF {kind}", ask(models["qwen2"], os.path.join(FIXTURES, "gguf", f"qwen2-trained.{kind}.gguf")),
              {})


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        models = {f: os.path.join(FIXTURES, f"{f}-trained")
                  for f in ("gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text")}
        unmodified = {f: read_model(p) for f, p in models.items()}
        recorded = {}
        for f, p in models.items():
            recorded[f] = os.path.join(work, f"{f}.h5")
            subprocess.run([VERNIER, "capture", "ref", p, "--ids", "1", "--points", "embed", "-o", recorded[f]],
                           check=True, capture_output=True)
        try_cases(work, models, unmodified, recorded, wrong)
        if not sys.argv[2:]:
            try_twins(work, models, unmodified, recorded, wrong)
    for line in wrong:
        print("WRONG", line)
    print(f"{len(CASES)} kinds of differences, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
