#!/usr/bin/env python3
"""parity_families.py: Gemma 3 and gpt-oss, made and run on the spot by HuggingFace: decoding, verdicts, mistakes.

    parity_families.py VERNIER [--faults N] [FAMILY...]

A random model of each family:

  greedy    the reference in float32 and float64 decodes what transformers' generate does
  error     float32 and float64 by parity_hf.py's criterion, printed
  layouts   Gemma 3's text model inside a multimodal one records the same
  healthy   transformers in three formats: within limits
  hooks     a dump of forward hooks, under the names of hf.yaml, is within limits
  recorder  what vernier_parity records of Gemma 3 is, too
  faults    mistakes made in transformers' modules, from outside: outside limits, and named by their id; every Nth

Needs torch and transformers (77, skipped, without).
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import random_model
import parity_hf
from parity_experts import IDS, decodes, hooked, spec, vernier_json

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "capture", "python"))
import vernier_parity  # pylint: disable=wrong-import-position

LINEAR = '{"rope_type":"linear","factor":8.0}'
YARN = '{"rope_type":"yarn","factor":8.0,"original_max_position_embeddings":64,"truncate":false}'
MSCALE = '{"rope_type":"yarn","factor":40.0,"original_max_position_embeddings":16,"mscale":1.0,"mscale_all_dim":0.707}'
SHAPES = {
    "gemma3_text": "--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --layers 4 --interval 2 --window 11 "
                   f"--query-scale 9 --caps 0,3 --rope-scaling {LINEAR}",
    "deepseek_v3": "--hidden 48 --heads 4 --latent 20,24,16,8,8 --experts 8,3 --layers 3 --normalised --untied "
                   f"--rope-scaling {MSCALE}",
    "gpt_oss": "--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --layers 4 --window 11 --experts 8,3 --ffn 40 "
               f"--untied --theta 150000 --rope-scaling {YARN}",
}
LAYER = 1
NAMED = r"^(?:explained|         )  (\S+(?: and \d+ more origins?)?: [A-Z]\d+\S*: .*)$"  # the lines that explain


# ---- mistakes in a model m and its layer LAYER, made from outside -------------------------------

def kind_of_layer(m, _):
    """Layer LAYER, which has no window, is made one with a window."""
    m.config.layer_types[LAYER] = "sliding_attention"


def shifted(m, _):
    m.config.layer_types[:] = m.config.layer_types[1:] + m.config.layer_types[:1]


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
    def make(m, layer):
        plain = layer.self_attn.qk_head_dim ** -0.5
        layer.self_attn.scaling = plain * (layer.self_attn.scaling / plain) ** power
    return make


def unnormed(name):
    def make(m, layer):
        getattr(layer.self_attn, name).forward = lambda x: x
    return make


def not_interleaved(m, layer):
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


# family, id: what makes it, and the checkpoints, one of which at least is explained by it
MISTAKES = {
    ("deepseek_v3", "A21.missing"): (latent_scale(0), ("layer1.attn_scores", "layer1.attn_context")),
    ("deepseek_v3", "A21.root"): (latent_scale(0.5), ("layer1.attn_scores", "layer1.attn_context")),
    ("deepseek_v3", "A21.squared"): (latent_scale(2), ("layer1.attn_scores", "layer1.attn_context")),
    ("deepseek_v3", "N23"): (unnormed("kv_a_layernorm"), ("layer1.kv_a_norm",)),
    ("deepseek_v3", "R1.halves"): (not_interleaved, ("layer0.q_rope", "layer0.k_pe_rope")),
    ("gemma3_text", "R18"): (kind_of_layer, ("layer1.q_rope", "layer1.k_rope")),
    ("gemma3_text", "A5.layer"): (kind_of_layer, ("layer1.attn_context", "layer1.attn_probs")),
    ("gemma3_text", "A5.missing"): (shifted, ("layer0.attn_context", "layer0.attn_probs")),
    ("gemma3_text", "N6"): (plain_weight, ("layer1.mlp_post_norm",)),
    ("gemma3_text", "N20"): (left_out, ("layer1.attn_post_norm",)),
    ("gemma3_text", "M4.missing"): (scaled_by(lambda _: 1.0), ("embed",)),
    ("gemma3_text", "M4.bf16"): (scaled_by(lambda s: float(torch.tensor(s).bfloat16())), ("embed",)),
    ("gemma3_text", "M9.uncapped"): (uncapped, ("logits",)),
    ("gemma3_text", "A1.rotated"): (by_head, ("layer1.attn_scores", "layer1.attn_context")),
    ("gpt_oss", "A19"): (sinks(lambda a: torch.full_like(a.sinks, -1e4)), ("layer1.attn_probs",
                                                                         "layer1.attn_context")),
    ("gpt_oss", "A19.scaled"): (sinks(lambda a: a.sinks * a.scaling), ("layer1.attn_probs", "layer1.attn_context")),
    ("gpt_oss", "A5.layer"): (kind_of_layer, ("layer1.attn_context", "layer1.attn_probs")),
    ("gpt_oss", "A5.missing"): (shifted, ("layer0.attn_context", "layer0.attn_probs")),
    ("gpt_oss", "E6.halves"): (gated(in_halves), ("layer1.expert_out",)),
    ("gpt_oss", "E9.limit"): (gated(unlimited), ("layer1.expert_out",)),
    ("gpt_oss", "E9.shift"): (gated(without_one), ("layer1.expert_out",)),
    ("gpt_oss", "E9.act"): (constants(alpha=1.0), ("layer1.expert_out",)),
    ("gpt_oss", "E10"): (no_biases, ("layer1.expert_out",)),
    ("gpt_oss", "E5.next"): (next_experts, ("layer1.expert_out",)),
    ("gpt_oss", "W6"): (no_router_bias, ("layer1.router_logits",)),
}


# ---- runs ------------------------------------------------------------------------------------

def record(model, dtype, path, change=None):
    """transformers' run of IDS, with a mistake made first."""
    family = golden.family_of(model)[1]
    m = golden.load(model, dtype)
    if change:
        change(m, m.model.layers[LAYER])
    values = golden.capture(family, m, IDS)
    golden.write(path, model, IDS, dtype, values, m.config.num_hidden_layers, command="parity_families.py",
                 provenance="synthetic", points="*", prompt=None)


