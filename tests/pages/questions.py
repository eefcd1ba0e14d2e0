#!/usr/bin/env python3
"""questions.py VERNIER: vernier reports what specs/usage.md promises, "Questions from public threads".

A case begins with the numbers of its questions: 1 TensorRT#4443, 3 TensorRT#1262, 5 TensorRT-Edge-LLM#40, 6
aprender#2091, 7 vllm-metal#659, 8 lattice#96, 9 llama.cpp#3018, 10 aprender#2079, 11 1bit-MONSTER#2052, 12
llama.cpp#15852, 13 llama.cpp#13607, 15 llama.cpp#4456, 21 vllm#33167, 25 transformers#38026, 26 imp#1275, 28
ms-swift#8196; the page has left out the others. The candidate is an engine that shares no code with vernier
(unrelated_run.py) and makes one known mistake at a time. A correct one must be within limits.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
try:
    import numpy as np
    import unrelated_run
except ImportError as e:
    print(f"questions.py: no {e.name}; skipped")
    sys.exit(77)

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


ROPES = lambda fault: {"layer1.q_rope": fault, "layer1.k_rope": fault}

# (questions, family, prompt, fault or change of the capture, exit status, what the report
# says: regular expressions)
F16 = [
    ("5 19", "qwen2", "p070", {}, 0, ["within limits", r"worst nmse .* \((0\.9|1)[0-9.]* x floor\)"]),
    ("1 4 8 9", "qwen2", "p070", ROPES("interleaved"), 1,
     ["origins +layer1.q_rope, layer1.k_rope", "tokens 1-69 of 70 carry 100 %",
                                                 "within limits: layer1.q_proj", r"OUTSIDE +logits",
      "explained +layer1.q_rope and 1 more origin: R1: RoPE pairs columns 2i and 2i \\+ 1"]),
    ("3 4 30", "qwen2", "p017", {"layer1.q_rope": "interleaved", "layer0.down_proj": "one channel"}, 1,
     ["origins +layer0.down_proj, layer1.q_rope", "cleared +layer1.mlp_act only magnifies the error of its inputs, "
      "1.[23] times, as the reference engine does",
      r"replayed +local error: nmse 0\.0006.* inherited error: nmse .* times the error of its inputs"]),
    ("9", "qwen2", "p001", ROPES("interleaved"), 0,
     ["1 token: below 16, faults in rotations, masks and caches may be invisible"]),
    ("9", "qwen2", "p070", ROPES("theta"), 1, ["origins +layer1.q_rope, layer1.k_rope", "it grows with the token",
                                               "explained .*: R2.1e4: RoPE with theta 10000"]),
    ("11", "qwen2", "p070", ROPES("position + 1"), 1, ["origins +layer1.q_rope, layer1.k_rope", "dims 0, 4 of 8 carry "
                                                       "9", "explained .*: R3.plus: positions count from 1"]),
    ("11", "qwen2", "p070", ROPES("last position"), 1,
     ["origins +layer1.q_rope, layer1.k_rope", "tokens 0-68 of 70 carry 100 %"]),
    ("10", "qwen2", "p070", ROPES("first head alone"), 1,
     ["heads 1-5 of 6 carry 100 %", "kv head 1 of 2 carries 100 %",
      "explained +layer1.q_rope: R12: RoPE skipped, in heads 1-5 of 6 only"]),
    ("26", "qwen2", "p070", {"layer1.k_rope": "left out"}, 1,
     ["starts at layer1.k_rope:", "its numbers are those of layer1.k_proj in the reference"]),
    ("15 18", "qwen2", "p070", {"layer1.attn_context": "head map"}, 1,
     ["starts at layer1.attn_context:", "heads 1, 4 of 6 carry 100 %", "replayed +local error: nmse",
      "explained .*: A6: query head h reads key head h mod G",
                                               "first token differs from its v_proj in 2 of 6 heads"]),
    ("6 27", "qwen2", "p070", {"layer1.down_proj": "one channel"}, 1,
     ["starts at layer1.down_proj:", "channel 8 of 48 carries 9", "0.99964", "none of [0-9]+ known mistakes fits",
      "a factor for each channel.*: channel 8 x 1\\.15;"]),
    ("7 12", "qwen3", "p070", {"layer1.q_norm": "left out", "layer1.q_rope": "norm behind rope"}, 1,
     ["origins +layer1.q_norm, layer1.q_rope", "those of layer1.q_proj", "q_rope is not a rotation of q_norm",
                                                                                            "layer1.q_norm: N8.skipped",
      "layer1.q_rope: N10: queries or keys normed after the rotation"]),
    ("12", "qwen3", "p070", {"layer1.q_norm": "all heads"}, 1,
     ["starts at layer1.q_norm:", "explained +layer1.q_norm: N9: queries or keys normed over all heads"]),
    ("13", "qwen2", "p070", overflow, 1,
     ["nonfinite 30, limit 0", "NaN and infinities are in tokens 40-69 of 70", "ffn channel 5 of 128"]),
    ("16 28", "qwen2", "p070", shifted, 1,
     ["starts at logits:", r"its row t is row t \+ 1 of the reference", "kl_mean_over_floor"]),
    ("21", "qwen2", "p070", copy("final_norm", "layer1.output"), 1,
     ["starts at final_norm: captured wrongly, or changed after", "those of layer1.output in the reference"]),
    ("22", "qwen2", "p070", copy("layer0.attn_residual", "layer0.attn_out"), 1,
     ["those of layer0.attn_out", "output is not attn_residual"]),
    ("26", "qwen2", "p070", one_layer_for_all, 1,
     ["starts at 12 places; the first is layer0.attn_norm", "those of layer1.attn_norm in the reference"]),
]
F32 = [
    ("19", "qwen2", "p070", {}, 0, ["within limits"]),
    ("25", "qwen2", "p070", {"*": "eps"}, 1, ["starts at layer0.attn_norm:", r"norm ratio 0\.99"]),
    ("25", "qwen2", "p070", {"layer0.attn_norm": "eps"}, 1,
     ["starts at layer0.attn_norm:", "explained +layer0.attn_norm: N1.*eps is"]),
]


def ask(vernier, folder, case, store, precision):
    numbers, family, prompt, fault, expected, words = case
    model, at = os.path.join(unrelated_run.FIXTURES, family + "-trained"), lambda f: os.path.join(folder, f)
    ids, ref = unrelated_run.prompt(prompt), at(f"{family}.{prompt}.h5")
    if not os.path.exists(ref):
        subprocess.run([vernier, "capture", "ref", model, "--ids", ",".join(map(str, ids)), "-o", ref], check=True,
                       stderr=subprocess.DEVNULL)
    with np.errstate(over="ignore"):
        r = unrelated_run.engine(model, ids, {} if callable(fault) else fault, store)
    if callable(fault):
        fault(r)
    unrelated_run.write(at("cand.h5"), model, ids, r, precision)
    floor = ["--model", model, "--explain"] if precision == "f16" or any("explained" in w for w in words) else []
    how = ["--all"] if expected else []  # of a run within limits, the lines that sum it up are asked for
    run = subprocess.run([vernier, "compare", ref, at("cand.h5"), *how, *floor], capture_output=True, text=True,
                         check=False)
    missing = [w for w in words if not re.search(w, run.stdout)]
    good = run.returncode == expected and not missing
    what = (fault.__qualname__.split(".")[0] if callable(fault) else ", ".join(f"{k} {v}" for k, v in fault.items())
            or "correct")
    print(f"{'ok    ' if good else 'FAILED'} {precision} {numbers:10} "
          f"{what}{'' if good else f': exit {run.returncode}, without {missing}'}")
    if not good:
        print(run.stdout[:2500], run.stderr)
    return good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        asked = [ask(sys.argv[1], folder, c, "<f2", "f16")
                 for c in F16] + [ask(sys.argv[1], folder, c, "<f4", "f32") for c in F32]
    print(f"{sum(asked)} passed, {len(asked) - sum(asked)} failed")
    sys.exit(0 if all(asked) else 1)


if __name__ == "__main__":
    main()
