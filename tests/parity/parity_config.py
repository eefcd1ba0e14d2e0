#!/usr/bin/env python3
"""parity_config.py: config.json of the families with experts, sinks, caps, windows and latent attention, with changed
fields: what vernier does not refuse by name, it computes as transformers does.

    parity_config.py VERNIER [--count N] [--seed N] [FAMILY...]

N configs of chance, of random models: fields that some family has set, changed, removed or of another type; unknown
activations, kinds of layers, kinds of RoPE. Fails: another end than a refusal or a recording; logits that are not
transformers' (a config that transformers itself refuses is not judged: few, besides those whose types it refuses); an
unchanged config that is not equal; a refusal without the file and what it found (a context shorter than the prompt is
refused as the prompt's).
Then a checkpoint in MXFP4: the way out that the refusal names gives the model that transformers runs.

Needs torch and transformers (77, skipped, without).
"""
import argparse
import collections
import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import parity_trained
import random_model
from safetensors.torch import load_file, save_file

IDS = [(7 * t * t + 13 * t + 5) % 512 for t in range(40)]
ROPES = ("default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional", "nosuch")
ACTS = ("silu", "gelu", "gelu_new", "relu", "quick_gelu", "gelu_pytorch_tanh", "mish", "nosuch")
KINDS = ("full_attention", "sliding_attention", "linear_attention", "chunked_attention", "nosuch")
OF_ROPE = ("rope_type", "factor", "mscale", "mscale_all_dim", "attention_factor", "truncate", "beta_fast", "beta_slow",
           "partial_rotary_factor", "original_max_position_embeddings", "rope_theta")
REFUSED_TYPE = "of a type that transformers refuses"
FINE = "equal", "refused", REFUSED_TYPE, "not judged"
MOST_NOT_JUDGED = 0.03  # of the configs: 4 and 6 of 500 with seeds 1 and 2, such as rope_type: null
FIELDS = {  # that some family obeys
    "clip_qkv": (None, 0.5), "use_bidirectional_attention": (True, False), "attn_logit_softcapping": (5.0, None),
    "final_logit_softcapping": (2.0, None), "swiglu_limit": (7.0, 1.0), "scoring_func": ("softmax", "sigmoid"),
    "topk_method": ("greedy", "group_limited_greedy", "noaux_tc"), "norm_topk_prob": (True, False),
    "n_group": (1, 2, 4), "topk_group": (1, 2), "routed_scaling_factor": (1.0, 3.0), "moe_layer_freq": (1, 2),
    "mlp_bias": (True,),
    "first_k_dense_replace": (0, 1, 9), "attention_bias": (True, False), "use_qk_norm": (True, False),
    "rope_interleave": (True, False), "attn_output_gate": (True, False), "query_pre_attn_scalar": (1, 64),
    "sliding_window": (None, 1, 3, 40), "use_sliding_window": (True, False), "max_window_layers": (0, 1, 2),
    "sliding_window_pattern": (1, 2, 6), "hidden_act": ACTS, "hidden_activation": ACTS, "head_dim": (None, 8, 32),
    "rms_norm_eps": (1e-5, 0.1), "tie_word_embeddings": (True, False), "decoder_sparse_step": (0, 1, 2),
    "mlp_only_layers": ([], [0], [1, 2]), "num_experts_per_tok": (1, 2, 5), "rope_theta": (1e4,),
    "rope_local_base_freq": (500.0,), "n_shared_experts": (0, 1, 2), "is_causal": (False,), "num_hidden_layers": (1, 5),
    "quantization_config": ({"quant_method": "mxfp4"}, {"quant_method": "fp8"}), "max_position_embeddings": (8, 64),
    "full_attention_interval": (1, 2, 3), "partial_rotary_factor": (0.25, 0.5), "mtp_num_hidden_layers": (0, 2)}


def other(rng, v):
    """Another value, or one of another type."""
    if isinstance(v, bool):
        return rng.choice([not v, None, "yes"])
    if isinstance(v, (int, float)):
        return rng.choice([v * 2, v + 1, 0, -1, None, str(v), [v]])
    if isinstance(v, list):
        return rng.choice([[], v[::-1], v[:-1], None, [rng.choice(KINDS) for _ in v]])
    return rng.choice([None, 3, f"{v}x"])


def changed(rng, config):
    """(a config with one or two changes, these)"""
    c, said = copy.deepcopy(config), []
    for _ in range(rng.choice([1, 1, 2])):
        rope = c.get("rope_parameters") or {}
        at = rng.choice([c, c, rng.choice([r for r in rope.values() if isinstance(r, dict)] or [rope])])
        key = rng.choice(sorted(FIELDS) + sorted(c) if at is c else OF_ROPE + tuple(sorted(at)))
        if key == "model_type" or isinstance(at.get(key), dict):
            continue
        if key in at and rng.random() < 0.2:
            del at[key]
        else:
            at[key] = rng.choice(ROPES) if key == "rope_type" and rng.random() < 0.7 else rng.choice(
                FIELDS[key]) if key in FIELDS and rng.random() < 0.7 else other(rng, at.get(key, 2.0))
        said.append(f"{key}: {at.get(key, 'removed')}")
    return c, said


