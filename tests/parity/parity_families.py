#!/usr/bin/env python3
"""parity_families.py: models with experts, Gemma 3, gpt-oss and DeepSeek, made and run on the spot by HuggingFace:
decoding, verdicts, mistakes.

    parity_families.py VERNIER [--faults N] [FAMILY...]

A random model of each family, in each of the layouts that its files may have:

  layouts   they record the same
  greedy    the reference in float32 and float64 decodes what transformers' generate does
  error     float32 and float64 by parity_hf.py's criterion, printed
  healthy   transformers in three formats, its experts by each of its implementations: within limits, and every other
            choice of experts is a tie, which is said
  hooks     a dump of forward hooks, under the names of hf.yaml, is within limits
  recorder  what vernier_parity records is, too, of a family that it knows
  choice    of an expert: one that is no tie is the origin, and --replay-routing says that it makes the error
  evaluate  --replay-routing: what the choice alone does is what transformers says with that choice
  faults    mistakes made in transformers' modules, from outside: outside limits, and named by their id; every Nth;
            of every second, what vernier_parity records
  gpu       on every suitable device, by parity_gpu.py's criteria; it decodes what transformers' generate does, and a
            paged cache gives the same bits; each fault of the catalogue gives what it gives on the reference

Needs torch and transformers (77, skipped, without).
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple, Tuple

import h5py
import numpy as np

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import random_model
import parity_gpu
import parity_hf
from parity_faults import fitting

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "capture", "python"))
import vernier_parity  # pylint: disable=wrong-import-position

TOKENS, STEPS = 120, 24
IDS = [(7 * t * t + 13 * t + 5) % 512 for t in range(TOKENS)]
FLIPS = "experts: "
NAMES = os.path.join(HERE, "..", "..", "specs", "names", "hf.yaml")
LAYER = 1
NAMED = r"^(?:explained|         )  (\S+(?: and \d+ more origins?)?: [A-Z]\d+\S*: .*)$"  # the lines that explain
LINEAR = '{"rope_type":"linear","factor":8.0}'
YARN = '{"rope_type":"yarn","factor":8.0,"original_max_position_embeddings":64,"truncate":false}'
MSCALE = '{"rope_type":"yarn","factor":40.0,"original_max_position_embeddings":16,"mscale":1.0,"mscale_all_dim":0.707}'
ROUTER = ("router_logits", "router_ids", "router_weights", "moe_out")
FAULTS = ("E", "A19", "A21", "N23", "R1.halves", "R4.first", "W23", "C13")  # on both engines
LATENT = ("kv_a_norm", "kv_b_proj", "attn_context", *ROUTER[:3], "routed_out", "shared_expert_out", "output")


class Family(NamedTuple):
    """A row of FAMILIES."""

    shape: str  # options of random_model.py
    layout: str = ""  # the option that makes the same model in another layout of files
    allow: str = "missing"  # what a recording by transformers may lack
    differs: Tuple[str, ...] = ()  # what the other layout may differ in
    ways: Tuple[str, ...] = ("",)  # implementations of its experts
    points: Tuple[str, ...] = ROUTER  # of layer LAYER, that hooks record
    without: Tuple[str, ...] = ()  # modules whose output is another checkpoint with a cap
    recorded: bool = False  # whether the recorder of the package knows it
    gpu: bool = False  # whether the GPU engine does
    since: Tuple[int, ...] = ()  # the release of transformers of which golden.py knows the router


EXPERTS = dict(layout="--fused", ways=("eager", "grouped_mm", "batched_mm"), gpu=True, since=(5, 17))
FAMILIES = {
    "mixtral": Family("--kv-heads 2 --head-dim 12 --hidden 48 --heads 4 --experts 8,3 --ffn 40 --layers 3 --untied",
                      recorded=True, **EXPERTS),
    "olmoe": Family("--kv-heads 2 --hidden 48 --heads 4 --experts 12,4 --ffn 40 --layers 3", recorded=True, **EXPERTS),
    "qwen3_moe": Family("--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --experts 16,4 --layers 4 --normalised "
                        "--dense 0", recorded=True, **EXPERTS),
    "qwen3_5_moe_text": Family("--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --experts 12,4 --layers 4 "
                               "--interval 2 --linear 2,4,8,8 --untied", recorded=True, **EXPERTS),
    "deepseek_v2": Family("--hidden 48 --heads 4 --latent 0,24,10,8,14 --experts 12,4 --groups 4,2 --router-scale 4 "
                          f"--shared 2 --layers 3 --untied --rope-scaling {MSCALE}",
                          recorded=True, **EXPERTS, points=LATENT),
    "deepseek_v3": Family("--hidden 48 --heads 4 --latent 20,24,16,8,8 --experts 16,4 --groups 4,2 --normalised "
                          f"--layers 3 --router-scale 2.5 --untied --rope-scaling {MSCALE}",
                          recorded=True, **EXPERTS, points=("q_a_norm", "q_proj", *LATENT)),
    "gemma3_text": Family(
        "--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --layers 4 --interval 2 --window 11 --query-scale 9 "
        f"--caps 0,3 --rope-scaling {LINEAR}", layout="--multimodal", allow="missing,config,weights",
        differs=("--allow", "config,weights"), without=("lm_head",), recorded=True,
        points=("q_norm", "attn_context", "attn_post_norm", "attn_residual", "mlp_norm", "mlp_post_norm", "output")),
    "gpt_oss": Family(
        "--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --layers 4 --window 11 --experts 8,3 --ffn 40 --untied "
        f"--theta 150000 --rope-scaling {YARN}", allow="missing,config,weights", gpu=True,
        recorded=True,
        points=("q_proj", "attn_context", "router_logits", "router_ids", "router_weights", "moe_out", "output")),
}


def spec(ids):
    return ",".join(map(str, ids))


# ---- mistakes in a model m and its layer LAYER, made from outside: of experts ------------------

def router_of(layer):
    return getattr(layer.mlp, "gate", getattr(layer.mlp, "router", None))


def routed(change):
    """The router returns what `change` makes of logits, weights and ids."""
    def make(_, layer):
        router = router_of(layer)
        forward = router.forward
        router.forward = lambda x: change(router, *forward(x))
    return make


def with_weights(of):
    """The weights of the chosen experts are of(logits, weights, ids)."""
    return routed(lambda gate, logits, weights, ids: (logits, of(logits, weights, ids).to(weights.dtype), ids))


def without_the_best(gate, logits, weights, ids):
    probs, ids = torch.softmax(logits.float(), -1).topk(ids.shape[1] + 1)
    probs, ids = probs[:, 1:], ids[:, 1:]
    if getattr(gate, "norm_topk_prob", True):
        probs = probs / probs.sum(-1, keepdim=True)
    return logits, probs.to(weights.dtype), ids


def one_other(gate, logits, weights, ids):
    """Token 5 goes through the best of the other experts in place of its last one."""
    ids = ids.clone()
    ids[5, -1] = logits[5].index_fill(0, ids[5], -torch.inf).argmax()
    return logits, weights, ids


def fewer(logits, weights, ids):
    used = weights.clone()
    used[:, -1] = 0
    return used / used.sum(-1, keepdim=True) if torch.allclose(weights.sum(-1), torch.ones(1).to(weights)) else used


def normalise(logits, weights, ids):
    return weights / weights.sum(-1, keepdim=True)


def weighing(change):
    """gate_up_proj (E,2F,D) and down_proj (E,D,F) become change(gate_up, down)."""
    def make(_, layer):
        experts = layer.mlp.experts
        experts.gate_up_proj.data, experts.down_proj.data = change(experts.gate_up_proj.data, experts.down_proj.data)
    return make


def constant(**values):
    """The router has other constants."""
    def make(_, layer):
        for name, value in values.items():
            setattr(layer.mlp.gate, name, value)
    return make


def scaled(of):
    """Weights of DeepSeek-V3 by of(logits, bias), of the chosen experts."""
    return routed(lambda gate, logits, _, ids: (logits, gate.routed_scaling_factor * normalise(
        0, of(logits.float(), gate.e_score_correction_bias).gather(1, ids), 0), ids))


def unbiased(_, layer):
    layer.mlp.gate.e_score_correction_bias.zero_()


def of_shared(moe, given, out):
    """What the shared expert computes, and the factor of its gate."""
    shared = getattr(moe, "shared_experts", getattr(moe, "shared_expert", None))
    gate = getattr(moe, "shared_expert_gate", None)
    x = given[0].view(-1, out.shape[-1])
    return shared.forward(x).view_as(out), torch.sigmoid(gate(given[0])) if gate else 1


def not_shared(_, layer):
    routed_out = [None]  # a difference would round once more

    def keep(_, given, out):
        routed_out[0] = out.clone()
    layer.mlp.experts.register_forward_hook(keep)
    layer.mlp.register_forward_hook(lambda moe, given, out: routed_out[0].view_as(out))


def ungated(_, layer):
    def hook(moe, given, out):
        shared, by = of_shared(moe, given, out)
        return out + shared * (1 - by)
    layer.mlp.register_forward_hook(hook)


def by_rows(up, down):
    return torch.cat([up[:, 0::2], up[:, 1::2]], 1), down


def interleaved(up, down):
    gate, up = up.chunk(2, 1)
    return torch.stack([gate, up], 2).flatten(1, 2), down


def ids_of_before(_, layer):
    forward = layer.mlp.experts.forward
    layer.mlp.experts.forward = lambda x, ids, w: forward(x, torch.cat([torch.zeros_like(ids[:1]), ids[:-1]]), w)


def lent(m, layer):
    """Layer LAYER's first expert is that of the next layer."""
    own, other = layer.mlp.experts, m.model.layers[LAYER + 1].mlp.experts
    own.gate_up_proj.data[0], own.down_proj.data[0] = other.gate_up_proj.data[0], other.down_proj.data[0]


