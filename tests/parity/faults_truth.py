"""faults_truth.py: the result of every fault of the catalogue for a node's inputs, in numpy.

Written from specs/models.md and specs/faults.md, a model's config.json and its weights. Calls nothing of ours.
Truth(model).predict(fault, checkpoint, recorded) is the tensor that the node behind a checkpoint makes of the recorded
inputs when the engine has the fault there; None when the fault is not one of that node. fault None: the unmodified
formula.
"""
import json
import math
import os
import struct

import numpy as np

DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}


def safetensors(path):
    data = open(path, "rb").read()
    n, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + n])
    out = {}
    for name, t in head.items():
        if name == "__metadata__":
            continue
        raw = data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
        if t["dtype"] == "BF16":
            x = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            x = np.frombuffer(raw, DTYPES[t["dtype"]])
        out[name] = (x.astype(np.float64).reshape(t["shape"]), t["dtype"], raw)
    return out


def half(x):
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(np.float32).astype(np.float16).astype(np.float64)


def half_cut(x):
    """Rounded towards 0."""
    x = np.asarray(x).astype(np.float32)
    with np.errstate(over="ignore"):
        h = x.astype(np.float16)
    return np.where(np.abs(h.astype(np.float32)) > np.abs(x), np.nextafter(h, np.float16(0)), h).astype(np.float64)


def bf16(x):
    u = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((u + 0x7FFF + (u >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def float8(x, most=448, least=-6, digits=3):
    """e4m3: three digits after the first, 448 at most; e5m2: two, 57344, with exponents from -14 on."""
    x = np.clip(x, -most, most)
    unit = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 1e-30))), least) - digits)
    return np.round(x / unit) * unit


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(math.erf)
ACTS = {
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "relu": lambda x: np.maximum(x, 0),
    "quick": lambda x: x * sigmoid(1.702 * x),
    "none": lambda x: x,
    "sigmoid": sigmoid,
}

LINEARS = {"c_attn": "attn.c_attn", "q_proj": "self_attn.q_proj", "k_proj": "self_attn.k_proj",
           "v_proj": "self_attn.v_proj",
           "qg_proj": "self_attn.q_proj", "attn_out": "self_attn.o_proj", "gate_proj": "mlp.gate_proj",
           "up_proj": "mlp.up_proj",
           "down_proj": "mlp.down_proj", "gdn_qkv": "linear_attn.in_proj_qkv", "gdn_z": "linear_attn.in_proj_z",
           "gdn_b": "linear_attn.in_proj_b", "gdn_a": "linear_attn.in_proj_a"}
GPT2 = {"c_attn": "attn.c_attn", "attn_out": "attn.c_proj", "up_proj": "mlp.c_fc", "down_proj": "mlp.c_proj",
        "attn_norm": "ln_1",
        "mlp_norm": "ln_2"}
NORMS = {"attn_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm", "q_norm": "self_attn.q_norm",
         "k_norm": "self_attn.k_norm", "gdn_norm": "linear_attn.norm"}


# Operations that read what is another's; all that attention gives; what no such fault is made at.
REDIRECTED = "P22", "C9", "C9.k", "C9.v", "N14.input"
CONTEXT = "attn_scores", "attn_probs", "attn_context", "k_cache", "v_cache"
UNREAD = ("gdn_conv", "gdn_q_conv", "gdn_k_conv", "gdn_q", "gdn_k", "gdn_g", "gdn_core", "gdn_state", "gdn_conv_state",
          "gate_act", "input")