def captured(vernier, model, out):
    subprocess.run([vernier, "capture", "ref", model, "--ids", spec(IDS), "--points", "*", "-o", out, "--force"],
                   check=True, stderr=subprocess.DEVNULL)


def recorded(vernier, model, ref, d, family):
    """What vernier_parity records, under the standard names."""
    good, cand = True, os.path.join(d, "cand.h5")
    for dtype in ("f32", "bf16"):
        m = golden.load(model, dtype)
        with torch.no_grad(), vernier_parity.record(m, cand, force=True):
            m(torch.tensor([IDS]), use_cache=False)
        status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", "missing")
        named = {c["name"] for c in found["checkpoints"] if c["status"] not in ("missing", "extra")}
        want = {f"layer{LAYER}.{p}" for p in ("q_rope", "k_rope", "attn_context", *HOOKED[family][0][2:])} | {"logits"}
        good &= status == 0 and want <= named
        if status or not want <= named:
            print(f"{family} {dtype}: status {status}, {[c['name'] for c in found['checkpoints'] if c['fails']]}, not "
                  f"recorded {sorted(want - named)}")
    print(f"{family}: vernier_parity records it {'under the standard names' if good else 'WRONGLY'}")
    return good


def healthy(vernier, model, ref, d, family):
    good, cand = True, os.path.join(d, "cand.h5")
    for dtype in ("f32", "f16", "bf16"):
        record(model, dtype, cand)
        status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", "missing,weights")
        if status:
            print(f"{family} {dtype}: accused: {[c['name'] for c in found['checkpoints'] if c['fails']]}")
        good &= status == 0
    print(f"{family}: 3 healthy runs{'' if good else '   FAILED'}")
    return good


RECORDED = ("gemma3_text",)  # families that the recorder of the package knows
# points of layer LAYER that hooks record; modules whose output is another checkpoint with a cap
HOOKED = {"gemma3_text": (("q_norm", "attn_context", "attn_post_norm", "attn_residual", "mlp_norm", "mlp_post_norm",
                           "output"), ("lm_head",)),
          "deepseek_v3": (("q_a_norm", "q_proj", "kv_a_norm", "kv_b_proj", "attn_context", "router_logits",
                           "router_ids", "router_weights", "routed_out", "shared_expert_out", "output"), ()),
          "gpt_oss": (("q_proj", "attn_context", "router_logits", "router_ids", "router_weights", "moe_out", "output"),
                      ())}


def names(vernier, model, ref, d, family, every):
    named = wrong = done = 0
    for (_, what), (change, at) in [(k, v) for k, v in MISTAKES.items() if k[0] == family][::every]:
        cand = os.path.join(d, "cand.h5")
        record(model, "f32", cand, change)
        r = subprocess.run([vernier, "explain", ref, cand, "--model", model, "--allow", "missing,config,weights"],
                           capture_output=True, text=True)
        said = [found[1] for found in re.finditer(NAMED, r.stdout, re.M)]
        right = r.returncode == 1 and any(f": {what}:" in s and s.startswith(at) for s in said)
        done += 1
        named += right
        wrong += bool(said) and not right
        if not right:
            print(f"{family} {what}: status {r.returncode}, said {said} {r.stderr}")
    print(f"{family}: {named} of {done} mistakes named, {wrong} by a wrong name")
    return named == done


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
    for family in a.families or SHAPES:
        with tempfile.TemporaryDirectory() as d:
            model, at = os.path.join(d, "model"), lambda f: os.path.join(d, f)
            random_model.main([family, *SHAPES[family].split(), "-o", model])
            captured(a.vernier, model, at("ref.h5"))
            greedy = decodes(a.vernier, model, d)
            print(f"{family}: greedy tokens {'equal' if greedy else 'DIFFER'}")
            if family == "gemma3_text":
                random_model.main([family, *SHAPES[family].split(), "-o", at("whole"), "--multimodal"])
                captured(a.vernier, at("whole"), at("whole.h5"))
                same = not subprocess.run([a.vernier, "compare", at("ref.h5"), at("whole.h5"), "--allow",
                                           "config,weights"], capture_output=True).returncode
                print(f"{family}: inside a multimodal model {'the same' if same else 'ANOTHER'}")
                good &= same
            for dtype in golden.DTYPES:
                golden.record(model, spec(IDS), dtype, at(dtype), checked=dtype == "f64")
            good &= greedy and parity_hf.check(a.vernier, model, spec(IDS), at("f32"), at("f64"), family)
            good &= healthy(a.vernier, model, at("ref.h5"), d, family)
            good &= hooked(a.vernier, model, at("ref.h5"), d, family, *HOOKED[family])
            good &= family not in RECORDED or recorded(a.vernier, model, at("ref.h5"), d, family)
            good &= names(a.vernier, model, at("ref.h5"), d, family, a.faults)
            sys.stdout.flush()
    print("passed" if good else "FAILED")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
