#!/usr/bin/env python3
"""parity_native.py: mistakes of experts, sinks, caps, norms, windows and latent attention, made in transformers from
outside, in models trained on the spot (parity_trained.py), and healthy runs beside them.

    parity_native.py VERNIER [--steps N] [--models DIR] [--dtype f32|bf16|f16]... [--call whole|steps]...
                     [--attention eager|sdpa]... [--fault GLOB]... [--sample N [--part K]] [--healthy] [--verbose]
                     [FAMILY...]

Each mistake in each of its families, as a prompt at once and as a prompt and single tokens, in three formats, with
eager attention and sdpa; vernier_parity records it, `vernier explain` names it. Healthy runs (--healthy, alone): the
same, with each implementation of the experts. Exit status 1: a mistake that leaves one of its operations at 4 floors or
more is not found, fewer than 95 % of those found are named, a wrong name, or a healthy run is outside or accused.
--sample N: every Nth run; with --part K, those that leave K of N. --models: where trained models are, or are left.

Needs torch and transformers (77, skipped, without).
"""
import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import parity_families as families
import parity_outside as outside
import parity_trained
from parity_families import EVERY, HYBRID, LATENTS, LAYER, MISTAKES, OSS, routed, scaled, with_kinds, with_weights
from record_help import BF16, F16, F32, record

DTYPES = {"f32": F32, "bf16": BF16, "f16": F16}
TOKENS, STEPS = 72, 6
GEMMAS = ("gemma2", "gemma3_text")
EXPERTS = EVERY + HYBRID + LATENTS
ANY_SCORES = ("layer1.attn_scores", "layer1.attn_probs", "layer1.attn_context")
P = f"layer{LAYER}."


# ---- mistakes: changes of a model and its layer LAYER -------------------------------------------

def by_slot(full, slot):
    """Experts are called by full(layer, forward, x, ids, w), then by the recorder, for one slot after another:
    slot(layer, forward, x, ids, w, number of the slot)."""
    def make(_, layer):
        forward, at, width = layer.mlp.experts.forward, [0], families.router_of(layer).top_k

        def called(x, ids, w):
            if ids.shape[1] == width:
                at[0] = 0
                return full(layer, forward, x, ids, w)
            at[0] += 1
            return slot(layer, forward, x, ids, w, at[0] - 1)
        layer.mlp.experts.forward = called
    return make


def ids_of_before(m, layer):
    """Also across calls."""
    last, used = [None], [None]

    def full(_, forward, x, ids, w):
        used[0] = torch.zeros_like(ids[:1]) if last[0] is None else last[0]
        last[0] = ids[-1:]
        return forward(x, torch.cat([used[0], ids[:-1]]), w)
    by_slot(full, lambda _, forward, x, ids, w, s: forward(x, torch.cat([used[0][:, s:s + 1], ids[:-1]]), w))(m, layer)