# ---- of the other families ---------------------------------------------------------------------

def with_kinds(m, kinds):
    m.config.layer_types[:] = kinds
    for layer, kind in zip(m.model.layers, kinds):
        layer.attention_type = kind  # which transformers 5.2 reads in place of the config


def kind_of_layer(m, _):
    """Layer LAYER, which has no window, is made one with a window."""
    kinds = m.config.layer_types
    with_kinds(m, [*kinds[:LAYER], "sliding_attention", *kinds[LAYER + 1:]])


def shifted(m, _):
    with_kinds(m, m.config.layer_types[1:] + m.config.layer_types[:1])


def plain_weight(m, layer):
    norm = layer.post_feedforward_layernorm
    norm.forward = lambda x: norm._norm(x.float()) * norm.weight.float()


def left_out(m, layer):
    layer.post_attention_layernorm.forward = lambda x: x


def scaled_by(factor):
    def make(m, _):
        m.model.embed_tokens.embed_scale.data.fill_(factor(float(m.model.embed_tokens.embed_scale)))
    return make


def uncapped(m, _):
    m.config.final_logit_softcapping = None


def by_head(m, layer):
    layer.self_attn.scaling = layer.self_attn.head_dim ** -0.5


def sinks(change):
    def make(m, layer):
        layer.self_attn.sinks.data = change(layer.self_attn)
    return make


