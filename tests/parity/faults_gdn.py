"""faults_gdn.py: Gated DeltaNet's operations and their faults, for faults_rules.py (specs/models.md 2.7;
specs/faults.md, chapter G)."""
import numpy as np

from faults_truth import ACTS, bf16, half, sigmoid


def conv(t, fault, layer, x):
    w = t.w(f"layers.{layer}.linear_attn.conv1d.weight")[:, 0]     # (X,J)
    J, ahead = w.shape[1], 1 if fault == "G13" else 0
    if fault == "G11":
        w = w[:, ::-1]
    elif fault in ("W9.next", "W9.before", "W9.first"):
        at = 0 if fault == "W9.first" else layer + (1 if fault == "W9.next" else -1)
        if at == layer or not 0 <= at < t.L or not t.is_linear(at):
            return None
        w = t.w(f"layers.{at}.linear_attn.conv1d.weight")[:, 0]
    elif fault not in (None, "G12", "G12.qk", "G13", "G13.lost", "G14.channels"):
        return None
    past = t.past
    if fault == "G13.lost":
        x, past = x[past:], 0
    rows = np.concatenate([np.zeros((J - 1, x.shape[1])), x, np.zeros((ahead, x.shape[1]))])
    y = sum(rows[j + ahead:j + ahead + len(x)] * w[:, j] for j in range(J))
    y = y[past:]
    if fault == "G12.qk":
        n = 2 * t.c["linear_num_key_heads"] * t.c["linear_key_head_dim"]
        return np.concatenate([ACTS["silu"](y[:, :n]), y[:, n:]], 1)
    if fault == "G14.channels":
        keys = 2 * t.c["linear_num_key_heads"] * t.c["linear_key_head_dim"]
        return ACTS["silu"](np.concatenate([y[:, keys:], y[:, :keys]], 1))
    return y if fault == "G12" else ACTS["silu"](y)


def split(t, fault, point, x):
    c = t.c
    QK = c["linear_num_key_heads"] * c["linear_key_head_dim"]
    V = c["linear_num_value_heads"] * c["linear_value_head_dim"]
    if fault not in (None, "G14"):
        return None
    order = [("gdn_v", V), ("gdn_q_conv", QK),
             ("gdn_k_conv", QK)] if fault else [("gdn_q_conv", QK), ("gdn_k_conv", QK), ("gdn_v", V)]
    at = 0
    for name, width in order:
        if name == point:
            return x[:, at:at + width]
        at += width


def unit(fault, x):
    ss, eps = (x * x).sum(-1, keepdims=True), {"N1.1e-5": 1e-5, "N1.1e-6": 1e-6, "N1.1e-12": 1e-12}.get(fault, 1e-6)
    if fault == "N2":
        return x / (np.sqrt(ss) + eps)
    if fault == "G5.missing":
        return x
    if fault == "N17":
        ss = half(ss)
    elif fault == "G5.mean":
        ss = ss / x.shape[-1]
    elif fault is not None and not fault.startswith("N1."):
        return None
    return x / np.sqrt(ss + eps)


def decay(t, fault, layer, x):
    A, dt = t.w(f"layers.{layer}.linear_attn.A_log"), t.w(f"layers.{layer}.linear_attn.dt_bias")
    soft = lambda u: np.log1p(np.exp(u))
    rules = {None: lambda: -np.exp(A) * soft(x + dt), "G1.positive": lambda: np.exp(A) * soft(x + dt),
             "G1.raw": lambda: A * soft(x + dt),
             "G1.negated": lambda: -A * soft(x + dt), "G2.softplus": lambda: -np.exp(A) * (x + dt),
             "G2.bias": lambda: -np.exp(A) * soft(x)}
    return rules[fault]() if fault in rules else None


def core(t, fault, q, k, v, g, beta):
    if fault not in (None, "G6", "G7.none", "G7.factor", "G7.late", "G4.k", "G4.v", "G4.one", "G8.output", "G8.memory",
                     "G9",
                     "G10", "G15", "G16", "G16.calls", "G17", "G19.bf16", "G19.f16", "G19.first", "G19.again",
                     "G19.drafts", "G19.former", "G19.padding", "G19.half", "G19.heads", "G21.bf16", "G21.f16"):
        return None
    T, nk, dk = q.shape
    nv, dv = v.shape[1:]
    head = np.arange(nv) % nk if fault == "G10" else np.arange(nv) // (nv // nk)
    q, k, S, y = q[:, head], k[:, head], np.zeros((nv, dk, dv)), np.zeros_like(v)
    g = bf16(g) if fault == "G21.bf16" else half(g) if fault == "G21.f16" else g
    beta = np.ones_like(beta) if fault == "G4.one" else beta
    a = np.ones_like(g) if fault == "G7.none" else g if fault == "G7.factor" else np.exp(g)
    begins, of_first = np.cumsum(t.lengths), None

    def again(S, i):
        S = S * a[i][:, None, None]
        return S + np.einsum("hk,hv->hkv", k[i], beta[i][:, None] * (v[i] - np.einsum("hk,hkv->hv", k[i], S)))

    for i in range(t.lengths[0]) if fault == "G19.former" else [0] * 8 if fault == "G19.padding" else []:
        S = again(S, i)
    for i in range(T):
        if fault == "G19.first" and i in begins:
            of_first = S if of_first is None else of_first
            S = of_first
        for _ in range({"G19.again": 1, "G19.drafts": 2}.get(fault, 0) if i in begins else 0):
            S = again(S, i - 1)
        if (fault == "G16" and i % 64 == 0) or (fault == "G16.calls" and i in np.cumsum(t.lengths)):
            S = np.zeros_like(S)
        if i in begins:
            S = {"G19.bf16": bf16, "G19.f16": half, "G19.half": lambda S: S / 2,
                 "G19.heads": lambda S: np.roll(S, 1, 0)}.get(fault, lambda S: S)(S)
        if fault == "G15" and i == t.lengths[0]: # single tokens from there on
            S = S.transpose(0, 2, 1).reshape(S.shape)
        if fault == "G17" and (i - max(x for x in np.cumsum([0] + t.lengths) if x <= i)) % 64 == 0:
            chunk = S
        old = S
        if fault != "G7.late":
            S = S * a[i][:, None, None]
        if fault == "G17":
            chunk = chunk * a[i][:, None, None]
        m = np.einsum("hk,hkv->hv", k[i], old if fault == "G8.memory" else chunk if fault == "G17" else S)
        of_v, of_k = (1 if fault == "G4.k" else beta[i][:, None], 0 if fault == "G9" else 1 if fault == "G4.v"
                      else beta[i][:, None])
        d = of_v * v[i] - of_k * m
        decayed, S = S, S + np.einsum("hk,hv->hkv", k[i], d)
        if fault == "G7.late":
            S = S * a[i][:, None, None]
        y[i] = np.einsum("hk,hkv->hv", q[i],
                         decayed if fault == "G8.output" else S) * (1.0 if fault == "G6" else dk ** -0.5)
    return y[t.past:]


def predict(t, fault, layer, point, x):
    if point == "gdn_conv":
        return conv(t, fault, layer, x[0])
    if point in ("gdn_q_conv", "gdn_k_conv", "gdn_v"):
        return split(t, fault, point, x[0])
    if point in ("gdn_q", "gdn_k"):
        return unit(fault, x[0])
    if point == "gdn_beta":
        return {None: sigmoid(x[0]), "G4": x[0], "G4.two": 2 * sigmoid(x[0])}.get(fault)
    if point == "gdn_g":
        return decay(t, fault, layer, x[0])
    return core(t, fault, *x)