def narrow_router(dtype):
    """The product of the router in 16 bits."""
    def make(_, layer):
        router = families.router_of(layer)
        weight, forward = router.weight, router.forward
        narrowed = lambda t: None if t is None else t.to(dtype)
        of = lambda x, bias: torch.nn.functional.linear(narrowed(x.reshape(-1, x.shape[-1])), narrowed(weight),
                                                        narrowed(bias)).to(x.dtype)

        class Narrow(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func is torch.nn.functional.linear and args[1].shape == weight.shape and args[0].shape[-1] == \
                        weight.shape[1]:
                    return of(args[0], (kwargs or {}).get("bias", args[2] if len(args) > 2 else None))
                return func(*args, **(kwargs or {}))

        def narrow(x):
            with Narrow():
                return forward(x)
        router.forward = narrow
    return make


def capacity(share):
    """An expert takes the first tokens of a call; what is beyond its capacity gets nothing from it."""
    kept = [None]

    def full(layer, forward, x, ids, w):
        count = families.router_of(layer).weight.shape[0]
        most = max(1, math.ceil(share * ids.numel() / count))
        place = torch.nn.functional.one_hot(ids.flatten(), count).cumsum(0).gather(1, ids.view(-1, 1)).view_as(ids)
        kept[0] = place <= most
        return forward(x, ids, w * kept[0])
    return by_slot(full, lambda _, forward, x, ids, w, s: forward(x, ids, w * kept[0][:, s:s + 1]))


def attends(change):
    """change(a) of what eager attention reads, in layer LAYER: query, key, value, mask, scaling, cap, sinks, capped and
    weights (functions)."""
    def make(m, layer):
        source, own = sys.modules[type(layer.self_attn).__module__], layer.self_attn
        original = source.eager_attention_forward

        def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, softcap=None, **more):
            if module is not own:
                more.update({"softcap": softcap} if softcap is not None else {})
                return original(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **more)
            a = SimpleNamespace(query=query, key=key, value=value, mask=attention_mask, scaling=scaling, cap=softcap,
                                sinks=getattr(module, "sinks", None), module=module)
            a.capped = lambda s: s if a.cap is None else torch.tanh(s / a.cap) * a.cap
            a.masked = lambda s: s if a.mask is None else s + a.mask[..., :s.shape[-1]]
            a.order = lambda s: a.masked(a.capped(s))
            a.most = lambda s, sink: torch.cat([s, sink], -1).amax(-1, keepdim=True)

            def weights(s):
                if a.sinks is None:
                    return torch.softmax(s, -1, dtype=torch.float32).to(query.dtype)
                sink = a.sinks.reshape(1, -1, 1, 1).expand(*s.shape[:3], 1)
                s, sink = s - a.most(s, sink), sink - a.most(s, sink)
                return torch.softmax(torch.cat([s, sink], -1), -1)[..., :-1]
            a.weights = weights
            change(a)
            each = lambda t: t.repeat_interleave(query.shape[1] // t.shape[1], 1)
            w = a.weights(a.order(a.query @ each(a.key).transpose(2, 3) * a.scaling))
            return (w.to(value.dtype) @ each(a.value)).transpose(1, 2).contiguous(), w
        outside_undo.append((source, "eager_attention_forward", original))
        source.eager_attention_forward = attention
    return make


outside_undo = []  # what changes of modules to take back after a run


def set_to(name, f):
    def change(a):
        setattr(a, name, f(a))
    return attends(change)


def max_alone(a):
    """Sinks count in the maximum, not in the sum."""
    def weights(s):
        sink = a.sinks.reshape(1, -1, 1, 1).expand(*s.shape[:3], 1)
        e = torch.exp((s - a.most(s, sink)).float())
        return (e / e.sum(-1, keepdim=True)).to(s.dtype)
    a.weights = weights


def windowed(by):
    """The window of layer 0, or of LAYER, is another one."""
    def make(m, _):
        layer = next(n for n, k in enumerate(m.config.layer_types) if k == "sliding_attention")
        at = m.model.layers[layer]
        forward = at.forward

        def other(hidden_states, *args, attention_mask=None, **more):
            past, T = 0, hidden_states.shape[1]
            S = attention_mask.shape[-1]
            j, i = torch.arange(S)[None], torch.arange(S - T, S)[:, None]
            seen = (j <= i) & (j > i - m.config.sliding_window - by)
            mask = torch.zeros(1, 1, T, S, dtype=hidden_states.dtype)
            mask = mask.masked_fill(~seen, torch.finfo(mask.dtype).min)
            return forward(hidden_states, *args, attention_mask=mask, **more)
        at.forward = other
    return make


def plain(which):
    """A norm multiplies by its weight, not by 1 + weight."""
    def make(_, layer):
        norm = getattr(layer, which)
        norm.forward = lambda x: (norm._norm(x.float()) * norm.weight.float()).type_as(x)
    return make


def as_is(which):
    def make(_, layer):
        getattr(layer, which).forward = lambda x: x
    return make


def unscaled(factor):
    """The embedding of Gemma 2, whose factor is applied behind it in some releases, or in it."""
    def make(m, _):
        families.scaled_by(factor)(m, None)
    return make


def latent_cache(of):
    """Calls of one token read of(latents, rotated keys, what both were made of) from the cache, in layer LAYER."""
    def make(_, layer):
        attn, calls = layer.self_attn, []
        project, expand = attn.kv_a_proj_with_mqa.forward, attn.expand_kv

        def projected(x):
            calls.append(project(x))
            return calls[-1]

        def other(kv, rot):
            past = kv.shape[2] - calls[-1].shape[1]
            if past:
                kept = of(kv[:, :, :past], rot[:, :, :past], torch.cat(calls[:-1], 1)[:, None])
                kv, rot = (torch.cat([k, x[:, :, past:]], 2) for k, x in zip(kept, (kv, rot)))
            return expand(kv, rot)
        attn.kv_a_proj_with_mqa.forward, attn.expand_kv = projected, other
    return make


def rotated_first(kv, rot, _):
    """Rows of the cache begin with the rotated keys, and are read with the latents first."""
    return torch.cat([rot, kv], -1).split([kv.shape[-1], rot.shape[-1]], -1)


def latents_first(kv, rot, _):
    """The reverse."""
    return torch.cat([kv, rot], -1).split([rot.shape[-1], kv.shape[-1]], -1)[::-1]


def wrong_half(of):
    """The first columns rotate: of queries, or of what keys and values are made of, whose others are the latents."""
    def make(_, layer):
        attn, count = layer.self_attn, [0]
        source, forward = sys.modules[type(attn).__module__], attn.forward
        N, R = attn.qk_nope_head_dim, attn.qk_rope_head_dim
        functions = SimpleNamespace(**vars(torch))

        def split(x, sizes, dim):
            count[0] += 1  # 1: queries; 2: latents and rotated keys
            return (x[..., R:], x[..., :R]) if count[0] == of else torch.split(x, sizes, dim)

        def cat(parts, dim):
            turned = of == 1 and 0 < count[0] < 3 and [p.shape[-1] for p in parts] == [N, R]
            return torch.cat(parts[::-1] if turned else parts, dim)

        def called(*args, **more):
            count[0] = 0
            out = forward(*args, **more)
            count[0] = 3
            return out
        count[0], functions.split, functions.cat, attn.forward = 3, split, cat, called
        outside_undo.append((source, "torch", torch))
        source.torch = functions
    return make


def deepseek2_halves(m, _):
    """DeepSeek-V2 pairs columns i and i + R/2."""
    source = sys.modules[type(m).__module__]
    outside_undo.append((source, "apply_rotary_emb", source.apply_rotary_emb))

    def halves(q, k, freqs):
        def one(x):
            a, b = x.float().chunk(2, -1)
            turned = torch.complex(a, b) * freqs.unsqueeze(1).to(x.device)
            return torch.cat([turned.real, turned.imag], -1).type_as(x)
        return one(q), one(k)
    source.apply_rotary_emb = halves


def not_rotated_keys(m, _):
    """Keys of latent attention are not rotated."""
    source = sys.modules[type(m).__module__]
    name = "apply_rotary_emb" if hasattr(source, "apply_rotary_emb") else "apply_rotary_pos_emb_interleave"
    original = getattr(source, name)
    outside_undo.append((source, name, original))
    setattr(source, name, lambda q, k, *more, **named: (original(q, k, *more, **named)[0], k))


def two_best(*groups):
    """DeepSeek-V3 chooses groups by their best expert, not by the two best."""
    def make(_, layer):
        gate = layer.mlp.gate

        def forward(x):
            x = x.view(-1, gate.hidden_dim)
            logits = torch.nn.functional.linear(x.float(), gate.weight.float())
            scores = logits.sigmoid()
            choice = scores + gate.e_score_correction_bias
            of = choice.view(len(x), gate.num_group, -1)
            chosen = of.amax(-1).topk(gate.topk_group, -1)[1]
            allowed = torch.zeros(len(x), gate.num_group).scatter_(1, chosen, 1).bool()[..., None].expand_as(of)
            ids = choice.masked_fill(~allowed.reshape(choice.shape), -math.inf).topk(gate.top_k, -1)[1]
            w = scores.gather(1, ids)
            return logits, w / (w.sum(-1, keepdim=True) + 1e-20) * gate.routed_scaling_factor, ids
        gate.forward = forward
    return make


def unshared_weights(m, layer):
    """The shared expert is that of the next layer."""
    name = "shared_experts" if hasattr(layer.mlp, "shared_experts") else "shared_expert"
    setattr(layer.mlp, name, getattr(m.model.layers[LAYER + 1].mlp, name))


def no_gate_bias(m, layer):
    layer.mlp.experts.gate_up_proj_bias.data.zero_()


def exchanged_oss(m, layer):
    """Gate and up of gpt-oss, which alternate, exchanged."""
    e = layer.mlp.experts
    for p in (e.gate_up_proj, e.gate_up_proj_bias):
        p.data = p.data.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)


