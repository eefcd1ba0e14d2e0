"""unrelated_run.py: a foreign engine, and its recordings.

A Qwen2 or Qwen3 in numpy that computes in float64, stores float16 or float32, shares no code with
vernier and writes hardly more than specs/checkpoint.md asks for. It makes mistakes on request:
{checkpoint name: fault}.
"""
import json
import math
import os
import re

import h5py
import numpy as np

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}

# What can go wrong with the operation that makes a checkpoint of this name. Each is large enough
# that no rounding explains it.
FAULTS = {
    "embed": ("scaled", "one token"),
    "attn_norm": ("no weight", "no mean square", "centred", "one channel"),
    "q_proj": ("no bias", "two biases", "transposed", "one channel", "scaled"),
    "k_proj": ("no bias", "two biases", "scaled", "one token"),
    "v_proj": ("no bias", "two biases", "heads exchanged", "scaled"),
    "q_norm": ("no weight", "left out", "centred", "all heads"),
    "k_norm": ("no weight", "left out", "centred"),
    "q_rope": ("interleaved", "theta", "position + 1", "last position", "first head alone", "left out"),
    "k_rope": ("interleaved", "theta", "position + 1", "last position", "first head alone", "left out"),
    "attn_context": ("head map", "no scale", "no mask", "window", "one channel"),
    "attn_out": ("scaled", "one channel", "one token"),
    "attn_residual": ("left out", "twice"),
    "mlp_norm": ("no weight", "no mean square", "centred"),
    "gate_proj": ("transposed", "scaled", "one channel"),
    "up_proj": ("scaled", "one token"),
    "mlp_act": ("gelu", "exchanged", "one channel"),
    "down_proj": ("scaled", "one channel", "one token"),
    "output": ("left out", "twice"),
    "final_norm": ("no weight", "centred"),
    "logits": ("one channel",),
}


def prompt(name):
    with open(os.path.join(FIXTURES, "prompts", name + ".ids"), encoding="ascii") as f:
        return [int(i) for i in f.read().split(",")]