def gated(of):
    def make(m, layer):
        layer.mlp.experts._apply_gate = lambda x: of(x, layer.mlp.experts)
    return make


def latent_scale(power):
    """The factor of yarn (mscale squared), with another power."""
    def make(_, layer):
        plain = layer.self_attn.qk_head_dim ** -0.5
        layer.self_attn.scaling = plain * (layer.self_attn.scaling / plain) ** power
    return make


def unnormed(_, layer):
    layer.self_attn.kv_a_layernorm.forward = lambda x: x


def not_interleaved(m, _):
    m.config.rope_interleave = False


def in_halves(x, experts):
    gate, up = x.chunk(2, -1)
    return type(experts)._apply_gate(experts, torch.stack([gate, up], -1).flatten(-2))


def unlimited(x, experts):
    gate, up = x[..., ::2], x[..., 1::2]
    return (up + 1) * gate * torch.sigmoid(gate * experts.alpha)


def without_one(x, experts):
    gate, up = x[..., ::2].clamp(max=experts.limit), x[..., 1::2].clamp(-experts.limit, experts.limit)
    return up * gate * torch.sigmoid(gate * experts.alpha)


def constants(**values):
    def make(m, layer):
        for name, value in values.items():
            setattr(layer.mlp.experts, name, value)
    return make


def no_biases(m, layer):
    layer.mlp.experts.gate_up_proj_bias.data.zero_()
    layer.mlp.experts.down_proj_bias.data.zero_()


def no_router_bias(m, layer):
    layer.mlp.router.bias.data.zero_()