def local_in_global(m, _):
    """Layers without a window rotate by the frequencies of those with one."""
    rotary = m.model.rotary_emb
    forward = rotary.forward
    rotary.forward = lambda x, ids, layer_type=None: forward(x, ids, "sliding_attention")


def score_factor(of):
    def make(_, layer):
        layer.self_attn.scaling = of(layer.self_attn)
    return make


Row = collections.namedtuple("Row", "name ids families change at eager calls")
ROWS = []


def row(name, ids, of, change, *at, eager=False, calls=("whole", "steps")):
    ROWS.append(Row(name, ids.split(), of, change, [a + ("*" if a.endswith(".") else "") for a in at] or [P + "*"],
                    eager, calls))


KIND = "A5.missing", "A5.layer", "R18"
for what, of, change, at in MISTAKES:  # those of parity_families.py, whose models have random weights
    if what == "N6":
        continue  # below, for each norm and in 16 bits too
    # a layer of the other kind has another window, and rotates by the other frequencies
    ids, at = (" ".join(KIND), ("layer*.",)) if what in KIND else (what, at)
    row(f"{what}@{of[0]}", ids, of, ids_of_before if what == "E7" else change, *at)
row("softmax before top-k", "E2", ("qwen3_moe", "mixtral"), with_weights(
    lambda l, w, ids: torch.softmax(l.float(), -1).gather(1, ids)))