def put(directory, config):
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)


def captured(vernier, directory):
    """(exit status, what was said, logits)"""
    out = os.path.join(directory, "logits.h5")
    r = subprocess.run([vernier, "capture", "ref", directory, "--ids", ",".join(map(str, IDS)), "--points", "logits",
                        "-o", out, "--force"], capture_output=True, text=True)
    if r.returncode:
        return r.returncode, r.stderr.strip(), None
    with h5py.File(out) as f:
        return 0, "", f["step.0/logits"][()].astype("f8")


def theirs(directory):
    """transformers' logits; why there are none where it refuses, or invents weights."""
    try:
        m, info = golden.family_of(directory)[1].model_class.from_pretrained(
            directory, config=golden.text_config(directory), dtype=torch.float32, attn_implementation="eager",
            experts_implementation="eager", output_loading_info=True)
        if info["mismatched_keys"] or {k for k in map(str, info["missing_keys"])} - {"lm_head.weight"}:
            return "other weights"
        with torch.no_grad():
            return m.eval()(torch.tensor([IDS]), use_cache=False).logits[0].double().numpy()
    except (SystemExit, Exception) as e:  # pylint: disable=broad-exception-caught
        return f"{type(e).__name__}: {e}"


def judged(vernier, at):
    """(what it comes to, what was said)"""
    status, words, ours = captured(vernier, at)
    if status:
        place = "\n" not in words and (at in words or "the model's context of" in words)
        return ("crashed" if status != 2 else "refused" if place else "refused without its place"), words
    want = theirs(at)
    if isinstance(want, str):
        return REFUSED_TYPE if want.startswith("StrictDataclass") else "not judged", want
    return ("equal" if apart(ours, want) < 1e-4 else "OTHER NUMBERS"), words


def apart(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max()) if a.shape == b.shape else np.inf


def mxfp4(vernier, d):
    """The refusal's way out, typed as it says."""
    model, out = os.path.join(d, "mxfp4"), os.path.join(d, "out")
    random_model.main("gpt_oss --head-dim 16 --kv-heads 2 --heads 4 --hidden 64 --ffn 64 -o".split() + [model])
    tensors, rng = {}, torch.Generator().manual_seed(1)
    for name, t in load_file(os.path.join(model, "model.safetensors")).items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            E, N, M = t.shape
            tensors[name + "_blocks"] = torch.randint(0, 256, (E, M, N // 32, 16), dtype=torch.uint8, generator=rng)
            tensors[name + "_scales"] = torch.full((E, M, N // 32), 120, dtype=torch.uint8)
        else:
            tensors[name] = t
    save_file(tensors, os.path.join(model, "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(model, "config.json"), encoding="utf-8") as f:
        put(model, {**json.load(f), "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}})
    status, said, _ = captured(vernier, model)
    typed = re.search(r"in Python: (AutoModel.*\))$", said)
    if status != 2 or not typed:
        print(f"MXFP4: status {status}: {said}")
        return False
    eval(typed[1], {n: getattr(transformers, n) for n in ("AutoModelForCausalLM", "Mxfp4Config")},
         {"DIR": model, "OUT": out})  # pylint: disable=eval-used
    m = transformers.AutoModelForCausalLM.from_pretrained(
        model, quantization_config=transformers.Mxfp4Config(dequantize=True)).float()
    with torch.no_grad():
        want = m(torch.tensor([IDS])).logits[0].double().numpy()
    status, said, found = captured(vernier, out)
    off = np.inf if status else apart(found, want)
    print(f"MXFP4: refused; after the way out, logits are {off:.1e} from transformers'{said and ': ' + said}")
    return off < 1e-4


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("families", nargs="*", metavar="FAMILY")
    a.add_argument("--count", type=int, default=500, metavar="N")
    a.add_argument("--seed", type=int, default=1)
    a = a.parse_intermixed_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    rng, count, good = random.Random(a.seed), collections.Counter(), True
    with tempfile.TemporaryDirectory() as d:
        configs = {}
        for family in a.families or parity_trained.SHAPES:
            at = os.path.join(d, family)
            random_model.main([family, *parity_trained.SHAPES[family][0].split(), "-o", at])
            with open(os.path.join(at, "config.json"), encoding="utf-8") as f:
                configs[at] = json.load(f)
            what, words = judged(a.vernier, at)
            if what != "equal":
                good = False
                print(f"{family}: unchanged: {what} {words}")
        for _ in range(a.count):
            at = rng.choice(sorted(configs))
            config, said = changed(rng, configs[at])
            put(at, config)
            what, words = judged(a.vernier, at)
            count[what] += 1
            good &= what in FINE
            if what not in FINE[:3]:
                print(f"{os.path.basename(at)}: {'; '.join(said)}: {what} {words}")
        good &= mxfp4(a.vernier, d)
    most = max(3, int(a.count * MOST_NOT_JUDGED))
    if count["not judged"] > most:
        good = False
        print(f"{count['not judged']} not judged: at most {most} may be")
    print(", ".join(f"{n} {what}" for what, n in sorted(count.items())))
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