def next_experts(m, layer):
    for name in ("gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias"):
        p = getattr(layer.mlp.experts, name)
        p.data = p.data.roll(-1, 0)


# id: the families, what makes it, and the checkpoints, one of which at least is explained by it
EVERY, IN_LAYER = ("mixtral", "olmoe", "qwen3_moe"), (f"layer{LAYER}.",)
HYBRID, LATENTS, OSS = ("qwen3_5_moe_text",), ("deepseek_v2", "deepseek_v3"), ("gpt_oss",)
ALL, SCORES = EVERY + HYBRID + LATENTS[1:], ("layer1.attn_scores", "layer1.attn_context")
MISTAKES = [
    ("E3.softmax", LATENTS[1:], scaled(lambda l, _: torch.softmax(l, -1)), IN_LAYER),
    ("E11", LATENTS[1:], scaled(lambda l, bias: l.sigmoid() + bias), IN_LAYER),
    ("E12", LATENTS[1:], unbiased, IN_LAYER),
    ("E13", LATENTS, constant(topk_group=4), IN_LAYER),
    ("E14", LATENTS, constant(routed_scaling_factor=1.0), IN_LAYER),
    ("E2", LATENTS[1:], constant(norm_topk_prob=False), IN_LAYER),
    ("E15", LATENTS + HYBRID, not_shared, IN_LAYER),
    ("P22", HYBRID, ungated, IN_LAYER),  # E15.ungated, of a run whose gated output was recorded
    ("A21.missing", LATENTS[1:], latent_scale(0), SCORES),
    ("A21.root", LATENTS[1:], latent_scale(0.5), SCORES),
    ("A21.squared", LATENTS[1:], latent_scale(2), SCORES),
    ("N23", LATENTS[1:], unnormed, ("layer1.kv_a_norm",)),
    ("R1.halves", LATENTS[1:], not_interleaved, ("layer0.q_rope", "layer0.k_pe_rope")),
    ("E1.after", ("olmoe",), with_weights(normalise), IN_LAYER),
    ("E1.twice", EVERY,
     with_weights(lambda l, w, ids: torch.softmax(torch.softmax(l.float(), -1).gather(1, ids), -1)), IN_LAYER),
    ("E2", ("mixtral", "qwen3_moe", *HYBRID),
     with_weights(lambda l, w, ids: torch.softmax(l.float(), -1).gather(1, ids)), IN_LAYER),
    ("E3", ("olmoe",), with_weights(lambda l, w, ids: torch.sigmoid(l.float()).gather(1, ids)), IN_LAYER),
    ("E3", ("mixtral", "qwen3_moe"),
     with_weights(lambda l, w, ids: normalise(l, torch.sigmoid(l.float()).gather(1, ids), ids)), IN_LAYER),
    ("E4.first", EVERY + OSS, routed(without_the_best), IN_LAYER),
    ("E4.last", EVERY + HYBRID + OSS, with_weights(fewer), IN_LAYER),
    ("E5.next", ALL, weighing(lambda u, d: (u.roll(-1, 0), d.roll(-1, 0))), IN_LAYER),
    ("E5.before", ALL, weighing(lambda u, d: (u.roll(1, 0), d.roll(1, 0))), IN_LAYER),
    ("E6.exchanged", ALL, weighing(lambda u, d: (u.roll(u.shape[1] // 2, 1), d)), IN_LAYER),
    ("E6.rows", EVERY, weighing(by_rows), IN_LAYER),
    ("E6.halves", EVERY, weighing(interleaved), IN_LAYER),
    ("E7", EVERY + HYBRID + OSS, ids_of_before, IN_LAYER),
    ("E8", ALL, lent, IN_LAYER),
    ("R18", ("gemma3_text",), kind_of_layer, ("layer1.q_rope", "layer1.k_rope")),
    ("A5.layer", ("gemma3_text",), kind_of_layer, ("layer1.attn_context", "layer1.attn_probs")),
    ("A5.missing", ("gemma3_text",), shifted, ("layer0.attn_context", "layer0.attn_probs")),
    ("N6", ("gemma3_text",), plain_weight, ("layer1.mlp_post_norm",)),
    ("N20", ("gemma3_text",), left_out, ("layer1.attn_post_norm",)),
    ("M4.missing", ("gemma3_text",), scaled_by(lambda _: 1.0), ("embed",)),
    ("M4.bf16", ("gemma3_text",), scaled_by(lambda s: float(torch.tensor(s).bfloat16())), ("embed",)),
    ("M9.uncapped", ("gemma3_text",), uncapped, ("logits",)),
    ("A1.rotated", ("gemma3_text",), by_head, ("layer1.attn_scores", "layer1.attn_context")),
    ("A19", ("gpt_oss",), sinks(lambda a: torch.full_like(a.sinks, -1e4)),
     ("layer1.attn_probs", "layer1.attn_context")),
    ("A19.scaled", ("gpt_oss",), sinks(lambda a: a.sinks * a.scaling), ("layer1.attn_probs", "layer1.attn_context")),
    ("A19.keys", ("gpt_oss",), sinks(lambda a: a.sinks[:len(a.sinks) // a.num_key_value_groups].repeat_interleave(
        a.num_key_value_groups)), ("layer1.attn_probs", "layer1.attn_context")),
    ("A5.layer", ("gpt_oss",), kind_of_layer, ("layer1.attn_context", "layer1.attn_probs")),
    ("A5.missing", ("gpt_oss",), shifted, ("layer0.attn_context", "layer0.attn_probs")),
    ("E6.halves", ("gpt_oss",), gated(in_halves), ("layer1.expert_out",)),
    ("E9.limit", ("gpt_oss",), gated(unlimited), ("layer1.expert_out",)),
    ("E9.shift", ("gpt_oss",), gated(without_one), ("layer1.expert_out",)),
    ("E9.act", ("gpt_oss",), constants(alpha=1.0), ("layer1.expert_out",)),
    ("E10", ("gpt_oss",), no_biases, ("layer1.expert_out",)),
    ("E5.next", ("gpt_oss",), next_experts, ("layer1.expert_out",)),
    ("W6", ("gpt_oss",), no_router_bias, ("layer1.router_logits",)),
]


# ---- runs ------------------------------------------------------------------------------------

def vernier_json(vernier, *words):
    r = subprocess.run([vernier, *words, "--format", "json"], capture_output=True, text=True)
    if r.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)}: {r.stderr}")
    return r.returncode, json.loads(r.stdout)


def record(model, dtype, path, change=None, experts=""):
    """transformers' run of IDS, with a mistake made first."""
    family = golden.family_of(model)[1]
    m = golden.load(model, dtype)
    if experts:
        m.set_experts_implementation(experts)
    if change:
        change(m, m.model.layers[LAYER])
    values = golden.capture(family, m, IDS)
    golden.write(path, model, IDS, dtype, values, m.config.num_hidden_layers, command="parity_families.py",
                 provenance="synthetic", points="*", prompt=None)


def captured(vernier, model, out):
    subprocess.run([vernier, "capture", "ref", model, "--ids", spec(IDS), "--points", "*", "-o", out, "--force"],
                   check=True, stderr=subprocess.DEVNULL)


def decodes(vernier, model, d, engine=("ref",), precisions=("f32", "f64"), ids=tuple(IDS[:20])):
    m = golden.load(model, "f32")
    with torch.no_grad():
        want = m.generate(torch.tensor([ids]), max_new_tokens=STEPS, do_sample=False, eos_token_id=None,
                          pad_token_id=0)[0].tolist()
    good = True
    for precision in precisions:
        out = os.path.join(d, "greedy.h5")
        subprocess.run([vernier, "capture", *engine, model, "--ids", spec(ids), "--decode", str(STEPS),
                        "--precision", precision, "-o", out, "--force"], check=True, stderr=subprocess.DEVNULL)
        with h5py.File(out) as f:
            good &= f["run/token_ids"][()].tolist()[:len(want)] == want[:len(f["run/token_ids"])]
            good &= len(f["run/token_ids"]) >= len(ids) + STEPS - 1
    return good


def hooked(vernier, model, ref, d, family):
    """What forward hooks record, by specs/names/hf.yaml: ids are whole numbers there, and have no batch."""
    m, out = golden.load(model, "f32"), {}

    def hook(name):
        def keep(_, given, made):
            of = {f"{name}.{i}": t for i, t in enumerate(made)} if isinstance(made, tuple) else {name: made}
            of.update({f"{name}.in": t for t in given[:1]})
            out.update({n: t.numpy().copy() for n, t in of.items() if isinstance(t, torch.Tensor)})
        return keep

    for name, module in m.named_modules():
        if name and name not in FAMILIES[family].without:
            module.register_forward_hook(hook(name))
    with torch.no_grad():
        m(torch.tensor([IDS]), use_cache=False)
    dump, cand = os.path.join(d, "dump.npz"), os.path.join(d, "cand.h5")
    np.savez(dump, **out)
    subprocess.run([vernier, "import", dump, "--model", model, "--ids", spec(IDS), "--names", NAMES, "-o", cand,
                    "--force"], check=True, stderr=subprocess.DEVNULL)
    status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", "missing,weights")
    named = {c["name"] for c in found["checkpoints"] if c["status"] not in ("missing", "extra")}
    good = status == 0 and {f"layer{LAYER}.{p}" for p in FAMILIES[family].points} <= named
    print(f"{family}: a dump of forward hooks {'is within limits' if good else f'FAILS: {sorted(named)}'}")
    return good


def by_recorder(model, dtype, path, change=None, experts=""):
    """As `record`, by vernier_parity."""
    m = golden.load(model, dtype)
    if experts:
        m.set_experts_implementation(experts)
    if change:
        change(m, m.model.layers[LAYER])
    with torch.no_grad(), vernier_parity.record(m, path, force=True):
        m(torch.tensor([IDS]), use_cache=False)


def recorded(vernier, model, ref, d, family):
    """What vernier_parity records, under the standard names."""
    good, cand = True, os.path.join(d, "cand.h5")
    for dtype in ("f32", "bf16"):
        by_recorder(model, dtype, cand)
        status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", "missing")
        named = {c["name"] for c in found["checkpoints"] if c["status"] not in ("missing", "extra")}
        points = ("q_rope", "k_rope", "attn_context", *FAMILIES[family].points)
        want = {f"layer{LAYER}.{p}" for p in points} | {"logits"}
        want |= {f"layer{LAYER}.expert_out"} if "router_ids" in points else set()
        good &= status == 0 and want <= named
        if status or not want <= named:
            print(f"{family} {dtype}: status {status}, {[c['name'] for c in found['checkpoints'] if c['fails']]}, not "
                  f"recorded {sorted(want - named)}")
    print(f"{family}: vernier_parity records it {'under the standard names' if good else 'WRONGLY'}")
    return good


def healthy(vernier, model, ref, d, family):
    good, flips, of, cand = True, 0, FAMILIES[family], os.path.join(d, "cand.h5")
    for dtype in ("f32", "f16", "bf16"):
        for experts in of.ways:
            record(model, dtype, cand, experts=experts)
            status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", of.allow)
            said = [n for n in found["notes"] if n.startswith(FLIPS)]
            flips += int(said[0].split()[1]) if said else 0
            if status or any("no fault" not in n for n in said):
                good = False
                print(f"{family} {dtype} {experts}: accused: {[c['name'] for c in found['checkpoints'] if c['fails']]}")
    print(f"{family}: {3 * len(of.ways)} healthy runs, {flips} other choices of experts, all ties"
          f"{'' if good else '   FAILED'}")
    return good


def one_choice(vernier, model, ref, d, family):
    """One choice of several hundred that is no tie."""
    cand = os.path.join(d, "cand.h5")
    record(model, "f16", cand, routed(one_other), "eager")
    status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", FAMILIES[family].allow,
                                 "--replay-routing")
    origins = [c["name"] for c in found["checkpoints"] if c.get("origin")]
    good = status == 1 and f"layer{LAYER}.router_ids" in origins and any(n.startswith(FLIPS) for n in found["notes"])
    note = next((n for n in found["notes"] if n.startswith("routing: ")), "")
    routing, arithmetic, whole = (float(x.rstrip(",;")) for x in note.split() if "e-" in x) if note else (0, 1, 1)
    good &= 0.9 * whole < routing < 1.1 * whole and arithmetic < 0.1 * whole
    parts = found.get("routing", {})
    good &= parts.get("checkpoint") == "logits" and f"{parts['routing']:.2e}" == f"{routing:.2e}"
    print(f"{family}: one wrong choice is {'an origin' if good else f'LOST: {origins}'}; {note}")
    return good


def choosing(m, held):
    """The routers of m return what a recording holds."""
    for n, layer in enumerate(m.model.layers):
        router = router_of(layer)
        if f"layer{n}.router_ids" in held:
            ids, weights = (torch.from_numpy(held[f"layer{n}.router_{x}"][()].astype("f4")) for x in ("ids", "weights"))
            router.forward = lambda x, ids=ids, weights=weights, of=router.forward: (of(x)[0], weights, ids.long())
    return m


def losses(m):
    with torch.no_grad():
        scores = m(torch.tensor([IDS]), use_cache=False).logits[0, :-1].double()
    return -torch.log_softmax(scores, -1)[torch.arange(TOKENS - 1), torch.tensor(IDS[1:])]


def split(vernier, model, d, family):
    """The gap of a candidate with a fault of its choice, in float16."""
    how, cand = ("--precision", "f16", "--inject", f"E4.first@layer{LAYER}"), os.path.join(d, "cand.h5")
    subprocess.run([vernier, "capture", "ref", model, "--ids", spec(IDS), "--points", "layer*.router_{ids,weights}",
                    *how, "-o", cand, "--force"], check=True, stderr=subprocess.DEVNULL)
    _, j = vernier_json(vernier, "evaluate", model, "--ids", spec(IDS), "--candidate", "ref", "--decode", "0",
                        "--replay-routing", *how)
    m, held = golden.load(model, "f32"), parity_hf.tensors(cand, 0)
    want = (losses(choosing(m, held)) - losses(golden.load(model, "f32"))).mean()
    routing, rest = (j["routing"][x]["loss"] for x in ("routing", "arithmetic"))
    good = abs(routing - want) < 1e-5 + 1e-3 * abs(want) and abs(routing + rest - j["gap"]["loss"]) < 1e-12
    said = subprocess.run([vernier, "evaluate", model, "--ids", spec(IDS), "--candidate", "ref", "--decode", "0",
                           "--replay-routing", *how], capture_output=True, text=True, check=True).stdout
    good &= f"alone: gap {100 * np.expm1(routing):+.3g} %" in said and f"adds {100 * np.expm1(rest):+.3g} %" in said
    print(f"{family}: another choice changes the loss by {routing:+.6f}, with transformers {want:+.6f}; arithmetic "
          f"adds {rest:+.6f}{'' if good else '   FAILED'}")
    return good


def names(vernier, model, ref, d, family, every):
    named = wrong = done = 0
    cand, of = os.path.join(d, "cand.h5"), FAMILIES[family]
    for what, _, change, at in [x for x in MISTAKES if family in x[1]][::every]:
        by_package = of.recorded and done % 2  # whose recordings have tables of weights
        (by_recorder if by_package else record)(model, "f32", cand, change, of.ways[0])
        allow = "missing,config,weights" if by_package else of.allow
        r = subprocess.run([vernier, "explain", ref, cand, "--model", model, "--allow", allow], capture_output=True,
                           text=True)
        said = [found[1] for found in re.finditer(NAMED, r.stdout, re.M)]
        right = r.returncode == 1 and any(f": {what}:" in s and s.startswith(at) for s in said)
        done += 1
        named += right
        wrong += bool(said) and not right
        if not right:
            print(f"{family} {what}: status {r.returncode}, said {said} {r.stderr}")
    print(f"{family}: {named} of {done} mistakes named, {wrong} by a wrong name")
    return named == done


# ---- the GPU engine ------------------------------------------------------------------------------

def forced(vernier, model, engine, d, name, precision, *more):
    """A prefill and single tokens behind it."""
    out = os.path.join(d, name)
    subprocess.run([vernier, "capture", *engine, model, "--ids", spec(IDS[:80]), "--force-ids", spec(IDS[80:90]),
                    "--points", "*", "--precision", precision, "-o", out, "--force", *more], check=True,
                   stderr=subprocess.DEVNULL)
    return out


def same_bits(a, b):
    steps = [(parity_hf.tensors(a, i), parity_hf.tensors(b, i)) for i in range(11)]
    return all(x.keys() == y.keys() and all(x[n][()].tobytes() == y[n][()].tobytes() for n in x) for x, y in steps)


def apart(vernier, model, engine, d, *more):
    """How far the engine is from the reference in float32."""
    ref, gpu = (forced(vernier, model, e, d, n, "f32", *more) for e, n in ((("ref",), "fr.h5"), (engine, "fg.h5")))
    steps = [(parity_hf.tensors(ref, i), parity_hf.tensors(gpu, i)) for i in range(11)]
    return max(parity_gpu.relative(b[n][()].astype("f8"), a[n][()].astype("f8")) for a, b in steps for n in a)


def faulty_alike(vernier, model, engine, d, fault, usual):
    """In float32 the fault gives the same numbers on both engines."""
    off = apart(vernier, model, engine, d, "--inject", f"{fault}@layer{LAYER}")
    good = off <= max(1e-4, 10 * usual)
    if not good:
        print(f"{fault} on the GPU: {off:.1e} from the reference with that fault, {usual:.1e} without   FAILED")
    return good


def on_gpu(vernier, model, d, family, every):
    good = True
    for index, name, _ in parity_gpu.devices(vernier):
        engine = ("gpu", "--device", index)
        good &= parity_gpu.check(vernier, index, model, spec(IDS), f"{family}, device {index}", floors=4.0)
        greedy = decodes(vernier, model, d, engine, ("f32",))
        ref = forced(vernier, model, ("ref",), d, "f32.h5", "f32")
        gpu, paged = (forced(vernier, model, engine, d, kv + ".h5", "f16", "--kv", kv)
                      for kv in ("contiguous", "paged"))
        status, found = vernier_json(vernier, "compare", ref, gpu, "--model", model)
        said = [n for n in found["notes"] if n.startswith(FLIPS)]
        within = status == 0 and all("no fault" in n for n in said)
        same = same_bits(gpu, paged)
        faults = [f for f in fitting(vernier, model) if f.startswith(FAULTS)][::every]
        usual = apart(vernier, model, engine, d)
        alike = sum(faulty_alike(vernier, model, engine, d, f, usual) for f in faults)
        print(f"{family}, device {index}: greedy tokens {'equal' if greedy else 'DIFFER'}; prefill and 10 tokens "
              f"{'within' if within else 'OUTSIDE'} limits{', ' + said[0] if said else ''}; "
              f"{'the same bits' if same else 'OTHER BITS'} paged; {alike} of {len(faults)} faults as on the reference")
        good &= greedy and within and same and alike == len(faults)
    return good


def checked(vernier, family, d, every):
    of, model, at = FAMILIES[family], os.path.join(d, "model"), lambda f: os.path.join(d, f)
    random_model.main([family, *of.shape.split(), "-o", model])
    ref, greedy, same = at("ref.h5"), decodes(vernier, model, d), True
    captured(vernier, model, ref)
    if of.layout:
        random_model.main([family, *of.shape.split(), "-o", at("other"), of.layout])
        captured(vernier, at("other"), at("other.h5"))
        same = not subprocess.run([vernier, "compare", ref, at("other.h5"), *of.differs],
                                  capture_output=True).returncode
        greedy &= len(of.ways) == 1 or decodes(vernier, at("other"), d)
        print(f"{family}: both layouts {'agree' if same else 'DIFFER'}")
    print(f"{family}: greedy tokens {'equal' if greedy else 'DIFFER'}")
    golden.record(model, spec(IDS), "f64", at("f64"), checked=True)
    good = same and greedy and parity_hf.check(vernier, model, spec(IDS), at("f64"), family)
    good &= healthy(vernier, model, ref, d, family)
    good &= hooked(vernier, model, ref, d, family)
    good &= not of.recorded or recorded(vernier, model, ref, d, family)
    if "router_ids" in of.points:
        good &= one_choice(vernier, model, ref, d, family)
        good &= split(vernier, model, d, family)
    good &= names(vernier, model, ref, d, family, every)
    return good & (not of.gpu or on_gpu(vernier, model, d, family, every))


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("families", nargs="*", metavar="FAMILY")
    a.add_argument("--faults", type=int, default=1, metavar="N", help="every Nth mistake")
    a = a.parse_intermixed_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    good = True
    release = tuple(int(x) for x in transformers.__version__.split(".")[:2])
    for family in a.families or FAMILIES:
        if release < FAMILIES[family].since:
            print(f"{family}: skipped: transformers {transformers.__version__}: its router returns probabilities")
            continue
        with tempfile.TemporaryDirectory() as d:
            good &= checked(a.vernier, family, d, a.faults)
            sys.stdout.flush()
    print("passed" if good else "FAILED")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