row("v2 not scaled", "E14", LATENTS[:1], families.constant(routed_scaling_factor=1.0))
row("v2 normalised", "E1.after", LATENTS[:1], with_weights(
    lambda l, w, ids: 4 * w / w.sum(-1, keepdim=True)))
row("v2 sigmoid", "E3", LATENTS[:1], with_weights(lambda l, w, ids: 4 * torch.sigmoid(l.float()).gather(1, ids)))
row("experts permuted", "E5.next", LATENTS[:1], families.weighing(lambda u, d: (u.roll(-1, 0), d.roll(-1, 0))))
row("experts of another rank", "E5", EXPERTS, families.weighing(lambda u, d: (u.roll(-3, 0), d.roll(-3, 0))))
row("gate and up exchanged", "E6.exchanged", LATENTS[:1],
    families.weighing(lambda u, d: (u.roll(u.shape[1] // 2, 1), d)))
row("rows for halves", "E6.rows", LATENTS + HYBRID, families.weighing(families.by_rows))
row("halves for rows", "E6.halves", LATENTS + HYBRID, families.weighing(families.interleaved))
row("v2 lent expert", "E8", LATENTS[:1], families.lent)
row("oss exchanged", "E6.exchanged", OSS, exchanged_oss)
row("ids of before, latent", "E7", LATENTS, ids_of_before)
row("groups by best", "E13.best", LATENTS[1:], two_best())
row("shared of next layer", "W9.next", LATENTS + HYBRID, unshared_weights)
for of, dtype in (("bf16", BF16), ("f16", F16)):
    row(f"router in {of}", f"E17.{of}", EXPERTS + OSS, narrow_router(dtype), P + "router_logits")
row("capacity 1.0", "E16", EXPERTS + OSS, capacity(1.0), calls=("whole",))
row("capacity 0.5", "E16", EXPERTS + OSS, capacity(0.5), calls=("whole",))
row("sinks in the maximum alone", "A19", OSS, attends(max_alone), *ANY_SCORES, eager=True)
row("no cap of scores", "A20", ("gemma2",), set_to("cap", lambda a: None), *ANY_SCORES, eager=True)
row("cap behind the mask", "A20.masked", ("gemma2",), set_to("order", lambda a: lambda s: a.capped(a.masked(s))),
    *ANY_SCORES, eager=True, calls=("whole",))
row("another cap", "A20*", ("gemma2",), set_to("cap", lambda a: 30.0), *ANY_SCORES, eager=True)
row("cap before the scale", "A20* ", ("gemma2",), attends(
    lambda a: setattr(a, "order", lambda s: a.masked(a.capped(s / a.scaling) * a.scaling))), *ANY_SCORES, eager=True)
row("no cap of logits", "M9.uncapped", ("gemma2",), families.uncapped, "logits")
for norm in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"):
    row(f"plain {norm}", "N6", GEMMAS, plain(norm), P + "*norm")
for norm in ("post_attention_layernorm", "post_feedforward_layernorm"):
    row(f"no {norm}", "N20", GEMMAS, as_is(norm), P + "*post_norm")
row("embedding not scaled", "M4.missing", ("gemma2",), unscaled(lambda _: 1.0), "embed", "token_embed")
row("embedding's factor in bf16", "M4.bf16", ("gemma2",), unscaled(
    lambda s: float(torch.tensor(s).bfloat16())), "embed", "token_embed")
row("local theta in global layers", "R18", GEMMAS[1:], local_in_global, "*q_rope", "*k_rope")
for by in (1, -1):
    row(f"window {by:+d}", "A5*", GEMMAS + OSS, windowed(by), "layer0.attn*", "layer1.attn*")
row("windows shifted", "A5.missing A5.layer", ("gemma2",), families.shifted, "*attn_context", "*attn_probs")
row("by the head's width", "A1*", ("gemma2",), families.by_head, *ANY_SCORES)
row("by the model's width", "A1*", GEMMAS, score_factor(lambda attn: attn.config.hidden_size ** -0.5), *ANY_SCORES)
row("no mscale", "A21.missing", LATENTS[:1], families.latent_scale(0), *ANY_SCORES)
row("mscale squared", "A21.squared", LATENTS[:1], families.latent_scale(2), *ANY_SCORES)
row("scale of the columns that do not rotate", "A1*", LATENTS, score_factor(
    lambda attn: attn.scaling * (attn.qk_head_dim / attn.qk_nope_head_dim) ** 0.5), *ANY_SCORES)
row("latent norm of v2", "N23", LATENTS[:1], families.unnormed, P + "kv_a_norm")
row("latent norm of queries", "N23", LATENTS[1:], lambda m, l: setattr(l.self_attn.q_a_layernorm, "forward",
                                                                       lambda x: x), P + "q_a_norm")
row("v2 rotates halves", "R1.halves", LATENTS[:1], deepseek2_halves, "*q_rope", "*k_pe_rope")
row("first columns of queries rotated", "R4.first", LATENTS, wrong_half(1), P + "q_rope")
row("first columns are the rotated keys", "W23", LATENTS, wrong_half(2), P + "kv_latent", P + "k_pe_rope")
row("keys not rotated", "R12", LATENTS, not_rotated_keys, "*k_pe_rope")
for name, ids, of in (("rotated keys first", "C13", rotated_first), ("latents first", "C13.back", latents_first),
                      ("latents not normed", "C13.raw", lambda kv, rot, a: (a[..., :kv.shape[-1]], rot)),
                      ("keys not rotated", "C13.unrotated", lambda kv, rot, a: (kv, a[..., kv.shape[-1]:]))):
    row(f"cache: {name}", ids, LATENTS, latent_cache(of), P + "?_cache", *ANY_SCORES, calls=("steps",))


# ---- runs ---------------------------------------------------------------------------------------

def loaded(model, dtype, attention, experts="eager"):
    m = golden.family_of(model)[1].model_class.from_pretrained(
        model, config=golden.text_config(model), dtype=DTYPES[dtype], attn_implementation=attention,
        local_files_only=True).eval()
    if hasattr(m, "set_experts_implementation") and experts:
        m.set_experts_implementation(experts)
    return m


def run(m, ids, call, path, change=None, points="*"):
    if change:
        change(m, m.model.layers[LAYER])
    try:
        with torch.no_grad(), record(m, path, points=points):
            if call == "whole":
                m(torch.tensor([ids]), use_cache=False)
            else:
                cache = m(torch.tensor([ids[:-STEPS]]), use_cache=True).past_key_values
                for n in range(STEPS, 0, -1):
                    cache = m(torch.tensor([[ids[len(ids) - n]]]), past_key_values=cache,
                              use_cache=True).past_key_values
    finally:
        while outside_undo:
            where, name, value = outside_undo.pop()
            setattr(where, name, value)


class Sums:
    def __init__(self):
        self.bad, self.count, self.rows = 0, collections.Counter(), set()

    def mistake(self, words, r, m, report, verbose):
        f = SimpleNamespace(name=r.name, ids=r.ids, origin=r.at, call=words[2])
        found, origin, named, said, far = outside.judged(f, SimpleNamespace(p=P, delta_at=0), report)
        self.count.update([found, named] if found == "found" else [found])
        self.count["elsewhere"] += found == "found" and origin != "origin"
        self.count["far"] += far
        self.count["far found"] += far and found == "found"
        self.rows.add((r.name, words[0]))
        self.bad += named == "WRONG" or (far and found != "found")
        if verbose or named in ("WRONG", "none", "half") and found == "found" or far and found != "found":
            print(f"{' '.join(words):38} {r.name:28} {found:6} {origin:8} {named:5} {said[:260]}", flush=True)

    def healthy(self, words, report):
        accused = [c["name"] for c in report["checkpoints"] if c["fails"]]
        said = [n for n in report["notes"] if n.startswith(families.FLIPS) and "no fault" not in n]
        named = [e["words"] for e in report.get("explanations", []) if e["explained"]]
        bad = report["verdict"] != "within" or accused or said or named
        self.count.update(["healthy", *(["healthy outside"] if bad else [])])
        self.bad += bool(bad)
        if bad:
            print(f"{' '.join(words):38} healthy: {report['verdict']} {accused[:4]} {said} {named[:2]}", flush=True)


def judged(vernier, ref, cand, model):
    done = subprocess.run([vernier, "explain", ref, cand, "--model", model, "--allow", "missing,extra,config,weights",
                           "--threads", "1", "--format", "json"], capture_output=True, text=True, check=False)
    os.unlink(cand)
    if done.returncode not in (0, 1):
        raise SystemExit(f"explain: {done.stderr}")
    return json.loads(done.stdout)


def jobs_of(a, family):
    """(call, dtype, attention, the implementation of experts, a row or None), each of them."""
    for attention in a.attention or ("eager", "sdpa"):
        if attention == "sdpa" and family in ("gpt_oss", "gemma2"):
            continue  # transformers has none for sinks, and forgets the caps
        for dtype in a.dtype or DTYPES:
            for call in a.call or ("whole", "steps"):
                if a.healthy:
                    for experts in ("eager", "grouped_mm", "batched_mm") if family in EXPERTS + OSS else ("",):
                        yield call, dtype, attention, experts, None
                    continue
                for r in ROWS:
                    if family in r.families and call in r.calls and not (r.eager and attention != "eager") and (
                            not a.fault or outside.matches(r.name, a.fault)):
                        yield call, dtype, attention, "eager", r


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("families", nargs="*", metavar="FAMILY")
    a.add_argument("--steps", type=int, default=200, metavar="N", help="of training")
    a.add_argument("--models", metavar="DIR")
    a.add_argument("--dtype", action="append", choices=DTYPES)
    a.add_argument("--call", action="append", choices=("whole", "steps"))
    a.add_argument("--attention", action="append", choices=("eager", "sdpa"))
    a.add_argument("--fault", action="append", metavar="GLOB")
    a.add_argument("--sample", type=int, default=1, metavar="N")
    a.add_argument("--part", type=int, default=0, metavar="K")
    a.add_argument("--healthy", action="store_true")
    a.add_argument("--verbose", action="store_true")
    a = a.parse_intermixed_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    vernier, n, sums = os.path.abspath(a.vernier), 0, Sums()
    learned, page = parity_trained.text()
    with tempfile.TemporaryDirectory() as d, ThreadPoolExecutor(1) as pool:
        for family in a.families or [f for f in parity_trained.SHAPES if f != "qwen3_5_text"]:
            model, refs, waiting = os.path.join(a.models or d, f"{family}-float32"), {}, []
            if not os.path.exists(model):
                sums.bad += not parity_trained.trained(family, learned, a.steps, 1, "float32", model)
            for k, (call, dtype, attention, experts, r) in enumerate(jobs_of(a, family)):
                n += 1
                if n % a.sample != a.part:
                    continue
                ids = page[:TOKENS] if r else page[31 * k:31 * k + TOKENS - k % 7]
                key = call, tuple(ids)
                if key not in refs:
                    refs[key] = os.path.join(d, f"{family}.{len(refs)}.ref.h5")
                    cut = len(ids) - (STEPS if call == "steps" else 0)
                    subprocess.run([vernier, "capture", "ref", model, "--ids", families.spec(ids[:cut]), *(
                        ["--force-ids", families.spec(ids[cut:])] if call == "steps" else []), "--points", "*",
                        "--threads", "1", "-o", refs[key], "--force"], check=True, stderr=subprocess.DEVNULL)
                cand = os.path.join(d, f"{family}.{n}.h5")
                run(loaded(model, dtype, attention, experts), ids, call, cand, r and r.change)
                waiting.append(((family, dtype, call, attention, experts), r,
                                pool.submit(judged, vernier, refs[key], cand, model)))
            for words, r, job in waiting:
                if r:
                    sums.mistake((words[0], words[1], words[2], words[3]), r, None, job.result(), a.verbose)
                else:
                    sums.healthy(words, job.result())
            for path in refs.values():
                os.unlink(path)
    c = sums.count
    if a.healthy:
        print(f"{c['healthy']} healthy runs, {c['healthy outside']} outside or accused")
    else:
        few = c["named"] < 0.95 * c["found"]
        sums.bad += few
        print(f"{len(sums.rows)} mistakes; {c['found']} runs found, {c['below']} below the floor, {c['MISSED']} not; "
              f"{c['far']} leave an operation at {outside.FLOORS:g} floors or more, {c['far found']} of these found; "
              f"{c['elsewhere']} first origins elsewhere; {c['named']} named, {c['half']} by half, {c['none']} none, "
              f"{c['WRONG']} wrong names{'; fewer than 95 % named' if few else ''}")
    print("1 passed, 0 failed" if not sums.bad else "0 passed, 1 failed")
    sys.exit(sums.bad > 0)


if __name__ == "__main__":
    main()
