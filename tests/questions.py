#!/usr/bin/env python3
"""questions.py VERNIER: what specs/questions.md says is told, is told.

The candidate is an engine of somebody else's: a Qwen2 or Qwen3 in numpy that stores float16, shares no code with vernier,
writes hardly more than specs/checkpoint.md asks for, and makes one known mistake at a time. A healthy one must be within limits.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as e:
    print(f"questions.py: no {e.name}; skipped")
    sys.exit(77)

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}


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
            x = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4") if t["dtype"] == "BF16" else np.frombuffer(raw, TYPES[t["dtype"]])
            weights[name] = x.astype("f8").reshape(t["shape"])
    return config, weights


def rotate(x, theta, positions, pairs="half"):
    K = x.shape[-1]
    angle = np.asarray(positions)[:, None, None] * theta ** -(np.arange(0, K, 2) / K)
    cos, sin, y = np.cos(angle), np.sin(angle), np.empty_like(x)
    a, b = (np.s_[..., : K // 2], np.s_[..., K // 2 :]) if pairs == "half" else (np.s_[..., 0::2], np.s_[..., 1::2])
    y[a], y[b] = x[a] * cos - x[b] * sin, x[b] * cos + x[a] * sin
    return y


def engine(model, ids, fault, store):
    """{name: (array, axes)}; the fault is made in layer 1 alone, but a wrong eps, which is everywhere."""
    c, w = load(model)
    r, T, D, H = {}, len(ids), c["hidden_size"], c["num_attention_heads"]
    G, K = c["num_key_value_heads"], c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    theta = c.get("rope_theta") or c["rope_parameters"]["rope_theta"]
    eps = c["rms_norm_eps"] * (10 if fault == "eps" else 1)
    w = {n: t.astype(store).astype("f8") for n, t in w.items()}

    def put(name, x, axes):
        r[name] = (x.astype(store), axes)
        return r[name][0].astype("f8")

    def norm(x, name):
        return w[name] * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)

    def linear(x, name):
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0.0)

    def rope(x, key, f):
        if f == "no rope on k" and key:
            return x
        y = rotate(x, 1e4 if f == "theta" else theta, {"position + 1": np.arange(1, T + 1), "last position": np.full(T, T - 1)}.get(f, np.arange(T)),
                   "interleaved" if f == "interleaved" else "half")
        if f == "first head alone":
            y[:, 1:] = x[:, 1:]
        return y

    x = put("embed", w["model.embed_tokens.weight"][ids], "token hidden")
    for n in range(c["num_hidden_layers"]):
        m, p, f = f"model.layers.{n}.", f"layer{n}.", fault if n == 1 else None
        a = put(p + "attn_norm", norm(x, m + "input_layernorm.weight"), "token hidden")
        q, k, v = (put(p + s + "_proj", linear(a, m + f"self_attn.{s}_proj").reshape(T, -1, K), f"token {h} dim")
                   for s, h in (("q", "head"), ("k", "kv_head"), ("v", "kv_head")))
        if c["model_type"] == "qwen3":
            late = f == "norm behind rope"
            q = put(p + "q_norm", q if late else norm(q, m + "self_attn.q_norm.weight"), "token head dim")
            k = put(p + "k_norm", norm(k, m + "self_attn.k_norm.weight"), "token kv_head dim")
        q = rope(q, False, f)
        q = put(p + "q_rope", norm(q, m + "self_attn.q_norm.weight") if f == "norm behind rope" else q, "token head dim")
        k = put(p + "k_rope", rope(k, True, f), "token kv_head dim")
        context = np.empty((T, H, K))
        for h in range(H):
            g = h % G if f == "head map" else h // (H // G)
            s = np.where(np.tril(np.ones((T, T), bool)), q[:, h] @ k[:, g].T / np.sqrt(K), -np.inf)
            e = np.exp(s - s.max(-1, keepdims=True))
            context[:, h] = (e / e.sum(-1, keepdims=True)).astype(store).astype("f8") @ v[:, g]
        context = put(p + "attn_context", context, "token head dim")
        o = put(p + "attn_out", linear(context.reshape(T, -1), m + "self_attn.o_proj"), "token hidden")
        x = put(p + "attn_residual", x + o, "token hidden")
        a = put(p + "mlp_norm", norm(x, m + "post_attention_layernorm.weight"), "token hidden")
        gate, up = (put(p + s, linear(a, m + "mlp." + s), "token ffn") for s in ("gate_proj", "up_proj"))
        act = put(p + "mlp_act", gate / (1 + np.exp(-gate)) * up, "token ffn")
        down = linear(act, m + "mlp.down_proj")
        if f == "one channel":
            down[:, 8] *= 1.15
        down = put(p + "down_proj", down, "token hidden")
        x = put(p + "output", x + down, "token hidden")
    x = put("final_norm", norm(x, "model.norm.weight"), "token hidden")
    put("logits", x @ w["model.embed_tokens.weight" if c["tie_word_embeddings"] else "lm_head.weight"].T, "token vocab")
    return r


def copy(to, source):
    """A wrong capture: the run is right, and this checkpoint is filed as that one."""
    def change(r):
        r[to] = (r[source][0], r[to][1])
    return change


def shifted(r):
    r["logits"] = (np.roll(r["logits"][0], -1, axis=0), r["logits"][1])


def overflow(r):
    x = r["layer1.mlp_act"][0].copy()
    x[40:, 5] = np.inf
    r["layer1.mlp_act"] = (x, "token ffn")


def one_layer_for_all(r):
    for name in [n for n in r if n.startswith("layer0.")]:
        r[name] = r["layer1." + name[7:]]


def write(path, model, ids, tensors, precision):
    with h5py.File(path, "w") as f:
        f.attrs.update(format="vernier-checkpoint", format_version=1, complete=1)
        run = f.create_group("run")
        run.attrs.update(engine="numpy", precision=precision)
        run["token_ids"], run["positions"] = np.array(ids, "<i4"), np.arange(len(ids), dtype="<i4")
        with open(os.path.join(model, "config.json"), encoding="utf-8") as config:
            f.create_group("model").attrs.update(config=config.read())
        step = f.create_group("step.0")
        step.attrs.update(position=0, tokens=len(ids))
        for order, (name, (x, axes)) in enumerate(tensors.items()):
            step[name.replace(".", "/")] = x
            step[name.replace(".", "/")].attrs.update(order=order, axes=axes)


# (questions, family, prompt, fault or change of the capture, exit status, what the report says: regular expressions)
F16 = [
    ("5 19", "qwen2", "p070", None, 0, ["within limits", r"worst nmse .* \((0\.9|1)[0-9.]* x floor\)"]),
    ("1 4 8 9 29", "qwen2", "p070", "interleaved", 1, ["origins +layer1.q_rope, layer1.k_rope", "tokens 1-69 of 70 carry 100 %",
                                                 "within limits: layer1.q_proj", r"OUTSIDE +logits"]),
    ("9", "qwen2", "p001", "interleaved", 0, ["1 token: faults of rotations, masks and caches may not show"]),
    ("9 29", "qwen2", "p070", "theta", 1, ["origins +layer1.q_rope, layer1.k_rope", "it grows with the token"]),
    ("11", "qwen2", "p070", "position + 1", 1, ["origins +layer1.q_rope, layer1.k_rope", "dims 0, 4 of 8 carry 9"]),
    ("11", "qwen2", "p070", "last position", 1, ["origins +layer1.q_rope, layer1.k_rope", "tokens 0-68 of 70 carry 100 %"]),
    ("10", "qwen2", "p070", "first head alone", 1, ["heads 1-5 of 6 carry 100 %", "kv head 1 of 2 carries 100 %"]),
    ("26", "qwen2", "p070", "no rope on k", 1, ["starts at layer1.k_rope:", "its numbers are those of layer1.k_proj in the reference"]),
    ("15 18", "qwen2", "p070", "head map", 1, ["starts at layer1.attn_context:", "heads 1, 4 of 6 carry 100 %",
                                               "first token is not its v_proj in 2 of 6 heads"]),
    ("6 27", "qwen2", "p070", "one channel", 1, ["starts at layer1.down_proj:", "channel 8 of 48 carries 9", "0.99964"]),
    ("7 12", "qwen3", "p070", "norm behind rope", 1, ["starts at layer1.q_norm:", "those of layer1.q_proj", "q_rope is no rotation of q_norm"]),
    ("13", "qwen2", "p070", overflow, 1, ["nonfinite 30, limit 0", "not finite is in tokens 40-69 of 70", "ffn channel 5 of 128"]),
    ("16 28", "qwen2", "p070", shifted, 1, ["starts at logits:", r"row t of it is row t \+ 1 of the reference", "kl_mean_over_floor"]),
    ("21", "qwen2", "p070", copy("final_norm", "layer1.output"), 1, ["starts at final_norm:", "those of layer1.output in the reference"]),
    ("22", "qwen2", "p070", copy("layer0.attn_residual", "layer0.attn_out"), 1, ["those of layer0.attn_out", "output is not attn_residual"]),
    ("26", "qwen2", "p070", one_layer_for_all, 1, ["starts at layer0.attn_norm:", "those of layer1.attn_norm in the reference"]),
]
F32 = [
    ("19", "qwen2", "p070", None, 0, ["within limits"]),
    ("25", "qwen2", "p070", "eps", 1, ["starts at layer0.attn_norm:", r"norm ratio 0\.99"]),
]


def ask(vernier, folder, case, store, precision):
    numbers, family, prompt, fault, expected, words = case
    model, at = os.path.join(FIXTURES, family + "-trained"), lambda f: os.path.join(folder, f)
    with open(os.path.join(FIXTURES, "prompts", prompt + ".ids"), encoding="ascii") as f:
        ids = [int(i) for i in f.read().split(",")]
    ref = at(f"{family}.{prompt}.h5")
    if not os.path.exists(ref):
        subprocess.run([vernier, "capture", "ref", model, "--ids", ",".join(map(str, ids)), "-o", ref], check=True, stderr=subprocess.DEVNULL)
    with np.errstate(over="ignore"):
        r = engine(model, ids, fault if isinstance(fault, str) else None, store)
    if callable(fault):
        fault(r)
    write(at("cand.h5"), model, ids, r, precision)
    floor = ["--model", model] if precision == "f16" else []
    run = subprocess.run([vernier, "compare", ref, at("cand.h5"), *floor], capture_output=True, text=True, check=False)
    missing = [w for w in words if not re.search(w, run.stdout)]
    good = run.returncode == expected and not missing
    what = fault.__qualname__.split(".")[0] if callable(fault) else fault or "healthy"
    print(f"{'ok    ' if good else 'FAILED'} {precision} {numbers:10} {what}{'' if good else f': exit {run.returncode}, without {missing}'}")
    if not good:
        print(run.stdout[:2500], run.stderr)
    return good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        asked = [ask(sys.argv[1], folder, c, "<f2", "f16") for c in F16] + [ask(sys.argv[1], folder, c, "<f4", "f32") for c in F32]
    print(f"{sum(asked)} passed, {len(asked) - sum(asked)} failed")
    sys.exit(0 if all(asked) else 1)


if __name__ == "__main__":
    main()
