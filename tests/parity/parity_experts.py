#!/usr/bin/env python3
"""parity_experts.py: models with experts, made and run on the spot by HuggingFace: decoding, verdicts, mistakes.

    parity_experts.py VERNIER [--faults N] [FAMILY...]

A random model of each family, its experts in a tensor each and in one of all:

  greedy    the reference in float32 and float64 decodes what transformers' generate does
  error     float32 and float64 by parity_hf.py's criterion, printed
  healthy   transformers in three formats, its experts by each of its implementations: within limits, and every other
            choice of experts is a tie, which is said
  hooks     a dump of forward hooks, under the names of hf.yaml, is within limits
  choice    one that is no tie is the origin, and --replay-routing says that it makes the error
  faults    mistakes made in transformers' modules, from outside: outside limits, and named by their id; every Nth
  gpu       on every suitable device, by parity_gpu.py's criteria; it decodes what transformers' generate does, and a
            paged cache gives the same bits; each fault of the catalogue gives what it gives on the reference

Needs torch and transformers (77, skipped, without).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import random_model
import parity_gpu
import parity_hf
from parity_faults import fitting

YARN = '{"rope_type":"yarn","factor":40.0,"original_max_position_embeddings":16,"mscale":1.0,"mscale_all_dim":0.707}'
SHAPES = {
    "deepseek_v2": "--hidden 48 --heads 4 --latent 0,24,10,8,14 --experts 12,4 --groups 4,2 --router-scale 4 "
                   f"--shared 2 --layers 3 --untied --rope-scaling {YARN}",
    "deepseek_v3": "--hidden 48 --heads 4 --latent 20,24,16,8,8 --experts 16,4 --groups 4,2 --normalised --layers 3 "
                   f"--router-scale 2.5 --untied --rope-scaling {YARN}",
    "mixtral": "--kv-heads 2 --head-dim 12 --hidden 48 --heads 4 --experts 8,3 --ffn 40 --layers 3 --untied",
    "olmoe": "--kv-heads 2 --hidden 48 --heads 4 --experts 12,4 --ffn 40 --layers 3",
    "qwen3_5_moe_text": "--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --experts 12,4 --layers 4 --interval 2 "
                        "--linear 2,4,8,8 --untied",
    "qwen3_moe": "--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --experts 16,4 --layers 4 --normalised --dense 0",
}
TOKENS, STEPS = 120, 24
IDS = [(7 * t * t + 13 * t + 5) % 512 for t in range(TOKENS)]
FLIPS = "experts: "
NAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "specs", "names", "hf.yaml")


def spec(ids):
    return ",".join(map(str, ids))


# ---- mistakes: a router's output or an expert's weights changed in place -----------------------

def routed(change):
    """The router returns what `change` makes of logits, weights and ids."""
    def make(moe, _):
        forward = moe.gate.forward
        moe.gate.forward = lambda x: change(moe.gate, *forward(x))
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
    """Token 5 goes through the next expert in place of its last one."""
    ids = ids.clone()
    ids[5, -1] = logits[5].topk(ids.shape[1] + 1).indices[-1]
    return logits, weights, ids


def fewer(logits, weights, ids):
    used = weights.clone()
    used[:, -1] = 0
    return used / used.sum(-1, keepdim=True) if torch.allclose(weights.sum(-1), torch.ones(1).to(weights)) else used


def normalise(logits, weights, ids):
    return weights / weights.sum(-1, keepdim=True)


def weighing(change):
    """gate_up_proj (E,2F,D) and down_proj (E,D,F) become change(gate_up, down)."""
    def make(moe, _):
        moe.experts.gate_up_proj.data, moe.experts.down_proj.data = change(moe.experts.gate_up_proj.data,
                                                                           moe.experts.down_proj.data)
    return make


def by_rows(up, down):
    return torch.cat([up[:, 0::2], up[:, 1::2]], 1), down


def in_halves(up, down):
    gate, up = up.chunk(2, 1)
    return torch.stack([gate, up], 2).flatten(1, 2), down


def ids_of_before(moe, _):
    forward = moe.experts.forward
    moe.experts.forward = lambda x, ids, w: forward(x, torch.cat([torch.zeros_like(ids[:1]), ids[:-1]]), w)


def lent(moe, other):
    moe.experts.gate_up_proj.data[0], moe.experts.down_proj.data[0] = (
        other.experts.gate_up_proj.data[0], other.experts.down_proj.data[0])


def constant(**values):
    """The router has other constants."""
    def make(moe, _):
        for name, value in values.items():
            setattr(moe.gate, name, value)
    return make


def scaled(of):
    """Weights of DeepSeek-V3 by of(logits, bias), of the chosen experts."""
    return routed(lambda gate, logits, _, ids: (logits, gate.routed_scaling_factor * normalise(
        0, of(logits.float(), gate.e_score_correction_bias).gather(1, ids), 0), ids))


def unbiased(moe, _):
    moe.gate.e_score_correction_bias.zero_()


def not_shared(moe, _):
    shared = getattr(moe, "shared_experts", getattr(moe, "shared_expert", None))
    forward = shared.forward
    moe.register_forward_hook(lambda m, given, out: out - forward(given[0].view(-1, out.shape[-1])).view_as(out) * (
        torch.sigmoid(m.shared_expert_gate(given[0])) if hasattr(m, "shared_expert_gate") else 1))


def ungated(moe, _):
    moe.register_forward_hook(lambda m, given, out: out + m.shared_expert(given[0].view(-1, out.shape[-1])).view_as(out)
                              * (1 - torch.sigmoid(m.shared_expert_gate(given[0]))))


ALL = "deepseek_v3 mixtral olmoe qwen3_moe qwen3_5_moe_text"
MAKERS = {
    "E3.softmax": ("deepseek_v3", scaled(lambda l, _: torch.softmax(l, -1))),
    "E11": ("deepseek_v3", scaled(lambda l, bias: l.sigmoid() + bias)),
    "E12": ("deepseek_v3", unbiased),
    "E13": ("deepseek_v2 deepseek_v3", constant(topk_group=4)),
    "E14": ("deepseek_v2 deepseek_v3", constant(routed_scaling_factor=1.0)),
    "E2, unscaled": ("deepseek_v3", constant(norm_topk_prob=False)),
    "E15": ("deepseek_v2 deepseek_v3 qwen3_5_moe_text", not_shared),
    "E15.ungated": ("qwen3_5_moe_text", ungated),
    "E1.after": ("olmoe", with_weights(normalise)),
    "E1.twice": ("mixtral olmoe qwen3_moe", with_weights(lambda l, w, ids: torch.softmax(
        torch.softmax(l.float(), -1).gather(1, ids), -1))),
    "E2": ("mixtral qwen3_moe qwen3_5_moe_text", with_weights(lambda l, w, ids: torch.softmax(
        l.float(), -1).gather(1, ids))),
    "E3": ("olmoe", with_weights(lambda l, w, ids: torch.sigmoid(l.float()).gather(1, ids))),
    "E3, normalised": ("mixtral qwen3_moe", with_weights(
        lambda l, w, ids: normalise(l, torch.sigmoid(l.float()).gather(1, ids), ids))),
    "E4.first": ("mixtral olmoe qwen3_moe", routed(without_the_best)),
    "E4.last": ("mixtral olmoe qwen3_moe qwen3_5_moe_text", with_weights(fewer)),
    "E5.next": (ALL, weighing(lambda u, d: (u.roll(-1, 0), d.roll(-1, 0)))),
    "E5.before": (ALL, weighing(lambda u, d: (u.roll(1, 0), d.roll(1, 0)))),
    "E6.exchanged": (ALL, weighing(lambda u, d: (u.roll(u.shape[1] // 2, 1), d))),
    "E6.rows": ("mixtral olmoe qwen3_moe", weighing(by_rows)),
    "E6.halves": ("mixtral olmoe qwen3_moe", weighing(in_halves)),
    "E7": (ALL, ids_of_before),
    "E8": (ALL, lent),
}
LAYER = 1


# ---- runs ------------------------------------------------------------------------------------

def vernier_json(vernier, *words):
    r = subprocess.run([vernier, *words, "--format", "json"], capture_output=True, text=True)
    if r.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)}: {r.stderr}")
    return r.returncode, json.loads(r.stdout)


def record(model, dtype, path, change=None, experts="eager"):
    """transformers' run of IDS, with a mistake made first."""
    family = golden.family_of(model)[1]
    m = golden.load(model, dtype)
    m.set_experts_implementation(experts)
    if change:
        change(m.model.layers[LAYER].mlp, m.model.layers[LAYER + 1].mlp)
    values = golden.capture(family, m, IDS)
    golden.write(path, model, IDS, dtype, values, m.config.num_hidden_layers, command="parity_experts.py",
                 provenance="synthetic", points="*", prompt=None)