def load(model):
    """(config, weights in float64)."""
    with open(os.path.join(model, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    with open(os.path.join(model, "model.safetensors"), "rb") as f:
        data = f.read()
    n, weights = int.from_bytes(data[:8], "little"), {}
    for name, t in json.loads(data[8 : 8 + n]).items():
        if name != "__metadata__":
            raw = data[8 + n + t["data_offsets"][0] : 8 + n + t["data_offsets"][1]]
            x = ((np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4") if t["dtype"] == "BF16"
                 else np.frombuffer(raw, TYPES[t["dtype"]]))
            weights[name] = x.astype("f8").reshape(t["shape"])
    return config, weights


def number(f, word, otherwise):
    """The number of a mistake such as "theta 20000"."""
    return float(f[len(word) + 1 :]) if isinstance(f, str) and f.startswith(word + " ") else otherwise


def bf16(x):
    u = np.ascontiguousarray(x, "<f4").view("<u4")
    return ((u + 0x7FFF + (u >> 16 & 1)) & np.uint32(0xFFFF0000)).view("<f4").reshape(np.shape(x))


def stored(x, store):
    """The value as an engine stores it; bfloat16 numbers are kept in float32."""
    return bf16(x) if store == "bf16" else x.astype(store)


def frequencies(K, theta, scaling):
    """scaling: None, or Llama 3's: long wavelengths are stretched, between the two bands a blend."""
    f = theta ** -(np.arange(0, K, 2) / K)
    if scaling:
        low, high, factor, context = (scaling[k] for k in ("low_freq_factor", "high_freq_factor", "factor",
                                                           "original_max_position_embeddings"))
        keep = np.clip((context * f / (2 * np.pi) - low) / (high - low), 0, 1)
        f = keep * f + (1 - keep) * f / factor
    return f


def rotate(x, theta, positions, pairs="half", scaling=None):
    K = x.shape[-1]
    angle = np.asarray(positions)[:, None, None] * frequencies(K, theta, scaling)
    cos, sin, y = np.cos(angle), np.sin(angle), np.empty_like(x)
    a, b = (np.s_[..., : K // 2], np.s_[..., K // 2 :]) if pairs == "half" else (np.s_[..., 0::2], np.s_[..., 1::2])
    y[a], y[b] = x[a] * cos - x[b] * sin, x[b] * cos + x[a] * sin
    return y


def norm(x, weight, eps, f=None, store="<f4", first=False):
    """first: the normed row is rounded before it is multiplied by the weight, as in transformers."""
    if f == "left out":
        return x
    if first:
        ms = (x * x).sum(-1, keepdims=True) / (x.shape[-1] - (f == "one less"))
        z = x / (np.sqrt(ms) + number(f, "outside", 0) if number(f, "outside", 0) else np.sqrt(ms + eps))
        return weight * stored(z, store).astype("f8")
    if f in ("centred", "centred, no weight"):
        x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((1.0 if f == "no mean square"
                     else (x * x).mean((-2, -1) if f == "all heads" else -1, keepdims=True))
                    + number(f, "eps", eps * (10 if f == "eps" else 1)))
    return x if f in ("no weight", "centred, no weight") else weight * x


def padded(weight, columns):
    """Rows padded by some columns, read as if they were not."""
    z = np.concatenate([weight, np.zeros((len(weight), columns))], 1).ravel()
    return z[: weight.size].reshape(weight.shape)


def joined(first, second, ranks):
    """Shards of two matrices in one, rank by rank, and cut in halves."""
    both = [m for r in range(ranks) for m in (np.split(first, ranks)[r], np.split(second, ranks)[r])]
    return np.split(np.concatenate(both), 2)


def linear(x, weight, bias, f=None):
    if isinstance(f, str) and f.startswith("part "):  # "part 1 3": of rank 1 of 3 alone
        rank, ranks = (int(n) for n in f.split()[1:])
        x, weight = np.split(x, ranks, 1)[rank], np.split(weight, ranks, 1)[rank]
    if number(f, "padded", 0):
        weight = padded(weight, int(number(f, "padded", 0)))
    if f == "transposed":
        weight = np.ascontiguousarray(weight).reshape(weight.shape[::-1]).T
    if f == "half sums":
        y = np.zeros((len(x), len(weight)), "f2")
        for i in range(x.shape[1]):
            y += (x[:, i : i + 1] * weight[:, i]).astype("f2")
        return y.astype("f8") + bias
    return x @ weight.T + bias * {"no bias": 0.0, "two biases": 2.0}.get(f, number(f, "biases", 1.0))


def rope(x, theta, f=None, scaling=None):
    T = len(x)
    if isinstance(f, str) and f.startswith("heads "):  # "heads 2 interleaved": the first two alone
        _, n, rest = f.split(" ", 2)
        return np.concatenate([rope(x[:, : int(n)], theta, rest, scaling), rope(x[:, int(n) :], theta, None, scaling)],
                              1)
    if f == "left out":
        return x
    if f == "position + 1, rotated back":
        return rotate(x, theta, -np.arange(1, T + 1), scaling=scaling)
    if isinstance(f, str) and f.startswith("llama3 "):  # "llama3 factor 32"
        _, what, n = f.split(" ")
        return rotate(x, theta, np.arange(T), scaling={**scaling, what: float(n)})
    if isinstance(f, str) and f.startswith("interleaved, "):
        return rotate(x, number(f, "interleaved, theta", theta), np.arange(T) + number(f, "interleaved, from", 0),
                      "interleaved", scaling)
    if isinstance(f, str) and f.startswith("columns "):
        n = int(number(f, "columns", 0))
        return np.concatenate([rotate(x[..., :n], theta, np.arange(T), scaling=scaling), x[..., n:]], -1)
    y = rotate(x, 1e4 if f == "theta" else number(f, "theta", theta),
               {"position + 1": np.arange(1, T + 1), "last position":
                np.full(T, T - 1)}.get(f, np.arange(T) + number(f, "from", 0)) * number(f, "stretch", 1),
               "interleaved" if f == "interleaved" else "half", scaling)
    if f == "first head alone":
        y[:, 1:] = x[:, 1:]
    return y


def slots(x, f, of):
    """What slots hold: "slots values 3", moved to the third before theirs; "blocks both 8", exchanged in pairs."""
    if isinstance(f, str) and f.startswith(f"table {of} "):  # "table values 16 1 0 2": blocks of 16 in that order
        n, *order = (int(i) for i in f.split(" ")[2:])
        j = np.arange(len(x))
        return np.concatenate([x, np.zeros_like(x)])[np.array(order + list(range(len(order), len(x))))[j // n] * n + j
                                                     % n]
    how, which, n = f.split(" ") if isinstance(f, str) and f.count(" ") == 2 else ("", "", 0)
    if how not in ("slots", "blocks") or which not in (of, "both"):
        return x
    n, nothing = int(n), np.zeros_like(x)
    if how == "slots":
        return np.concatenate([x, nothing])[n : n + len(x)] if n > 0 else np.concatenate([nothing, x])[len(x) + n : n]
    j = np.arange(len(x))
    return np.concatenate([x, nothing, nothing])[(j // n ^ 1) * n + j % n]


def attend(q, k, v, store, f=None, written=False):
    """(context, probabilities). written: scores are rounded to the storage format after the product
    and again after scaling."""
    T, H, K = q.shape
    G, y, p = k.shape[1], np.empty_like(q), np.empty((H, T, T))
    k, v = slots(k, f, "keys"), slots(v, f, "values")
    kept = (lambda x: stored(x, store).astype("f8")) if written else (lambda x: x)
    seen = np.ones((T, T), bool) if f == "no mask" else np.tril(np.ones((T, T), bool))
    if isinstance(f, str) and f.startswith("sinks "):  # "sinks 4 24": the first four keys and a window
        first, window = map(int, f.split()[1:])
        seen &= ~np.tril(seen, -window) | (np.arange(T) < first)
    if f == "window" or number(f, "window", 0):
        seen &= ~np.tril(seen, -int(number(f, "window", 16)))
    if f == "own key":  # is not seen
        seen &= ~np.eye(*seen.shape, dtype=bool) | (np.arange(T) == 0)
    if number(f, "unseen", 0):  # one key is masked
        seen[:, int(number(f, "unseen", 0))] = False
    if number(f, "ring", 0):  # a buffer of keys that is cleared when it is full
        i, n = np.arange(T), int(number(f, "ring", 0))
        seen &= i[None] >= i[:, None] // n * n
    for h in range(H):
        g = h % G if f == "head map" else h // (H // G)
        s = kept(kept(q[:, h] @ k[:, g].T) / (1.0 if f == "no scale" else 1 / number(f, "scale", 1 / np.sqrt(K))))
        s = np.where(seen, s, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        p[h] = stored(e / (e.sum(-1, keepdims=True) + number(f, "padding", 0) * np.exp(-s.max(-1, keepdims=True))),
                      store).astype("f8")
        y[:, h] = p[h] @ v[:, g]
    return y, p


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_erf(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def gated(gate, up, store, f=None):
    if f == "gelu":
        return gelu(gate) * up
    if f in ("gelu, stored", "gelu by erf, stored"):  # as transformers: rounded before it is multiplied by up
        return (gelu if f == "gelu, stored" else gelu_erf)(gate).astype(store).astype("f8") * up
    if f == "exchanged":
        gate, up = up, gate
    return gate / (1 + np.exp(-gate)) * up


def add(x, y, f=None):
    return x if f == "left out" else x + y * (2 if f == "twice" else 1)


def spoilt(x, f):
    """Whatever the operation is."""
    x = x.copy()
    if callable(f):
        return f(x)
    if f == "scaled" or number(f, "scaled", 0):
        x *= number(f, "scaled", 1.05)
    elif number(f, "cap", 0):
        x = number(f, "cap", 0) * np.tanh(x / number(f, "cap", 0))
    elif isinstance(f, str) and f.startswith("ranks "):  # "ranks 2 0 1": joined in that order
        parts = np.split(x.reshape(len(x), -1), len(f.split()) - 1, 1)
        x = np.concatenate([parts[int(n)] for n in f.split()[1:]], 1).reshape(x.shape)
    elif number(f, "along tokens", 0):
        x = x.reshape(len(x), int(number(f, "along tokens", 0)), -1).swapaxes(0, 1).reshape(x.shape)
    elif f == "nothing":
        x *= 0  # of both signs
    elif f == "late":  # what was due a row before
        x[1:] = x[:-1].copy()
    elif number(f, "frozen", 0):
        x[int(number(f, "frozen", 0)) :] = x[int(number(f, "frozen", 0))]
    elif f == "one channel":
        x.reshape(len(x), -1)[:, 8 % x[0].size] *= 1.15
    elif f == "one token":
        x[len(x) // 2] *= 1.1
    elif f == "heads exchanged":
        x = x[:, ::-1]
    return x


def engine(model, ids, faults, store, since=0, written=False, first=False):
    """{name: (array, axes)}. Rows before `since` are computed without the faults. written: attend's, and probabilities
    are recorded. first: norm's."""
    c, w = load(model)
    r, T = {}, len(ids)
    K, eps = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"], c["rms_norm_eps"]
    theta = c.get("rope_theta") or c["rope_parameters"]["rope_theta"]
    scaling = c.get("rope_parameters", {}) if c.get("rope_parameters", {}).get("rope_type") == "llama3" else None
    w = {n: stored(t, store).astype("f8") for n, t in w.items()}
    other = (lambda f, x: r[f[6:]][0].astype("f8").reshape(x.shape) if isinstance(f, str) and f.startswith("reads ")
             else x)
    of = lambda f, name: re.sub(r"layers\.\d+", "layers.%d" % number(f, "weights of", 0),
                                name) if number(f, "weights of", -1) >= 0 else name

    def put(name, axes, make):
        f = faults.get(name, faults.get("*"))
        x = make(None)
        if f:
            x = np.concatenate([x[:since], spoilt(make(f), f)[since:]])
        if isinstance(f, str) and f.startswith("rows "):  # "rows 32 64 layer1.gate_proj": these are another's
            _, first, end, other = f.split(" ")
            x = stored(x, store)
            x[int(first) : int(end)] = r[other][0][int(first) : int(end)]
        r[name] = (stored(x, store), axes)
        return r[name][0].astype("f8")

    def scaled_norm(name, axes, x, weight):
        return put(name, axes, lambda f: norm(other(f, x), w[of(f, weight) + ".weight"], eps, f, store, first))

    def product(name, axes, x, weight, *shape):
        return put(name, axes, lambda f: linear(other(f, x), w[of(f, weight) + ".weight"],
                                                w.get(of(f, weight) + ".bias", 0.0), f).reshape(T, *(shape or (-1,))))

    hidden = "token hidden"
    x = put("embed", hidden,
            lambda f: w["model.embed_tokens.weight"][ids if f != "token before" else [*ids[:1], *ids[:-1]]])
    for n in range(c["num_hidden_layers"]):
        m, p = f"model.layers.{n}.", f"layer{n}."
        a = scaled_norm(p + "attn_norm", hidden, x, m + "input_layernorm")
        q, k, v = (product(p + s + "_proj", f"token {h} dim", a, m + f"self_attn.{s}_proj", -1, K)
                   for s, h in (("q", "head"), ("k", "kv_head"), ("v", "kv_head")))
        late = faults.get(p + "q_rope") == "norm behind rope"
        if c["model_type"] == "qwen3":
            q = scaled_norm(p + "q_norm", "token head dim", q, m + "self_attn.q_norm")
            k = scaled_norm(p + "k_norm", "token kv_head dim", k, m + "self_attn.k_norm")
        q = put(p + "q_rope", "token head dim",
                lambda f: norm(rope(q, theta, scaling=scaling), w[m + "self_attn.q_norm.weight"], eps) if f
                and late else rope(q, theta, f, scaling))
        k = put(p + "k_rope", "token kv_head dim", lambda f: rope(k, theta, f, scaling))
        if written:
            wrong = faults.get(p + "attn_context")
            put(p + "attn_probs", "head token key", lambda f: attend(q, k, v, store, wrong, True)[1])
        cache = (lambda f, own, kind, name: r[f"layer{f.split()[-1]}.{name}"][0].astype("f8") if isinstance(f, str)
                 and re.match(kind, f) else own)
        y = put(p + "attn_context", "token head dim",
                lambda f: attend(q, cache(f, k, "(cache|keys) of", "k_rope"),
                                 cache(f, v, "(cache|values) of", "v_proj"), store, f, written)[0])
        y = product(p + "attn_out", hidden, y.reshape(T, -1), m + "self_attn.o_proj")
        x = put(p + "attn_residual", hidden, lambda f: add(other(f, x), y, f))
        a = scaled_norm(p + "mlp_norm", hidden, x, m + "post_attention_layernorm")
        gate, up = (product(p + s, "token ffn", a, m + "mlp." + s) for s in ("gate_proj", "up_proj"))
        for s, half in (("gate_proj", 0), ("up_proj", 1)):
            if number(faults.get(p + s), "shards", 0):
                both = joined(*(w[m + f"mlp.{s}.weight"] for s in ("gate_proj", "up_proj")),
                              int(number(faults[p + s], "shards", 0)))
                gate, up = (put(p + s, "token ffn", lambda f: a @ both[half].T) if half == i else y for i,
                            y in enumerate((gate, up)))
        act = put(p + "mlp_act", "token ffn", lambda f: gated(gate, up, store, f))
        y = product(p + "down_proj", hidden, act, m + "mlp.down_proj")
        x = put(p + "output", hidden, lambda f: add(other(f, x), y, f))
    x = scaled_norm("final_norm", hidden, x, "model.norm")
    product("logits", "token vocab", x, "model.embed_tokens" if c["tie_word_embeddings"] else "lm_head")
    return r


def write(path, model, ids, tensors, precision, calls=None, rows=None, position=0):
    """calls: number of tokens of each step. rows: only this many last rows of each. position: that
    of the first token in the file."""
    calls = calls or [len(ids)]
    with h5py.File(path, "w") as f:
        f.attrs.update(format="vernier-checkpoint", format_version=1, complete=1)
        run = f.create_group("run")
        run.attrs.update(engine="numpy", precision=precision)
        run["token_ids"], run["positions"] = np.array(ids, "<i4"), np.arange(len(ids), dtype="<i4") + np.int32(position)
        with open(os.path.join(model, "config.json"), encoding="utf-8") as config:
            f.create_group("model").attrs.update(config=config.read())
        past = 0
        for number, tokens in enumerate(calls):
            step, first = f.create_group(f"step.{number}"), max(0, tokens - rows) if rows else 0
            step.attrs.update(position=past, tokens=tokens, first_row=first, rows=tokens - first)
            for order, (name, (x, axes)) in enumerate(tensors.items()):
                x = x[past + first : past + tokens]
                step[name.replace(".", "/")] = (x.view("<u4") >> 16).astype("<u2") if precision == "bf16" else x
                step[name.replace(".", "/")].attrs.update(order=order, axes=axes,
                                                          **({"dtype": "bf16"} if precision == "bf16" else {}))
            past += tokens
