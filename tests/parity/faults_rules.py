"""faults_rules.py: the faults themselves, for faults_truth.py: for each operation, the correct
formula and that of each fault."""
import math

import numpy as np

import faults_blocks
import faults_gdn
from faults_truth import ACTS, bf16, float8, half, half_cut

THETA = {"R2.1e4": 1e4, "R2.5e5": 5e5, "R2.1e6": 1e6, "R2.1e7": 1e7, "R2.1.5e5": 1.5e5}
EPS = {"N1.1e-5": 1e-5, "N1.1e-6": 1e-6, "N1.1e-12": 1e-12}
TWINS = {"W9.next": 1, "W9.before": -1, "W9.first": None}
TEMPERATURES = {"M9.temperature": 2, "M9.0.7": 0.7}
THREE = "kqv", "kvq", "vqk", "vkq"
ORDERS = {"W2." + o: o for o in ("qvk", "kqv", "kvq", "vqk", "vkq")}


def rope(t, fault, point, x, get, layer):
    if fault is None:
        return t.rotate(x)
    if fault in THETA:
        return t.rotate(x, t.frequencies(THETA[fault]))
    if fault in ("R3b.q", "R3b.k") and point[0] != fault[-1]:
        return None
    proj = lambda: get(f"layer{layer}.{point[0]}_proj")
    weight = lambda: t.w(t.name(layer, point[0] + "_norm"))
    one = 1.0 if t.hybrid else 0.0
    rules = {
        "R1": lambda: t.rotate(x, pairing="neighbours"), "R3.plus": lambda: t.rotate(x, shift=1),
        "R3.minus": lambda: t.rotate(x, shift=-1),
        "R3b.next": lambda: t.rotate(x, shift=min(t.past, 1)), "R3b.last": lambda: t.rotate(x, shift=-min(t.past, 1)),
        "R3b.zero": lambda: t.rotate(x, shift=-t.past),
        "R3b.stuck": lambda: t.rotate(x, at=np.full(len(x), t.lengths[0]) if t.past else np.arange(len(x))),
        "R3b.double": lambda: t.rotate(x, at=t.past + np.arange(len(x)) + (t.past > 0) * (
            t.past + np.arange(len(x)) - t.lengths[0])),
        "R3b.twice": lambda: t.rotate(x, shift=t.past), "R3.words": lambda: t.rotate(x, at=t.words(len(x))),
        "R16.next": lambda: t.rotate(x, np.roll(t.frequencies(), -1)),
        "R16.before": lambda: t.rotate(x, np.roll(t.frequencies(), 1)),
        "R17.short": lambda: t.rotate(x, t.frequencies(length=1)), "R17.long": lambda: t.rotate(x, t.frequencies(
            length=t.longest())), "R17.call": lambda: t.rotate(x, t.frequencies(length=len(x))),
        "R14": lambda: t.rotate(x, t.frequencies() * (np.arange(t.R // 2) % 3 == 0)),
        "R5.frequencies": lambda: t.rotate(x, t.frequencies(kind="default")),
        "R6.columns": lambda: t.rotate(x, t.frequencies(whole=True)),
        "R6.stretch": lambda: t.rotate(x, t.frequencies(stretch=True), t.factor(stretch=True)),
        "R3b.q": lambda: t.rotate(x, shift=1), "R3b.k": lambda: t.rotate(x, shift=1),
        "R4.all": lambda: t.rotate(x, t.frequencies(R=t.K)), "R4.across": lambda: t.rotate(x, pairing="across"),
        "R4.exponent": lambda: t.rotate(x, t.frequencies(divide=t.K)),
        "R5.all": lambda: t.rotate(x, t.frequencies(kind="default"), 1),
        "R5.factor": lambda: t.rotate(x, af=1), "R6.squared": lambda: t.rotate(x, af=t.factor() ** 2),
        "R6.root": lambda: t.rotate(x, af=t.factor() ** 0.5),
        "R6.derived": lambda: t.rotate(x, af=t.factor(derived=True)),
        "R6.context": lambda: t.rotate(x, t.frequencies(context=t.c["max_position_embeddings"])),
        "R6.ramp": lambda: t.rotate(x, t.frequencies(truncate=False)),
        "R7.all": lambda: t.rotate(x, t.frequencies(kind="default") / t.rope.get("factor", 1)),
        "R7.kept": lambda: t.rotate(x, t.frequencies(band=1)), "R7.scaled": lambda: t.rotate(x, t.frequencies(band=0)),
        "R2.from": lambda: np.where((np.arange(len(x)) + t.past < 16)[:, None, None], t.rotate(x),
                                    t.rotate(x, t.frequencies(theta=3000.0))),
        "R8": lambda: t.rotate(x, angle_factor=-1), "R10": lambda: t.rotate(x, angle_factor=2), "R12": lambda: x,
        "R13": lambda: t.rotate(x, half=True),
        "N8.applied": lambda: t.rotate(t.normed(x, 1.0)),
        "N10": lambda: t.normed(t.rotate(proj()), weight(), offset=one),
    }
    return rules[fault]() if fault in rules else None


def attention(t, fault, x):
    q, k, v = x
    K, scale = t.K, t.K ** -0.5
    if fault == "A11.kv":
        return t.attend(q, v, k)
    if fault == "A11.qk":
        return t.attend(k, q, v)
    if fault and fault.startswith("A24."):
        return t.attend(*(np.roll(x, 1, 1) if of in fault[4:] else x for of, x in zip("qkv", (q, k, v))))
    if fault == "R9":
        return t.attend(q, k, t.rotate(v))
    rules = {
        None: {}, "A1.missing": {"scale": 1.0}, "A1.twice": {"scale": scale ** 2}, "A1.hidden": {"scale": t.D ** -0.5},
        "A1.head": {"scale": 1 / K}, "A1.rotated": {"scale": t.R ** -0.5},
        "A2": {"mask": lambda i, j: i * j > -1}, "A3.strict": {"mask": lambda i, j: j < i},
        "A3.ahead": {"mask": lambda i, j: j <= i + 1},
        "A4": {"leak": lambda s: 0 * s}, "A4.one": {"leak": lambda s: s + 1}, "C2.seen": {"behind": 16},
        "C11.last": {"twice": True},
        "A3.uniform": {"mask": lambda i, j: j < i, "blind": lambda S: 1 / S},
        "A3.nan": {"mask": lambda i, j: j < i, "blind": lambda S: np.nan},
        "A5.missing": {"window": None}, "A5.layer": {"window": max(w or 0 for w in t.windows)},
        "A5.wide": {"window": (t.window or 0) + 1},
        "A5.sinks": {"window": None, "mask": lambda i, j: (j <= i) & ((j > i - (t.window or 0)) | (j < 4))},
        "A5.narrow": {"window": (t.window or 0) - 1}, "A6": {"heads": lambda x: x[:, np.arange(t.H) % t.G]},
        "A3.blocks": {"mask": lambda i, j: j // 16 <= i // 16},
        "A3.prefix": {"mask": lambda i, j: (j <= i) | (j < 16)},
        "A5.call": {"window": None, "mask": lambda i, j: (j <= i) & (j > i.min() - (t.window or 0))},
        "A5.overwritten": {"window": None, "mask": lambda i, j: (j <= i) & (j > i.max() - (t.window or 0))},
        "C5.stale": {"mask": lambda i, j: (j <= i) & ((j <= i.max() - 2) | (i.min() == 0))},
        "A12.zero": {"form": "from zero"}, "A23": {"mask": lambda i, j: (j <= i) & ((j > 0) | (i.min() == 0))},
        "A14": {"padding": 8}, "A22": {"padding": 1}, "A3.chunk": {"chunk": True},
        "A7.zeros": {"heads": lambda x: np.pad(x, ((0, 0), (0, t.H - t.G), (0, 0)))},
        "A7.flat": {"heads": lambda x: np.stack([np.pad(x, ((0, h // t.G), (0, 0), (0, 0)))[h // t.G:, h % t.G]
                                                 for h in range(t.H)], 1)},
        "A10.queries": {"form": "queries"}, "A10.heads": {"form": "heads"}, "A12": {"form": "plain"},
        "A12.half": {"form": "plain half"},
        "A13.f16": {"form": "half"}, "A13.bf16": {"form": "bf16"}, "P2": {"form": "scores"},
    }
    if fault in ("C1.late", "C1.early"):
        by = 2 if fault == "C1.late" else -2
        return t.attend(q, k, v, kept=lambda x, past, values: moved_later(x, t.lengths, by))
    if fault in RECACHED:
        rotated = recached(t, fault, k)
        return t.attend(q, k, v, kept=lambda x, past,
                        values: x if values else np.concatenate([rotated[:past], x[past:]]))
    if fault in KEPT:
        return t.attend(q, k, v, kept=lambda x, past, values: KEPT[fault](x, past, values, t.window))
    return t.attend(q, k, v, **rules[fault]) if fault in rules else None


def later(x, n):
    return np.concatenate([x[n:], np.zeros_like(x[:n])])


def earlier(x, n):
    return np.concatenate([np.zeros_like(x[:n]), x[:-n]])


def exchanged(x):
    """Exchanges blocks of sixteen tokens in pairs; positions after the last token are 0."""
    blocks = np.concatenate([x, np.zeros((-len(x) % 32, *x.shape[1:]))]).reshape(-1, 2, 16, *x.shape[1:])
    return blocks[:, ::-1].reshape(-1, *x.shape[1:])[:len(x)]


def heads_first(x):
    """The bytes of sixteen tokens (16,G,K) as if they were (G,16,K)."""
    blocks = np.concatenate([x, np.zeros((-len(x) % 16, *x.shape[1:]))])
    return blocks.reshape(-1, x.shape[1], 16, x.shape[2]).transpose(0, 2, 1, 3).reshape(blocks.shape)[:len(x)]


def moved_later(x, lengths, by):
    """Tokens of calls after the first, each written `by` slots late into a cache that was empty."""
    first, cache = lengths[0], np.zeros((len(x) + abs(by), *x.shape[1:]))
    cache[:first] = x[:first]
    for at in range(first, len(x)):
        if at + by >= 0:
            cache[at + by] = x[at]
    return cache[:len(x)]


def int8_by_127_5(x):
    """(tokens, heads, K): each head's numbers, in int8 by their largest / 127.5, and back by it / 127."""
    most = np.abs(x).max(-1, keepdims=True)
    return np.clip(np.round(x / most * 127.5), -127, 127) * most / 127


def int8_bare(x):
    return np.round(x / np.abs(x).max(-1, keepdims=True) * 127)


def empty_in_one(x, past):
    y = x.copy()
    y[:past, 0] = 0
    return y


# Of keys (values: of values), `past` tokens of which are of earlier calls, what an attention
# with a window reads.
KEPT = {
    "C1": lambda x, past, values, window: np.stack([x[max(range(j, len(x), 16))] for j in range(len(x))]),
    "C1.before": lambda x, past, values, window: later(x, 1), "C3": lambda x, past, values,
    window: later(x, 1) if values else x,
    "C1.after": lambda x, past, values, window: earlier(x, 1), "C3.after": lambda x, past, values,
    window: earlier(x, 1) if values else x,
    "C2": lambda x, past, values, window: np.concatenate([x[:(len(x) - 1) // 16 * 16], x[:(len(x) - 1) % 16 + 1]]),
    "C4": lambda x, past, values, window: exchanged(x),
    "C5": lambda x, past, values, window: np.concatenate([x[:past], 0 * x[past:]]) if past else x,
    "C5.before": lambda x, past, values, window: x[np.minimum(np.arange(len(x)), past - 1)] if past else x,
    "C6": lambda x, past, values, window: x if values else heads_first(x),
    "C7.f16": lambda x, past, values, window: half(x) if past else x, "C7.f8": lambda x, past, values,
    window: float8(x) if past else x,
    "C7.e5m2": lambda x, past, values, window: float8(x, 57344, -14, 2) if past else x,
    "C7.int8": lambda x, past, values, window: int8_by_127_5(x) if past else x,
    "C7.bare": lambda x, past, values, window: int8_bare(x) if past else x,
    "C12": lambda x, past, values, window: empty_in_one(x, past),
    "C14": lambda x, past, values, window: np.concatenate([np.roll(x[:past], 1, 1), x[past:]]),
    "C14.k": lambda x, past, values, window: x if values else KEPT["C14"](x, past, values, window),
    "C14.v": lambda x, past, values, window: KEPT["C14"](x, past, values, window) if values else x,
    "C15": lambda x, past, values, window: np.concatenate([x[:past][::-1], x[past:]]) if values else x,
    "C16": lambda x, past, values, window: np.concatenate([np.roll(x[:past], x.shape[2] // 2, 2), x[past:]]) if values
    else x,
    "C6.whole": lambda x, past, values, window: x if values else np.concatenate(
        [x[:past].transpose(1, 0, 2).reshape(x[:past].shape), x[past:]]),
    "C10.k": lambda x, past, values, window: x if values else np.concatenate([x[:past] / 4, x[past:]]),
    "C10.v": lambda x, past, values, window: np.concatenate([x[:past] / 4, x[past:]]) if values else x,
    "C8": lambda x, past, values, window: np.concatenate([x[1:], x[max(len(x) - window, 0)][None]]) if past
    and not values else x,
}


RECACHED = "R10.cached", "R10.again", "R11"


def recached(t, fault, k):
    """All keys rotated forward or back; or the keys of a call, once for each later call."""
    since = lambda p: len(t.lengths) - 1 - np.searchsorted(np.cumsum(t.lengths), p,
                                                           side="right") if fault == "R10.again" else 1
    factors = [since(p) * (-1 if fault == "R11" else 1) for p in range(len(k))]
    rotated = {n: t.rotate(k, angle_factor=n, shift=-t.past) for n in set(factors)}
    return np.stack([rotated[n][p] for p, n in enumerate(factors)])


def cache(t, fault, point, q, k, v):
    if fault in RECACHED:
        return np.concatenate([recached(t, fault, k)[:t.past], k[t.past:]]) if point == "k_cache" else v
    rules = {None: (k, v), "A11.kv": (v, k), "A11.qk": (q, v), "R9": (k, None if t.gpt2 else t.rotate(v))}
    return rules[fault][point == "v_cache"] if fault in rules else None


def halves_to_neighbours(w, K):
    """The rows of each head in GGUF's order: row 2i is row i, row 2i + 1 is row i + K/2."""
    order = np.arange(K).reshape(2, K // 2).T.ravel()
    return w.reshape(-1, K, *w.shape[1:])[:, order].reshape(w.shape)


def neighbours_to_halves(w, K):
    order = np.arange(K).reshape(K // 2, 2).T.ravel()
    return w.reshape(-1, K, *w.shape[1:])[:, order].reshape(w.shape)


def read_as_other(t, name):
    x, dtype, raw = t.files[t.file(name)]
    if dtype == "F16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(x.shape)
    return np.frombuffer(raw, "<f2").astype(np.float64).reshape(x.shape)


def sheared(w, pad):
    wide = np.concatenate([w, np.zeros((len(w), pad))], 1)
    return wide.ravel()[:w.size].reshape(w.shape)


def apart(x, n):
    """Rows that begin n numbers apart in memory; 0 behind the end."""
    flat = np.concatenate([x.ravel(), np.zeros(len(x) * n + x.shape[1])])
    return np.stack([flat[i * n: i * n + x.shape[1]] * (np.arange(i * n, i * n + x.shape[1]) < x.size)
                     for i in range(len(x))])


def written(y, n):
    """Rows written n numbers apart, one after the other, and read as if they were packed."""
    to = np.zeros(y.size + n * len(y))
    for i, row in enumerate(y):
        to[i * n: i * n + len(row)] = row
    return to[: y.size].reshape(y.shape)


def truncated(w):
    return (w.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def parts_first(x, inner):
    """The columns in parts of `inner`, the parts before the tokens, read as if they were not."""
    return x.reshape(len(x), -1, inner).transpose(1, 0, 2).reshape(x.shape)


def in_turn(x):
    h = (len(x) + 1) // 2
    return x[[t % 2 * h + t // 2 for t in range(len(x))]]


def log_softmax(x):
    z = x - x.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def flushed(x):
    y = half(x)
    return np.where(np.abs(y) < 2.0 ** -14, 0, y)


EMBED, COLUMNS = ("token_embed", "embed"), ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
TILES = {"P9": lambda tile: tile % 2 == 1, "P9.tile": lambda tile: tile == 2}
OTHER_HEAD = {"G18.head": -1, "G18.before": 1}  # by how many heads z is moved
# What is made of an unmodified result: by points, or everywhere.
BEHIND = {
    "A9": (("attn_context",), lambda t, x: parts_first(x, t.K)),
    "M9.cap": (("logits",), lambda t, x: 30 * np.tanh(x / 30)),
    "M9.log": (("logits",), lambda t, x: log_softmax(x)),
    "M5.added": (EMBED, lambda t, x: np.concatenate([0 * x[:1], x[:-1]])),
    "M5.dropped": (EMBED, lambda t, x: np.concatenate([x[1:], 0 * x[:1]])), "P14": (EMBED, lambda t, x: in_turn(x)),
    "P18.axis": (COLUMNS, lambda t, x: parts_first(x, x[0].size // 2)),
    "P1": (None, lambda t, x: half(x)), "P1.saturated": (None, lambda t, x: np.clip(half(x), -65504, 65504)),
    "P3": (None, lambda t, x: flushed(x)),
    "P5": (None, lambda t, x: half_cut(x)), "P5.bf16": (None, lambda t, x: truncated(x)), "P9": (None, None),
    "P9.tile": (None, None),
}


def sliced(t, point):
    """Parts of a product, no products."""
    return (point in ("gdn_q_conv", "gdn_k_conv", "gdn_v", "attn_gate") or t.gpt2
            and point in ("q_proj", "k_proj", "v_proj") or t.hybrid and point == "q_proj")


def behind(t, fault, point, z, stale):
    points, rule = BEHIND[fault]
    odd = ("attn_scores", "attn_probs", "k_cache", "v_cache", "gdn_q", "gdn_k", "gdn_g", "pos_embed")
    if (points is None and point in odd or points and point not in points or fault not in TILES and sliced(t, point)
        or t.gpt2 and point == "embed" and points):
        return None
    if fault in TILES:
        return None if stale is None else np.where(
            TILES[fault](np.arange(len(z)) // 16)[(slice(None),) + (None,) * (z.ndim - 1)], stale.reshape(z.shape), z)
    return rule(t, z)


def regrouped(t, fault, point, parts):
    """The heads that one of three matrices (or biases) gets if all three are in one matrix by
    groups, or are read as such."""
    r = t.H // t.G
    heads = np.concatenate([p.reshape(-1, t.K, *p.shape[1:]) for p in parts]) # all queries, all keys, all values
    groups = [h for g in range(t.G) for h in (*range(g * r, g * r + r), t.H + g, t.H + t.G + g)]
    got = np.empty_like(heads)
    if fault == "A16":
        got[:] = heads[groups]  # the file has them in groups
    else:
        got[groups] = heads     # place n of the file is taken for the n-th in groups
    first, n = {"q_proj": (0, t.H), "k_proj": (t.H, t.G), "v_proj": (t.H + t.G, t.G)}[point]
    return got[first:first + n].reshape(-1, *parts[0].shape[1:])


def linear(t, fault, layer, point, x):
    stored = t.w(t.name(layer, point))      # as the file has it
    w, b = t.matrix(layer, point), t.bias(layer, point)
    transposed = t.gpt2 and point != "logits"
    back = (lambda m: m.T) if transposed else (lambda m: m)
    other = {"gate_proj": "up_proj", "up_proj": "gate_proj", "k_proj": "v_proj", "v_proj": "k_proj"}.get(point)
    heads = x.shape[1] if x.ndim == 3 else 0
    x = x.reshape(len(x), -1)
    if w is None:
        return None
    if fault is None:
        pass
    elif fault == "W1" and w.shape[0] == w.shape[1]:
        w = w.T
    elif fault == "W1b" and stored.shape[0] != stored.shape[1]:
        w = stored.reshape(w.shape) if transposed else stored.reshape(stored.shape[::-1]).T
    elif fault == "W4.weights" and other in ("gate_proj", "up_proj") and not t.gpt2:
        w, b = t.matrix(layer, other), t.bias(layer, other)
    elif fault == "W4.kv" and point in ("k_proj", "v_proj") and not t.gpt2:
        w, b = t.matrix(layer, other), t.bias(layer, other)
    elif fault in ("W5", "W5.halves", "P17.gate") and other in ("gate_proj", "up_proj") and not t.gpt2:
        gate, up = t.matrix(layer, "gate_proj"), t.matrix(layer, "up_proj")
        if fault == "W5":
            w = np.concatenate([gate, up])[point == "up_proj"::2]
        else:
            both = (np.stack([gate, up], 1).reshape(-1, gate.shape[1]) if fault == "W5.halves"
                    else np.concatenate([m for pair in zip(np.split(gate, 2), np.split(up, 2)) for m in pair]))
            w = np.split(both, 2)[point == "up_proj"]
    elif fault in ("W6", "W7", "W7.four") and b is not None:
        b = {"W6": None, "W7": 2 * b, "W7.four": 4 * b}[fault]
    elif fault == "W8" and b is not None and point in ("k_proj", "v_proj"):
        b = t.bias(layer, other)
    elif fault == "G3" and point in ("gdn_b", "gdn_a"):
        w = t.matrix(layer, "gdn_a" if point == "gdn_b" else "gdn_b")
    elif fault in OTHER_HEAD and point == "gdn_z":
        w = np.roll(w, OTHER_HEAD[fault] * t.c["linear_value_head_dim"], 0)
    elif fault == "P15" and point in ("attn_out", "down_proj"):
        x = np.where(np.arange(x.shape[1]) < x.shape[1] // 2, x, 0)
    elif fault in ("P16.twice", "P16.average") and point in ("attn_out", "down_proj"):
        by = 2 if fault == "P16.twice" else 0.5
        w, b = by * w, None if b is None else by * b
    elif fault in ("W2.matrix_kv", "W2.matrix_qk") and point == "c_attn":
        order = [0, 2, 1] if fault == "W2.matrix_kv" else [1, 0, 2]
        w, b = (np.concatenate([np.split(m, 3)[i] for i in order]) for m in (w, b))
    elif fault in ("A16", "W2.groups") and point in ("q_proj", "k_proj",
                                                     "v_proj") and not t.gpt2 and not t.hybrid and t.G > 1:
        w = regrouped(t, fault, point, [t.matrix(layer, p) for p in ("q_proj", "k_proj", "v_proj")])
        b = None if b is None else regrouped(t, fault, point,
                                             [t.bias(layer, p) for p in ("q_proj", "k_proj", "v_proj")])
    elif fault[3:].replace("stored_", "") in THREE and point in ("q_proj", "k_proj", "v_proj") and not t.gpt2:
        if t.hybrid or t.H == t.G and "stored" in fault:
            return None
        stored, split = (fault[-3:], "qkv") if "stored" in fault else ("qkv", fault[-3:])
        n = {"q": t.H * t.K, "k": t.G * t.K, "v": t.G * t.K}
        first = sum(n[p] for p in split[: split.index(point[0])])
        take = lambda f: np.concatenate([f(layer, p + "_proj") for p in stored])[first: first + n[point[0]]]
        if np.array_equal(take(t.matrix), w):
            return None
        w, b = take(t.matrix), None if b is None else take(t.bias)
    elif fault in ("A18", "A18.back") and point == "attn_out" and 1 < t.G < t.H and not t.is_linear(layer):
        if fault == "A18.back" and t.G * t.G == t.H:
            return None
        shape = (t.G, t.H // t.G) if fault == "A18" else (t.H // t.G, t.G)
        w = w.reshape(len(w), *shape, t.K).transpose(0, 2, 1, 3).reshape(w.shape)
    elif fault == "P17" and point == "c_attn":
        order = np.arange(3 * t.D).reshape(3, 2, -1).transpose(1, 0, 2).ravel()
        w, b = w[order], b[order]
    elif fault in TWINS and layer >= 0:
        at = 0 if TWINS[fault] is None else layer + TWINS[fault]
        if at == layer or not 0 <= at < t.L or t.is_linear(at) != t.is_linear(layer) and t.w(t.name(at, point)) is None:
            return None
        if t.matrix(at, point) is None or t.matrix(at, point).shape != w.shape:
            return None
        w, b = t.matrix(at, point), t.bias(at, point)
    elif fault == "W10" and point == "logits":
        w = t.w("wte.weight" if t.gpt2 else "embed_tokens.weight")
    elif fault == "W11" and point == "logits":
        w = np.zeros_like(w)
    elif fault == "W12":
        w = back(read_as_other(t, t.name(layer, point)))
    elif fault in ("W15", "W15.q4"):
        w = faults_blocks.quantised(stored, 8 if fault == "W15" else 4)
        w = w.T if transposed else w
    elif fault == "W13":
        w = truncated(w)
    elif fault == "W14":
        w = np.clip(np.where(np.abs(w) < 2.0 ** -14, 0, w), -65504, 65504)
    elif fault == "W18":
        w = back(sheared(stored, 8))
    elif fault in ("W20.lda", "W20.ldb", "W20.ldc") and w.shape[0] != w.shape[1]:
        if fault == "W20.lda":
            x = apart(x, len(w))
        elif fault == "W20.ldb":
            w = back(apart(stored, len(stored)))
        else:
            y = x @ w.T + (0 if b is None else b)
            return written(y, x.shape[1])
    elif fault == "W19" and point == "logits":
        w = np.roll(w, len(w) // 2, 0)
    elif fault == "M8" and point == "logits":
        x = np.concatenate([x[1:], 0 * x[:1]])
    elif fault == "P18.order" and point in COLUMNS:
        w, b = np.roll(w, len(w) // 2, 0), None if b is None else np.roll(b, len(w) // 2)
    elif fault in TEMPERATURES and point == "logits":
        w = w / TEMPERATURES[fault]
    elif fault == "A8" and point == "attn_out" and heads > 1:
        x = x.reshape(len(x), heads, -1).transpose(0, 2, 1).reshape(x.shape)
    elif fault == "R1b" and point in ("q_proj", "k_proj") and not t.gpt2 and (point == "k_proj" or not t.hybrid):
        w, b = halves_to_neighbours(w, t.K), None if b is None else halves_to_neighbours(b, t.K)
    elif fault == "R1b.heads" and point == "k_proj" and t.as_queries():
        as_queries = lambda m: neighbours_to_halves(halves_to_neighbours(m, t.K), t.as_queries())
        w, b = as_queries(w), None if b is None else as_queries(b)
    elif fault == "R1b.heads_back" and point == "k_proj" and t.as_queries():
        as_queries = lambda m: neighbours_to_halves(halves_to_neighbours(m, t.as_queries()), t.K)
        w, b = as_queries(w), None if b is None else as_queries(b)
    elif fault == "R1b.back" and point in ("q_proj", "k_proj") and not t.gpt2 and (point == "k_proj" or not t.hybrid):
        w, b = neighbours_to_halves(w, t.K), None if b is None else neighbours_to_halves(b, t.K)
    else:
        return None
    return x @ w.T + (0 if b is None else b)


def norm(t, fault, layer, point, x, get):
    g, b = t.w(t.name(layer, point)), t.w(t.name(layer, point, "bias"))
    x, gate = x[0], x[1] if len(x) > 1 else None
    gated = gate is not None
    kw = {"centre": t.gpt2, "offset": 1.0 if t.hybrid and not gated else 0.0}
    N = x.shape[-1]
    pair = {"q_norm": "k_norm", "k_norm": "q_norm", "attn_norm": "mlp_norm", "mlp_norm": "attn_norm"}.get(point)
    if fault is None:
        pass
    elif fault in EPS:
        kw["eps"] = EPS[fault]
    elif fault == "N2":
        kw["outside"] = True
    elif fault == "N3.layer" and not t.gpt2 and not gated:
        kw["centre"] = True
    elif fault == "N3.rms" and t.gpt2:
        kw["centre"] = False
    elif fault == "N17":
        kw["sum16"] = True
    elif fault == "N18" and not t.gpt2 and not gated:
        kw["first16"] = True
    elif fault in ("N21.bf16", "N21.f16") and not gated:
        kw["inverse"] = bf16 if fault == "N21.bf16" else half
    elif fault in ("N22.bf16", "N22.f16") and not gated and not t.gpt2:
        kw["inverse"] = kw["squares"] = bf16 if fault == "N22.bf16" else half
    elif fault in ("N15", "N20") and point in ("attn_norm", "mlp_norm"):
        return x
    elif fault == "N4":
        kw["divisor"] = N - 1
    elif fault == "N5":
        kw["divisor"] = 1
    elif fault == "N6" and not gated:
        kw["offset"] = 1 - kw["offset"]
    elif fault == "N6.gated" and gated:
        kw["offset"] = 1.0
    elif fault == "N7.weight":
        g, kw["offset"] = 1.0, 0.0
    elif fault == "N7.bias" and b is not None:
        b = None
    elif fault == "N8.skipped" and point in ("q_norm", "k_norm"):
        return x
    elif fault == "N9" and point in ("q_norm", "k_norm") and x.shape[1] > 1:
        return t.normed(x.reshape(len(x), -1), np.tile(g, x.shape[1]), **kw).reshape(x.shape)
    elif fault == "N11" and point in ("q_norm", "k_norm") or fault == "N12" and point in ("attn_norm", "mlp_norm"):
        g, b = t.w(t.name(layer, pair)), t.w(t.name(layer, pair, "bias"))
    elif fault == "N16.skipped" and point == "final_norm":
        return x
    elif fault == "N16.twice" and point in ("attn_norm", "mlp_norm", "final_norm"):
        return t.normed(t.normed(x, g, b, **kw), g, b, **kw)
    elif fault == "N19" and point == "mlp_norm":
        x = get(f"layer{layer}.input")
    elif fault == "G18.sigmoid" and gated:
        return t.normed(x, g, **kw) * ACTS["sigmoid"](gate)
    elif fault in OTHER_HEAD and gated:
        gate = np.roll(gate, OTHER_HEAD[fault], 1)
    elif fault == "G18.first" and gated:
        return t.normed(x * ACTS["silu"](gate), g, **kw)
    elif fault == "M7" and point == "final_norm":
        x = get("embed")
    elif fault in TWINS and layer >= 0:
        at = 0 if TWINS[fault] is None else layer + TWINS[fault]
        if at == layer or not 0 <= at < t.L or t.w(t.name(at, point)) is None:
            return None
        g, b = t.w(t.name(at, point)), t.w(t.name(at, point, "bias"))
    else:
        return None
    y = t.normed(x, g, b, **kw)
    return y * ACTS["silu"](gate) if gated else y


def residual(t, fault, layer, point, a, b, get):
    if fault == "N15":
        norm = "attn_norm" if point == "attn_residual" else "mlp_norm"
        return t.normed(a + b, t.w(t.name(layer, norm)), t.w(t.name(layer, norm, "bias")), centre=t.gpt2,
                        offset=1.0 if t.hybrid else 0.0)
    rules = {
        None: lambda: a + b, "N14.missing": lambda: b, "N14.twice": lambda: a + 2 * b, "N14.doubled": lambda: 2 * a + b,
        "N14.added": lambda: a,
        "N13": lambda: get(f"layer{layer}." + ("attn_norm" if point == "attn_residual" else "mlp_norm")) + b,
    }
    return rules[fault]() if fault in rules else None


def activation(t, fault, x):
    act = ACTS[t.act]
    gate, up = (x[0], 1.0) if t.gpt2 else x
    if fault and fault.startswith("M1."):
        return ACTS[fault[3:]](gate) * up if fault[3:] != t.act else None
    if fault == "M3.none":
        return gate * up
    rules = {None: lambda: act(gate) * up}
    if not t.gpt2:
        rules |= {"M2": lambda: act(gate * up), "M3.both": lambda: act(gate) * act(up),
                  "W4.act": lambda: act(up) * gate}
    return rules[fault]() if fault in rules else None


def embedding(t, fault, ids):
    name = "wte.weight" if t.gpt2 else "embed_tokens.weight"
    E = t.w(name)
    rules = {None: lambda: E, "M4": lambda: E * math.sqrt(t.D), "M5.plus": lambda: np.roll(E, -1, 0),
             "M5.minus": lambda: np.roll(E, 1, 0),
             "W12": lambda: read_as_other(t, name), "W19": lambda: np.roll(E, len(E) // 2, 0)}
    if fault == "M5.words":
        return E[[ids[i // 2] if i % 2 == 0 else 0 for i in range(len(ids))]]
    return rules[fault]()[ids] if fault in rules else None


def split(t, fault, point, x):
    """GPT-2's fused product, Qwen3.5's queries and gates."""
    if t.gpt2:
        D, which = t.D, "qkv".index(point[0])
        if fault == "W2.heads":
            return x.reshape(len(x), t.H, 3, t.K)[:, :, which]
        part = which if fault is None else ORDERS[fault].index(point[0]) if fault in ORDERS else None
        if part is None or fault is not None and part == which:
            return None
        return x[:, part * D:part * D + D].reshape(len(x), t.H, t.K)
    second = point == "attn_gate"
    x = x.reshape(len(x), t.H, 2, t.K)
    if fault == "W3.halves":
        return x.reshape(len(x), 2, t.H, t.K)[:, int(second)]
    return x[:, :, int(second != (fault == "W3.gate"))] if fault in (None, "W3.gate") else None


def predict(t, fault, layer, point, x, get):
    if fault in BEHIND:
        z = predict(t, None, layer, point, x, get)
        stale = t.stale.get(f"layer{layer}.{point}" if layer >= 0 else point) if fault in TILES else None
        return None if z is None else behind(t, fault, point, z, None if stale is None else get(stale))
    ids = get("ids").astype(int) if point in ("embed", "token_embed", "pos_embed") else None
    if point in ("q_rope", "k_rope"):
        return rope(t, fault, point, x[0], get, layer)
    if point in ("attn_scores", "attn_probs", "attn_context"):
        y = attention(t, fault, x)
        return None if y is None else y[point]
    if point in ("k_cache", "v_cache"):
        return cache(t, fault, point, *x)
    if point == "token_embed" or point == "embed" and not t.gpt2:
        return embedding(t, fault, ids)
    if point == "pos_embed":
        p = t.w("wpe.weight")[t.past:t.past + len(ids) + 1]
        if fault in ("R15.twice", "R15.words"):
            at = t.words(len(ids)) if fault == "R15.words" else 2 * t.past + np.arange(len(ids))
            return t.w("wpe.weight")[np.minimum(at, len(t.w("wpe.weight")) - 1)]
        if fault == "R15.zero":
            return t.w("wpe.weight")[:len(ids)]
        return p[:-1] if fault is None else p[1:] if fault == "R15.shifted" else None
    if point == "embed":
        return x[0] + x[1] if fault is None else x[0] if fault == "R15.missing" else None
    if point in ("attn_residual", "output"):
        return residual(t, fault, layer, point, x[0], x[1], get)
    if point == "mlp_act":
        return activation(t, fault, x)
    if t.gpt2 and point in ("q_proj", "k_proj", "v_proj") or point == "attn_gate" or t.hybrid and point == "q_proj":
        return split(t, fault, point, x[0])
    if point.endswith("norm"): # gdn_norm, too
        return norm(t, fault, layer, point, x, get)
    if fault == "G20.late" and point in ("attn_gated", "attn_out") and not t.is_linear(layer):
        return (x[1] if point == "attn_gated" else linear(t, None, layer, point, x[0])
                * ACTS["sigmoid"](get(f"layer{layer}.attn_gate").reshape(len(x[0]), -1)))
    if point == "attn_gated":
        return {None: ACTS["sigmoid"](x[0]) * x[1], "G20.missing": x[1],
                "G20.silu": ACTS["silu"](x[0]) * x[1]}.get(fault)
    if point.startswith("gdn_") and point not in ("gdn_qkv", "gdn_z", "gdn_b", "gdn_a"):
        return faults_gdn.predict(t, fault, layer, point, x) if x else None
    if len(x) == 1:
        y = linear(t, fault, layer, point, x[0])
        return y
    return None