def decodes(vernier, model, d, engine=("ref",), precisions=("f32", "f64")):
    m = golden.load(model, "f32")
    with torch.no_grad():
        want = m.generate(torch.tensor([IDS[:20]]), max_new_tokens=STEPS, do_sample=False, eos_token_id=None,
                          pad_token_id=0)[0].tolist()
    good = True
    for precision in precisions:
        out = os.path.join(d, "greedy.h5")
        subprocess.run([vernier, "capture", *engine, model, "--ids", spec(IDS[:20]), "--decode", str(STEPS),
                        "--precision", precision, "-o", out, "--force"], check=True, stderr=subprocess.DEVNULL)
        import h5py
        with h5py.File(out) as f:
            good &= f["run/token_ids"][()].tolist()[:len(want)] == want[:len(f["run/token_ids"])]
            good &= len(f["run/token_ids"]) >= 20 + STEPS - 1
    return good


def hooked(vernier, model, ref, d, family, points=("router_logits", "router_ids", "router_weights", "moe_out"),
           without=()):
    """What forward hooks record, by specs/names/hf.yaml: ids are whole numbers there, and have no batch. without:
    modules that are left out."""
    m, out = golden.load(model, "f32"), {}

    def hook(name):
        def keep(_, given, made):
            of = {f"{name}.{i}": t for i, t in enumerate(made)} if isinstance(made, tuple) else {name: made}
            of.update({f"{name}.in": t for t in given[:1]})
            out.update({n: t.numpy().copy() for n, t in of.items() if isinstance(t, torch.Tensor)})
        return keep

    for name, module in m.named_modules():
        if name and name not in without:
            module.register_forward_hook(hook(name))
    with torch.no_grad():
        m(torch.tensor([IDS]), use_cache=False)
    dump, cand = os.path.join(d, "dump.npz"), os.path.join(d, "cand.h5")
    np.savez(dump, **out)
    subprocess.run([vernier, "import", dump, "--model", model, "--ids", spec(IDS), "--names", NAMES, "-o", cand,
                    "--force"], check=True, stderr=subprocess.DEVNULL)
    status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", "missing,weights")
    named = {c["name"] for c in found["checkpoints"] if c["status"] not in ("missing", "extra")}
    good = status == 0 and {f"layer{LAYER}.{p}" for p in points} <= named
    print(f"{family}: a dump of forward hooks {'is within limits' if good else f'FAILS: {sorted(named)}'}")
    return good


