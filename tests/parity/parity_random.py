#!/usr/bin/env python3
"""parity_random.py: models that are not in the repository, against HuggingFace run on the spot.

    parity_random.py VERNIER [--gpu] [--count N] [--seed N] [--family F] [--sample N] [--keep DIR] [CASE...]

Needs a Python with torch, transformers and what else fixtures/requirements.txt names (77, skipped, without). Makes a
model with random weights for every case below, for the cases named, or for N of chance; records transformers' float64,
which numpy confirms, with its float32 errors; and holds libref to parity_hf.py's criterion and to transformers' greedy
tokens, and with --gpu the Vulkan engine to parity_gpu.py's criterion. A model that fails stays in --keep.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import h5py

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import random_model
import parity_gpu
import parity_hf

SCALINGS = {
    "linear": '{"rope_type": "linear", "factor": 3.5}',
    "dynamic": '{"rope_type": "dynamic", "factor": 2.5}',
    "yarn": '{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}',
    "yarn-mscale": '{"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 16, "mscale": 1.0,'
                   ' "mscale_all_dim": 0.707, "beta_fast": 8, "beta_slow": 2, "truncate": false}',
    "llama3": '{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,'
              ' "original_max_position_embeddings": 64}',
}


MSCALE = ('{"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 16, "mscale": 1.0,'
          ' "mscale_all_dim": 0.707}')


def longrope(pairs, original):
    return json.dumps({"rope_type": "longrope", "factor": 8.0, "original_max_position_embeddings": original,
                       "short_factor": [1 + i / 8 for i in range(pairs)],
                       "long_factor": [1 + i * i / 2 for i in range(pairs)]})


# name: tokens, arguments of random_model.py
CASES = {
    "gpt2-odd-heads": (65, "gpt2 --hidden 42 --heads 7 --ffn 75 --layers 3"),
    "gpt2-one-head": (17, "gpt2 --hidden 24 --heads 1 --untied"),
    "gpt2-gelu": (64, "gpt2 --hidden 40 --heads 5 --act gelu --eps 1e-3"),
    "gpt2-scales": (33, "gpt2 --inverse-layer --unscaled --layers 4 --hidden 16 --heads 4"),
    "gpt2-files": (21, "gpt2 --dtype float16 --buffers --shards 3 --rope-spelling 4"),
    "gpt2-long": (600, "gpt2 --hidden 24 --heads 3"),
    "gpt2-token": (1, "gpt2 --dtype bfloat16"),
    "qwen2-G-1": (70, "qwen2 --heads 6 --kv-heads 1"),
    "qwen2-G-H": (18, "qwen2 --heads 6 --kv-heads 6 --hidden 60 --untied"),
    "qwen2-window": (90, "qwen2 --kv-heads 2 --window 7 --full-layers 1 --layers 3"),
    "qwen2-window-long": (600, "qwen2 --kv-heads 2 --window 100 --hidden 24"),
    "qwen2-K": (31, "qwen2 --hidden 50 --heads 3 --kv-heads 3 --head-dim 14"),
    "qwen3-bias": (64, "qwen3 --hidden 36 --heads 5 --kv-heads 1 --head-dim 20 --attention-bias"),
    "qwen3-window": (70, "qwen3 --heads 4 --kv-heads 2 --head-dim 6 --window 1 --untied"),
    "qwen3-long": (600, "qwen3 --heads 2 --kv-heads 2 --head-dim 16 --hidden 24 --eps 1e-5"),
    "qwen3_5-taps-2": (65, "qwen3_5_text --head-dim 16 --layers 4 --linear 2,2,8,8 --taps 2 --untied"),
    "qwen3_5-before-chunk": (63, "qwen3_5_text --head-dim 16 --layers 5 --kinds fllfl --linear 2,4,9,5 --taps 3 "
                             "--untied"),
    "qwen3_5-two-chunks": (128, "qwen3_5_text --hidden 40 --heads 5 --kv-heads 1 --head-dim 24 --layers 3 --kinds lfl "
                           "--linear 3,3,11,16"
                                " --attention-bias --multimodal --untied"),
    "qwen3_5-odd": (130, "qwen3_5_text --hidden 37 --heads 3 --kv-heads 1 --head-dim 12 --partial 0.5 --layers 3 "
                    "--linear 1,3,5,7 --taps 3"
                         " --interval 2 --attention-bias --dtype float16"),
    "qwen3_5-multimodal": (64, "qwen3_5_text --hidden 33 --heads 2 --head-dim 8 --layers 5 --linear 3,6,3,9 --interval "
                           "3 --multimodal"
                               " --shards 2 --dtype bfloat16"),
    "qwen3_5-long": (600, "qwen3_5_text --hidden 64 --heads 4 --kv-heads 2 --head-dim 32 --layers 4 --linear 2,6,16,8 "
                     "--rope-spelling 4"),
    "qwen3_5-mtp": (70, "qwen3_5_text --hidden 40 --heads 5 --kv-heads 1 --head-dim 24 --layers 2 --kinds lf "
                    "--linear 2,4,8,8 --mtp --untied"),
    "qwen3_5-mtp-linear": (130, "qwen3_5_text --head-dim 16 --kv-heads 2 --layers 3 --kinds fll --mtp --multimodal "
                           "--attention-bias --dtype bfloat16 --shards 2"),
    "qwen3_5-mtp-three": (3, "qwen3_5_text --head-dim 16 --layers 2 --interval 2 --mtp"),
    "qwen3_5_moe-mtp": (65, "qwen3_5_moe_text --heads 4 --kv-heads 2 --head-dim 16 --layers 2 --interval 2 "
                        "--experts 8,3 --mtp"),
    "qwen3_5-token": (1, "qwen3_5_text --head-dim 16 --layers 2 --linear 2,6,128,32 --interval 2"),
    "qwen3_5-attends": (20, "qwen3_5_text --head-dim 16 --layers 2 --interval 1"),
    "qwen3_5-K-256": (257, "qwen3_5_text --heads 2 --kv-heads 1 --head-dim 256 --layers 2 --linear 1,2,64,128 "
                      "--interval 2"
                           f" --rope-scaling '{SCALINGS['yarn']}'"),
    "qwen3_5_moe-layers": (66, "qwen3_5_moe_text --head-dim 16 --layers 4 --interval 2 --linear 2,4,8,8 "
                               "--experts 12,4"),
    "qwen3_5_moe-multimodal": (130, "qwen3_5_moe_text --hidden 64 --heads 2 --head-dim 32 --layers 3 --kinds lfl "
                                    "--linear 2,6,16,8 --experts 5,2 --ffn 24 --expert-ffn 16 --multimodal --untied "
                                    "--dtype bfloat16"),
    "qwen3_5-longrope": (66, "qwen3_5_text --head-dim 16 --layers 2 --interval 2 --context 512"
                             f" --rope-scaling '{longrope(2, 64)}'"),
    "qwen3-files": (16, "qwen3 --head-dim 8 --dtype bfloat16 --shards 2 --rope-spelling 4 --buffers"),
    "gemma2-caps": (70, "gemma2 --heads 4 --kv-heads 2 --head-dim 14 --layers 3 --window 9 --caps 3,5 --query-scale 7"),
    "gemma2-no-caps": (40, "gemma2 --kv-heads 1 --attention-bias --untied --dtype bfloat16"),
    "gemma2-long": (600, "gemma2 --heads 2 --kv-heads 2 --head-dim 16 --hidden 24 --window 100 --caps 50,30 --untied"),
    "gemma3-pattern": (70, "gemma3_text --heads 4 --kv-heads 2 --head-dim 14 --layers 5 --window 9 --interval 2 "
                           f"--query-scale 7 --caps 0,4 --rope-scaling '{SCALINGS['linear']}'"),
    "gemma3-list": (40, "gemma3_text --kv-heads 1 --head-dim 8 --attention-bias --untied --dtype bfloat16 --layers 3 "
                        f"--kinds fsf --window 3 --rope-scaling '{SCALINGS['yarn']}'"),
    "gemma3-four": (90, "gemma3_text --kv-heads 2 --head-dim 10 --layers 4 --interval 3 --window 20 --local-theta 777 "
                        f"--rope-spelling 4 --rope-scaling '{SCALINGS['linear']}'"),
    "gemma3-long": (600, "gemma3_text --heads 2 --kv-heads 2 --head-dim 16 --hidden 24 --window 100 --layers 7 "
                         "--untied"),
    "gpt_oss-windows": (70, "gpt_oss --heads 4 --kv-heads 2 --head-dim 14 --layers 3 --window 9 --experts 7,3 --untied"
                            f" --ffn 40 --rope-scaling '{SCALINGS['yarn-mscale']}'"),
    "gpt_oss-list": (40, "gpt_oss --kv-heads 1 --head-dim 8 --no-attention-bias --layers 3 --kinds ffs --window 3 "
                         "--dtype bfloat16 --experts 4,4 --shards 3"),
    "gpt_oss-long": (300, "gpt_oss --heads 8 --kv-heads 2 --head-dim 16 --hidden 64 --window 100 --experts 32,4 "
                          "--ffn 24 --rope-spelling 4 --untied "
                          f"--rope-scaling '{SCALINGS['yarn']}'"),
    "deepseek_v2-greedy": (70, "deepseek_v2 --heads 4 --layers 3 --shared 2 --untied --experts 8,3 "
                               f"--rope-scaling '{MSCALE}'"),
    "deepseek_v2-groups": (40, "deepseek_v2 --heads 3 --latent 0,16,6,4,10 --groups 4,2 --experts 12,4 --dense 0 "
                               "--router-scale 16 --attention-bias --dtype bfloat16"),
    "deepseek_v3-groups": (90, "deepseek_v3 --heads 4 --layers 4 --latent 20,24,16,8,8 --groups 4,2 --experts 16,4 "
                               f"--normalised --router-scale 2.5 --untied --rope-scaling '{MSCALE}'"),
    "deepseek_v3-halves": (33, "deepseek_v3 --heads 2 --latent 12,10,4,8,20 --groups 2,1 --experts 6,2 --halves "
                               "--fused --dense 0 --attention-bias --shared 2"),
    "deepseek_v3-long": (300, "deepseek_v3 --heads 8 --hidden 64 --latent 0,32,16,16,16 --groups 8,4 --experts 32,8 "
                              f"--normalised --shards 3 --eps 1e-5 --rope-spelling 4 --rope-scaling '{MSCALE}'"),
    "mixtral-one-of-two": (40, "mixtral --kv-heads 2 --experts 2,1 --untied"),
    "mixtral-window": (70, "mixtral --kv-heads 3 --window 9 --experts 8,2 --ffn 50 --dtype bfloat16 --shards 3"),
    "mixtral-fused": (33, "mixtral --kv-heads 2 --experts 7,3 --fused --dtype float16"),
    "mixtral-all": (5, "mixtral --experts 3,3 --hidden 30 --heads 5 --ffn 7"),
    "olmoe-normalised": (65, "olmoe --heads 4 --kv-heads 2 --experts 16,5 --normalised --attention-bias"),
    "olmoe-long": (300, "olmoe --heads 2 --hidden 32 --experts 40,8 --ffn 20 --fused --eps 1e-5"),
    "olmoe-token": (1, "olmoe --experts 9,4 --untied"),
    "qwen3_moe-dense": (64, "qwen3_moe --kv-heads 2 --head-dim 10 --layers 3 --dense 1 --normalised --experts 12,4"),
    "qwen3_moe-window": (90, "qwen3_moe --kv-heads 1 --head-dim 8 --window 11 --attention-bias --fused --untied"),
    "qwen3_moe-long": (300, "qwen3_moe --heads 4 --kv-heads 2 --head-dim 16 --hidden 64 --experts 32,8 "
                       "--expert-ffn 24"),
    "llama-biases": (40, "llama --kv-heads 3 --attention-bias --mlp-bias --untied"),
    "llama-gelu": (40, "llama --kv-heads 2 --act gelu --hidden 44 --heads 4 --head-dim 6"),
    "llama-token": (1, "llama --heads 9 --kv-heads 3 --hidden 90"),
    "llama-long": (600, "llama --hidden 32 --heads 4 --kv-heads 1 --layers 1"),
    "mistral-window": (70, "mistral --kv-heads 2 --window 5 --head-dim 10"),
    "mistral-no-window": (70, "mistral --kv-heads 6 --dtype float16 --untied"),
    "mistral-wide-window": (70, "mistral --kv-heads 1 --window 70"),
    "mistral-two": (2, "mistral --heads 2 --hidden 8 --head-dim 4 --ffn 6 --window 1"),
    **{f"{f}-{s}": (n, f"{f} --kv-heads 2 --head-dim 16 --theta {t} --context {c} --rope-scaling '{SCALINGS[s]}'")
       for f, s, n, t, c in [
           ("qwen2", "linear", 50, 1e4, 256), ("qwen2", "yarn", 128, 1e6, 64), ("qwen3", "dynamic", 100, 1e4, 64),
           ("llama", "dynamic", 64, 5e5, 64), ("llama", "llama3", 200, 5e5, 512),
           ("llama", "yarn-mscale", 66, 1e4, 640),
           ("mistral", "yarn", 97, 1e4, 128), ("qwen3", "llama3", 65, 1e6, 512), ("mistral", "dynamic", 600, 1e4, 96)]},
    "llama-longrope-short": (64, f"llama --kv-heads 2 --head-dim 16 --context 512 --rope-scaling '{longrope(8, 64)}'"),
    "llama-longrope-long": (65, f"llama --kv-heads 2 --head-dim 16 --context 512 --rope-scaling '{longrope(8, 64)}'"),
    "qwen3-longrope": (600, f"qwen3 --kv-heads 2 --head-dim 12 --hidden 30 --heads 4 --context 1024 --rope-scaling "
                       f"'{longrope(6, 100)}'"),
}


def words(text):
    """Splits words as a shell does."""
    import shlex
    return shlex.split(text)


def fields_of_chance(rng, family, heads, layers, tokens, K):
    """Fields of config.json, of families with experts, latent attention or windows."""
    coin, experts = lambda: rng.random() < 0.5, rng.randint(2, 12)
    used = rng.choice([1, experts, rng.randint(1, experts)])
    window = rng.choice([2, 3, 7, max(2, tokens - 1), tokens + 1])
    kinds = rng.choice([None, [rng.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]])
    if family == "mixtral":
        return {"num_local_experts": experts, "num_experts_per_tok": used, "sliding_window": rng.choice([None, window])}
    if family == "olmoe":
        return {"num_experts": experts, "num_experts_per_tok": used, "norm_topk_prob": coin(), "attention_bias": coin()}
    if family == "qwen3_moe":
        return {"num_experts": experts, "num_experts_per_tok": used, "norm_topk_prob": coin(), "attention_bias": coin(),
                "use_sliding_window": coin(), "sliding_window": window, "decoder_sparse_step": rng.randint(1, 3),
                "mlp_only_layers": rng.choice([[], [0], [layers - 1]]), "moe_intermediate_size": rng.randint(8, 40)}
    if family == "qwen3_5_moe_text":
        return {"num_experts": experts, "num_experts_per_tok": used, "moe_intermediate_size": rng.randint(8, 40),
                "shared_expert_intermediate_size": rng.randint(8, 40)}
    if family == "gpt_oss":
        return {"num_local_experts": experts, "num_experts_per_tok": used, "attention_bias": coin(),
                "sliding_window": window, "layer_types": kinds}
    if family in ("gemma2", "gemma3_text"):
        return {"query_pre_attn_scalar": rng.choice([7, 31, 256]), "sliding_window": window, "layer_types": kinds,
                "final_logit_softcapping": rng.choice([None, 1.5, 30.0]), "attention_bias": coin(),
                "attn_logit_softcapping": rng.choice([None, 9.0, 50.0]) if family == "gemma2" else None}
    groups = rng.choice([1, 1, 2, 4])
    experts, chosen = groups * rng.randint(2, 5), rng.randint(1, groups)
    used = rng.choice([1, chosen * (experts // groups), rng.randint(1, chosen * (experts // groups))])
    # rank of keys and unrotated columns are even: transformers views the rotated ones as complex
    some = {"q_lora_rank": rng.choice([None, rng.randint(4, 30)]), "kv_lora_rank": 2 * rng.randint(2, 20),
            "qk_nope_head_dim": 2 * rng.randint(1, 6), "v_head_dim": rng.randint(1, 16), "n_group": groups,
            "topk_group": chosen, "n_routed_experts": experts, "num_experts_per_tok": used,
            "n_shared_experts": rng.randint(1, 3), "routed_scaling_factor": rng.choice([1.0, 2.5, 0.3]),
            "first_k_dense_replace": rng.randint(0, layers), "moe_intermediate_size": rng.randint(8, 40),
            "attention_bias": coin(), "num_key_value_heads": heads, "qk_rope_head_dim": K}
    return {**some, "topk_method": rng.choice(["greedy", "group_limited_greedy"])} if family == "deepseek_v2" else \
        {**some, "norm_topk_prob": coin(), "rope_interleave": coin()}


def of_chance(rng, family=None):
    """(tokens, arguments): any family, or the one that is asked for, geometry, scaling, storage."""
    family = family or rng.choice(sorted(random_model.CONFIGS))
    heads, layers = rng.randint(1, 9), rng.randint(1, 4)
    a = [family, "--heads", str(heads), "--layers", str(layers), "--vocab", str(rng.randint(30, 600)),
         "--ffn", str(rng.randint(3, 150)), "--eps", rng.choice(["1e-6", "1e-5", "1e-3"]),
         "--dtype", rng.choice(["float32", "float32", "float16", "bfloat16"]), "--seed", str(rng.randint(1, 10**6))]
    tokens = rng.choice([1, 2, 3, 17, 63, 64, 65, 100, 129, 257, 600])
    if rng.random() < 0.4:
        a.append("--untied")
    hybrid, others = family.startswith("qwen3_5"), ("gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text")
    if not hybrid and family != "gpt_oss" and rng.random() < 0.3:
        a += ["--act", rng.choice(["silu", "gelu", "gelu_new", "gelu_pytorch_tanh"])]
    if family == "gpt2":
        a += ["--hidden", str(heads * rng.randint(1, 12)), "--context", str(tokens + rng.randint(0, 50))]
        a += ["--inverse-layer"] if rng.random() < 0.3 else []
        return tokens, a
    K = 2 * rng.randint(2, 12)
    # keys of one or two columns say nearly the same: too much for float64 in chunks, --check says
    if hybrid:
        nk, K = rng.randint(1, 4), 8 * rng.randint(1, 4)
        a += ["--linear", f"{nk},{nk * rng.randint(1, 4)},{rng.randint(3, 40)},{rng.randint(1, 40)}", "--taps",
              str(rng.randint(2, 6)),
              *rng.choice([["--interval", str(rng.randint(1, 4))],
                           ["--kinds", "".join(rng.choice("llf") for _ in range(layers))]]),
              *rng.choice([[], ["--multimodal"]])]
    hidden = K if family == "olmoe" else max(rng.randint(1, 12), 0 if family in others else -(-24 // heads))
    a += ["--hidden", str(hidden * heads), "--head-dim", str(K), "--theta",
          rng.choice(["1e4", "5e5", "1e6", "12345"]),
          "--kv-heads", str(rng.choice([g for g in range(1, heads + 1) if heads % g == 0]))]
    kind = rng.choice(["none", "longrope", *SCALINGS])
    pairs = K // 8 if hybrid else K // 2
    if kind == "dynamic" and pairs == 1 or kind == "longrope" and family == "gemma3_text":
        kind = "none"  # an exponent of 2 / 0; transformers' second run of a model fails
    a += ["--context", str(max(16, tokens // 2) if kind == "dynamic" else tokens + rng.randint(0, 200))]
    if kind != "none":
        a += ["--rope-scaling", longrope(pairs, rng.choice([8, 64, 512])) if kind == "longrope" else SCALINGS[kind]]
    if family not in others:
        return tokens, [*a, "--set", json.dumps(fields_of_chance(rng, family, heads, layers, tokens, K))]
    if family not in ("llama", "qwen3_5_text") and rng.random() < 0.6:
        a += ["--window", str(rng.randint(1, tokens + 5))]
        a += ["--full-layers", "1"] if family in ("qwen2", "qwen3") and rng.random() < 0.5 else []
    if family in ("llama", "qwen3", "qwen3_5_text") and rng.random() < 0.5:
        a.append("--attention-bias")
    if family == "llama" and rng.random() < 0.5:
        a.append("--mlp-bias")
    return tokens, a


def decodes(vernier, model, ids, path, name):
    """Whether a few tokens are chosen as transformers chooses them, which runs the whole text for each: its cache of
    a window of 1 keeps everything, and one of linear layers alone cannot be asked for its length."""
    m, text, more = golden.load(model, "f32"), [int(i) for i in ids.split(",")], []
    scaled = m.config.rope_parameters if hasattr(m.config, "rope_parameters") else {}
    n = 3 if "dynamic" in str(scaled) else min(3, m.config.max_position_embeddings - len(text))
    if n < 1 or "mtp" in dir(m):
        return True
    for _ in range(n):
        with torch.no_grad():
            more.append(int(m(torch.tensor([text + more]), use_cache=False).logits[0, -1].argmax()))
    subprocess.run([vernier, "capture", "ref", model, "--ids", ids, "--decode", str(n), "--points", "logits", "-o",
                    path], check=True, stderr=subprocess.DEVNULL)
    with h5py.File(path) as f:
        found = [int(f[f"step.{i}/logits"][-1].argmax()) for i in range(n)]
    if found != more:
        print(f"{name}: greedy tokens {found}, expected {more}")
    return found == more


def run(vernier, gpus, name, tokens, arguments, keep):
    work = tempfile.mkdtemp(prefix="parity-")
    model, at = os.path.join(work, "model"), lambda f: os.path.join(work, f)
    vocab = int(arguments[arguments.index("--vocab") + 1]) if "--vocab" in arguments else 512
    ids = ",".join(str((7 * t * t + 13 * t + 5) % vocab) for t in range(tokens))
    random_model.main([*arguments, "-o", model])
    good = decodes(vernier, model, ids, at("greedy"), name)
    golden.record(model, ids, "f64", at("f64"), checked=True)
    good &= parity_hf.check(vernier, model, ids, at("f64"), name)
    cost = {n: parity_gpu.cost(t.attrs) for n, t in parity_hf.tensors(at("f64")).items()}
    for index, _, _ in gpus:
        good &= parity_gpu.check(vernier, index, model, ids, name, cost, floors=4.0)
    if not good:
        print(f"{name}: {tokens} tokens, random_model.py {' '.join(arguments)}")
        if keep:
            shutil.copytree(model, os.path.join(keep, name), dirs_exist_ok=True)
    shutil.rmtree(work)
    return good


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("cases", nargs="*", metavar="CASE")
    a.add_argument("--gpu", action="store_true")
    a.add_argument("--count", type=int, default=0, metavar="N", help="N models of chance in place of the list")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--family", choices=sorted(random_model.CONFIGS), help="of those of chance")
    a.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth of these, for a short run")
    a.add_argument("--keep", metavar="DIR", help="where models that fail are left")
    a = a.parse_intermixed_args()

    for name in a.cases:
        if name not in CASES:
            sys.exit(f"no case {name}; there are {', '.join(CASES)}")
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    gpus = parity_gpu.devices(a.vernier) if a.gpu else []
    if a.gpu and not gpus:
        print("SKIPPED: no suitable Vulkan device")
        sys.exit(77)
    todo = [(name, CASES[name][0], words(CASES[name][1])) for name in a.cases or CASES]
    if a.count:
        rng = random.Random(a.seed)
        todo = [(f"chance-{a.seed}-{i}", *of_chance(rng, a.family)) for i in range(a.count)]
    todo, failed = todo[::a.sample], 0
    for name, tokens, arguments in todo:
        failed += not run(a.vernier, gpus, name, tokens, arguments, a.keep)
        sys.stdout.flush()
    print(f"{len(todo) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