class Truth:
    def __init__(self, model):
        self.c = c = json.load(open(os.path.join(model, "config.json")))
        self.files = safetensors(os.path.join(model, "model.safetensors"))
        self.gpt2 = c["model_type"] == "gpt2"
        self.hybrid = c["model_type"] == "qwen3_5_text"
        self.D = c["n_embd"] if self.gpt2 else c["hidden_size"]
        self.H = c["n_head"] if self.gpt2 else c["num_attention_heads"]
        self.G = self.H if self.gpt2 else c["num_key_value_heads"]
        self.K = c.get("head_dim") or self.D // self.H
        self.L = c["n_layer"] if self.gpt2 else c["num_hidden_layers"]
        self.eps = c["layer_norm_epsilon"] if self.gpt2 else c["rms_norm_eps"]
        window = None if self.gpt2 or c.get("use_sliding_window") is False else c.get("sliding_window")
        types = c.get("layer_types") or ["sliding_attention"] * self.L
        self.windows = [window if kind == "sliding_attention" else None for kind in types]
        self.window = window # of the layer at hand
        self.past = 0        # tokens of earlier calls
        self.act = {"gelu_new": "tanh", "silu": "silu"}[c["activation_function"] if self.gpt2 else c["hidden_act"]]
        self.rope = {} if self.gpt2 else c["rope_parameters"]
        self.R = int(self.K * self.rope.get("partial_rotary_factor", 1.0))

    # ---- weights ---------------------------------------------------------------------------------

    def file(self, name):
        for prefix in ("", "model.", "transformer."):
            if prefix + name in self.files:
                return prefix + name
        return None

    def w(self, name):
        found = self.file(name)
        return None if found is None else self.files[found][0]

    def name(self, layer, point, kind="weight"):
        if point == "final_norm":
            return ("ln_f." if self.gpt2 else "norm.") + kind
        if point == "logits":
            tied = self.c["tie_word_embeddings"]
            return ("wte.weight" if self.gpt2 else "embed_tokens.weight" if tied
                    else "lm_head.weight") if kind == "weight" else "-"
        if self.gpt2:
            return f"h.{layer}.{GPT2.get(point, '-')}.{kind}"
        stem = {**LINEARS, **NORMS}.get(point, "-")
        if point == "attn_out" and self.is_linear(layer):
            stem = "linear_attn.out_proj"
        return f"layers.{layer}.{stem}.{kind}"

    def is_linear(self, layer):
        return self.hybrid and self.c["layer_types"][layer] == "linear_attention"

    def matrix(self, layer, point):
        """(M, N)"""
        w = self.w(self.name(layer, point))
        return w if w is None or w.ndim != 2 else w.T if self.gpt2 and point != "logits" else w

    def bias(self, layer, point):
        return self.w(self.name(layer, point, "bias"))

    # ---- operations ------------------------------------------------------------------------------

    def stretch(self, other=False):
        return (self.c["max_position_embeddings"] / self.rope["original_max_position_embeddings"] if other
                else self.rope["factor"])

    def factor(self, stretch=False, derived=False):
        """yarn's, of cosine and sine."""
        if "attention_factor" in self.rope and not derived:
            return self.rope["attention_factor"]
        if self.rope.get("rope_type") == "longrope":
            return math.sqrt(1 + math.log(self.rope["factor"]) / math.log(
                self.rope["original_max_position_embeddings"]))
        return 0.1 * math.log(self.stretch(stretch)) + 1 if self.rope.get("rope_type") == "yarn" else 1.0

    def yarn(self, f, theta, R, context=None, truncate=True, stretch=False, whole=False):
        at = lambda n: R * math.log((context or self.rope["original_max_position_embeddings"])
                                    / (2 * math.pi * n)) / (2 * math.log(theta))
        low, high = at(32), at(1)
        if whole:
            low, high = 0, R
        elif truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, R - 1)
        ramp = np.clip((np.arange(R // 2) - low) / (high - low + (0.001 if low == high else 0)), 0, 1)
        return f / self.stretch(stretch) * ramp + f * (1 - ramp)

    def as_queries(self):
        """How many rows of keys each query head gets; None: no other even number of pairs than a key head has."""
        each, left = divmod(self.G * self.K, self.H)
        return each if not (self.gpt2 or left or each < 4 or each % 2 or each == self.K) else None

    def words(self, n):
        """The positions of a call of n tokens as 64-bit integers, read as if they had 32 bits."""
        return np.array([self.past + i // 2 if i % 2 == 0 else 0 for i in range(n)])

    def longest(self):
        c, r = self.c["max_position_embeddings"], self.rope
        return int(c * r["factor"]) if r["rope_type"] == "dynamic" else c

    def by_length(self, R, length):
        """dynamic: another base for a long sequence; longrope: divisors for a short and for a long one."""
        r, most, i = self.rope, self.c["max_position_embeddings"], np.arange(R // 2)
        if r["rope_type"] == "longrope":
            lists = r["long_factor" if length > r["original_max_position_embeddings"] else "short_factor"]
            return r["rope_theta"] ** (-2.0 * i / R) / np.array(lists)
        n = max(length, most)
        return (r["rope_theta"] * (r["factor"] * n / most - r["factor"] + 1) ** (R / (R - 2))) ** (-2.0 * i / R)

    def frequencies(self, theta=None, R=None, kind=None, divide=None, band=None, context=None, length=None, **yarn):
        R = R or self.R
        if kind is None and theta is None and self.rope["rope_type"] in ("dynamic", "longrope"):
            return self.by_length(R, length or sum(self.lengths))
        f = (theta or self.rope["rope_theta"]) ** (-2.0 * np.arange(R // 2) / (divide or R))
        if (kind or self.rope["rope_type"]) == "llama3":
            r = self.rope
            L0, low, high = r["original_max_position_embeddings"], r["low_freq_factor"], r["high_freq_factor"]
            wave = 2 * math.pi / f
            t = np.clip((L0 / wave - low) / (high - low), 0, 1)
            if band is not None:
                t = np.where((t > 0) & (t < 1), band, t)
            f = (1 - t) * f / r["factor"] + t * f
        if (kind or self.rope["rope_type"]) == "yarn":
            f = self.yarn(f, theta or self.rope["rope_theta"], R, context, **yarn)
        return f

    def rotate(self, x, f=None, af=None, pairing="halves", shift=0, angle_factor=1, half=False,
               at=None):
        f = self.frequencies() if f is None else f
        n, K, y = len(f), x.shape[2], x.copy()
        if half:
            p, g = (np.arange(len(x)) + self.past).astype(np.float16), f.astype(np.float32).astype(np.float16)
            a = (p[:, None].astype(np.float32) * g.astype(np.float32)).astype(np.float16).astype(np.float64)
        else:
            a = np.outer(np.arange(len(x)) + self.past + shift if at is None else at, f)
        af = self.factor() if af is None else af
        c, s = af * np.cos(angle_factor * a)[:, None], af * np.sin(angle_factor * a)[:, None]
        i = np.arange(n)
        one, two = {"halves": (i, i + n), "neighbours": (2 * i, 2 * i + 1), "across": (i, i + K // 2)}[pairing]
        y[:, :, one] = x[:, :, one] * c - x[:, :, two] * s
        y[:, :, two] = x[:, :, two] * c + x[:, :, one] * s
        return y

    def normed(self, x, g, b=None, eps=None, offset=0.0, centre=False, outside=False, divisor=None, sum16=False,
               first16=False, inverse=None, squares=None):
        eps = self.eps if eps is None else eps
        if centre:
            x = x - x.mean(-1, keepdims=True)
        as_is = lambda x: x
        inverse, squares = inverse or as_is, squares or as_is
        ss = squares(x * x).sum(-1, keepdims=True)
        ms = squares((half(ss) if sum16 else ss) / (divisor or x.shape[-1]))
        root = np.sqrt(ms) + eps if outside else np.sqrt(squares(ms + eps))
        with np.errstate(invalid="ignore"): # an infinity of another fault
            x = x * inverse(1 / root)
        return (half(x) if first16 else x) * (offset + g) + (0 if b is None else b)

    def attend(self, q, k, v, scale=None, mask=None, window=0, heads=None, leak=None, padding=0, form=None, kept=None,
               chunk=False, blind=None,
               behind=0, twice=False):
        """q: of the last len(q) tokens; heads: what each query head reads, of keys or values; kept: what the cache
        makes of them; leak: the score of a key out of sight; blind: the probability of all keys where none is in sight;
        behind: further keys in a block of so many, which all see; twice: they see the last of earlier calls again."""
        T, H, S = len(q), q.shape[1], len(k)
        each = lambda x: x[:, np.arange(H) // (H // x.shape[1])]
        heads = heads or each
        if kept:
            k, v = kept(k, S - T, 0), kept(v, S - T, 1)
        places = np.arange(-(-S // behind) * behind) if behind else np.arange(S)
        if behind: # what lay there in the first block
            k, v = (np.concatenate([x, [x[j % behind] if j % behind < S else 0 * x[0] for j in places[S:]]])
                    if len(places) > S else x for x in (k, v))
        if twice and S > T:
            k, v, places = *(np.concatenate([x, x[S - T - 1:S - T]]) for x in (k, v)), np.arange(S + 1)
        scale = self.K ** -0.5 if scale is None else scale
        s = np.einsum("ihd,jhd->hij", q, heads(k))
        s = half(s) * scale if form == "scores" else s * scale
        i, j = np.arange(T)[:, None] + (0 if chunk else S - T), places[None]
        see = (j <= i) | (j >= S) if mask is None else mask(i, j)
        window = self.window if window == 0 else window
        if window:
            see = see & (j > i - window)
        z = np.where(see, s, leak(s) if leak else -np.inf)
        top = np.max(z, -1, keepdims=True)
        with np.errstate(invalid="ignore"): # a score of infinity
            e = np.exp(z - np.where(top > -np.inf, top, 0))
        total = e.sum(-1, keepdims=True) + (padding * np.exp(-np.where(np.isfinite(top), top, 0)) if padding else 0)
        p = np.where(total == 0, 0, e / np.where(total == 0, 1, total))
        if form in ("queries", "heads"):
            axis = 1 if form == "queries" else 0
            top = np.max(z, axis, keepdims=True)
            e = np.exp(z - np.where(np.isfinite(top), top, 0))
            total = e.sum(axis, keepdims=True)
            p = np.where(see, e / np.where(total > 0, total, 1), 0)
        elif form in ("plain", "plain half"):
            with np.errstate(over="ignore", invalid="ignore"):
                e = half(np.exp(z)) if form == "plain half" else np.exp(z).astype(np.float32).astype(np.float64)
                p = np.where(see, e / e.sum(-1, keepdims=True).astype(np.float32), 0)
        elif form == "from zero":
            e = np.exp(z - np.maximum(top, 0))
            p = np.where(see, half(e) / e.sum(-1, keepdims=True), 0)
        elif form in ("half", "bf16"):
            p = half(p) if form == "half" else bf16(p)
        if blind:
            p = np.where(see.any(-1)[..., None], p, blind(S))
        return {"attn_scores": s[:, :, :S], "attn_probs": p[:, :, :S],
                "attn_context": np.einsum("hij,jhd->ihd", p, heads(v))}

    # ---- the unmodified model, node by node ------------------------------------------------------

    def inputs(self, layer, point):
        """The recorded tensors that a node reads."""
        at = lambda *names: [f"layer{layer}.{n}" for n in names]
        q = "q_rope" if not self.gpt2 else "q_proj"
        k = "k_rope" if not self.gpt2 else "k_proj"
        normed = not self.gpt2 and self.w(self.name(layer, "q_norm")) is not None
        table = {
            "attn_norm": at("input"), "c_attn": at("attn_norm"), "qg_proj": at("attn_norm"), "v_proj": at("attn_norm"),
            "q_proj": at("qg_proj" if self.hybrid else "attn_norm"), "k_proj": at("attn_norm"),
            "attn_gate": at("qg_proj"),
            "q_norm": at("q_proj"), "k_norm": at("k_proj"),
            "q_rope": at("q_norm" if normed else "q_proj"), "k_rope": at("k_norm" if normed else "k_proj"),
            "attn_scores": at(q, k, "v_proj"), "attn_probs": at(q, k, "v_proj"), "attn_context": at(q, k, "v_proj"),
            "k_cache": at(q, k, "v_proj"), "v_cache": at(q, k, "v_proj"),
            "attn_gated": at("attn_gate", "attn_context"),
            "attn_out": at("gdn_norm" if self.is_linear(max(layer, 0)) else "attn_gated" if self.hybrid
                           else "attn_context"),
            "attn_residual": at("input", "attn_out"), "mlp_norm": at("attn_residual"), "gate_proj": at("mlp_norm"),
            "up_proj": at("mlp_norm"), "mlp_act": at("up_proj") if self.gpt2 else at("gate_proj", "up_proj"),
            "down_proj": at("mlp_act"), "output": at("attn_residual", "down_proj"),
            "final_norm": [f"layer{self.L - 1}.output"], "logits": ["final_norm"],
            "embed": ["token_embed", "pos_embed"],
            "gdn_qkv": at("attn_norm"), "gdn_z": at("attn_norm"), "gdn_b": at("attn_norm"), "gdn_a": at("attn_norm"),
            "gdn_conv": at("gdn_qkv"), "gdn_q_conv": at("gdn_conv"), "gdn_k_conv": at("gdn_conv"),
            "gdn_v": at("gdn_conv"),
            "gdn_q": at("gdn_q_conv"), "gdn_k": at("gdn_k_conv"), "gdn_beta": at("gdn_b"), "gdn_g": at("gdn_a"),
            "gdn_core": at("gdn_q", "gdn_k", "gdn_v", "gdn_g", "gdn_beta"), "gdn_norm": at("gdn_core", "gdn_z"),
        }
        if self.gpt2 and point in ("q_proj", "k_proj", "v_proj"):
            return at("c_attn")
        if point == "embed" and not self.gpt2:
            return []
        return table.get(point, [])

    def redirected(self, fault, layer, point):
        """The names of the values that a node reads if the fault gives it other inputs; None: the fault is not one of
        this node."""
        names = self.inputs(layer, point)
        before = lambda n: "layer%d.%s" % (int(n[5:].split(".")[0]) - 1, n.split(".")[1])
        if fault == "N14.input":
            return [f"layer{layer}.input", names[1]] if point == "output" else None
        if fault.startswith("C9"):
            which = {"C9": (1, 2), "C9.k": (1,), "C9.v": (2,)}[fault]
            return [before(n) if i in which else n for i,
                    n in enumerate(names)] if point in CONTEXT and layer > 0 else None
        if point == "final_norm" and self.L > 1:
            return [f"layer{self.L - 2}.output"]
        if layer < 1 or point in UNREAD:
            return None
        return [before(names[0]), *names[1:]]

    def predict(self, fault, checkpoint, calls):
        """calls: the recorded values of each call so far, the current one last. A node's state is
        given as the rows of all calls."""
        from faults_rules import predict
        layer, point = (int(checkpoint[5:checkpoint.index(".")]),
                        checkpoint.split(".")[1]) if "." in checkpoint else (-1, checkpoint)
        self.window = self.windows[max(layer, 0)]
        self.lengths = [len(c["ids"]) for c in calls]
        self.past = sum(self.lengths[:-1])
        get = lambda name: calls[-1][name].astype(np.float64)
        kept = lambda i: i > 0 and point.startswith(("attn_scores", "attn_probs", "attn_context", "k_cache",
                                                     "v_cache")) or point in ("gdn_conv", "gdn_core")
        names = self.redirected(fault, layer, point) if fault in REDIRECTED else self.inputs(layer, point)
        if names is None or any(n not in calls[-1] for n in names):
            return None
        given = [np.concatenate([c[n] for c in calls]).astype(np.float64) if kept(i) else get(n) for i,
                 n in enumerate(names)]
        fault = None if fault in REDIRECTED else fault
        return predict(self, fault, layer, point, given, get)