def healthy(vernier, model, ref, d, family):
    good, flips = True, 0
    for dtype in ("f32", "f16", "bf16"):
        for experts in ("eager", "grouped_mm", "batched_mm"):
            cand = os.path.join(d, "cand.h5")
            record(model, dtype, cand, experts=experts)
            status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", "missing")
            said = [n for n in found["notes"] if n.startswith(FLIPS)]
            flips += int(said[0].split()[1]) if said else 0
            if status or any("no fault" not in n for n in said):
                good = False
                print(f"{family} {dtype} {experts}: accused: {[c['name'] for c in found['checkpoints'] if c['fails']]}")
    print(f"{family}: 9 healthy runs, {flips} other choices of experts, all ties")
    return good


def one_choice(vernier, model, ref, d, family):
    """One choice of several hundred that is no tie."""
    cand = os.path.join(d, "cand.h5")
    record(model, "f16", cand, routed(one_other))
    status, found = vernier_json(vernier, "compare", ref, cand, "--model", model, "--allow", "missing",
                                 "--replay-routing")
    origins = [c["name"] for c in found["checkpoints"] if c.get("origin")]
    good = status == 1 and f"layer{LAYER}.router_ids" in origins and any(n.startswith(FLIPS) for n in found["notes"])
    note = next((n for n in found["notes"] if n.startswith("routing: ")), "")
    routing, arithmetic, whole = (float(x.rstrip(",;")) for x in note.split() if "e-" in x) if note else (0, 1, 1)
    good &= 0.9 * whole < routing < 1.1 * whole and arithmetic < 0.1 * whole
    print(f"{family}: one wrong choice is {'an origin' if good else f'LOST: {origins}'}; {note}")
    return good


def names(vernier, model, ref, d, family, every):
    of = [i for i, (families, _) in MAKERS.items() if family in families.split()]
    named = wrong = done = 0
    for i in of[::every]:
        cand = os.path.join(d, "cand.h5")
        record(model, "f32", cand, MAKERS[i][1])
        r = subprocess.run([vernier, "explain", ref, cand, "--model", model, "--allow", "missing"], capture_output=True,
                           text=True)
        said = [line.split(None, 1)[1] for line in r.stdout.splitlines() if line.startswith("explained")]
        want = f"layer{LAYER}."
        right = r.returncode == 1 and any(s.startswith(want) and f": {i.split(',')[0]}:" in s for s in said)
        done += 1
        named += right
        wrong += bool(said) and not right
        if not right:
            print(f"{family} {i}: status {r.returncode}, said {said}")
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


def faulty_alike(vernier, model, engine, d, fault):
    """In float32 the fault gives the same numbers on both engines."""
    inject = ("--inject", f"{fault}@layer{LAYER}")
    ref, gpu = (forced(vernier, model, e, d, n, "f32", *inject) for e, n in ((("ref",), "fr.h5"), (engine, "fg.h5")))
    worst = 0.0
    for i in range(11):
        a, b = parity_hf.tensors(ref, i), parity_hf.tensors(gpu, i)
        worst = max([worst, *(parity_gpu.relative(b[n][()].astype("f8"), a[n][()].astype("f8")) for n in a)])
    if not worst <= 1e-4:
        print(f"{fault} on the GPU: {worst:.1e} from the reference with that fault   FAILED")
    return worst <= 1e-4


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
        faults = [f for f in fitting(vernier, model) if f[0] == "E"][::every]
        alike = sum(faulty_alike(vernier, model, engine, d, f) for f in faults)
        print(f"{family}, device {index}: greedy tokens {'equal' if greedy else 'DIFFER'}; prefill and 10 tokens "
              f"{'within' if within else 'OUTSIDE'} limits{', ' + said[0] if said else ''}; "
              f"{'the same bits' if same else 'OTHER BITS'} paged; {alike} of {len(faults)} faults as on the reference")
        good &= greedy and within and same and alike == len(faults)
    return good


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
            model, fused, at = os.path.join(d, "model"), os.path.join(d, "fused"), lambda f: os.path.join(d, f)
            random_model.main([family, *SHAPES[family].split(), "-o", model])
            random_model.main([family, *SHAPES[family].split(), "-o", fused, "--fused"])
            ref = at("ref.h5")
            for m, out in ((fused, at("fused.h5")), (model, ref)):
                subprocess.run([a.vernier, "capture", "ref", m, "--ids", spec(IDS), "--points", "*", "-o", out],
                               check=True, stderr=subprocess.DEVNULL)
            same = not subprocess.run([a.vernier, "compare", ref, at("fused.h5")], capture_output=True).returncode
            greedy = decodes(a.vernier, model, d) and decodes(a.vernier, fused, d)
            print(f"{family}: both layouts {'agree' if same else 'DIFFER'}; greedy tokens "
                  f"{'equal' if greedy else 'DIFFER'}")
            for dtype in golden.DTYPES:
                golden.record(model, spec(IDS), dtype, at(dtype), checked=dtype == "f64")
            good &= same and greedy and parity_hf.check(a.vernier, model, spec(IDS), at("f32"), at("f64"), family)
            good &= healthy(a.vernier, model, ref, d, family)
            last = "routed_out" if family.startswith("deepseek") else "moe_out"
            good &= hooked(a.vernier, model, ref, d, family, ("router_logits", "router_ids", "router_weights", last))
            good &= one_choice(a.vernier, model, ref, d, family)
            good &= names(a.vernier, model, ref, d, family, a.faults)
            if not family.startswith("deepseek"):
                good &= on_gpu(a.vernier, model, d, family, a.faults)
            sys.stdout.flush()
    print("passed" if good else "FAILED")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
