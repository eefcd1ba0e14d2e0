#!/usr/bin/env python3
"""parity_faults.py: every fault that --inject makes, against what the catalogue says it does.

    parity_faults.py VERNIER [ID]

For each family and each fault that `vernier points --faults` says fits there, one run of the reference in float32 with
the fault in the middle of the model (in a late layer that it fits, or outside layers), 70 tokens:

  - nothing before the first faulty node changes by a bit, and that node changes;
  - every faulty node makes of its inputs what tests/faults_truth.py predicts, to 1e-5 of the largest value.

The sound formulas are held against a sound run first, so a wrong prediction is not taken for a fault. Exit status 1 when
one fails. Its arithmetic is numpy's and shares nothing with the program.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from faults_truth import Truth
from parity_hf import FAMILIES, FIXTURES, tensors

IDS = os.path.join(FIXTURES, "prompts", "p070.ids")
LEAST = 1e-5
# Weights without biases stay as they are where the files have none of the format: the program says so.
REFUSED = "stay what they are", "not f16 or bf16"


# Families again with other configs, and the faults of those: no fixture has yarn, a frequency in llama3's smooth band, or a
# window in some layers.
VARIANTS = (
    ("llama", "with yarn", "R5 R6", {"rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24, "rope_theta": 100.0}}),
    ("llama", "with llama3", "R5 R7", {"rope_parameters": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 256, "rope_theta": 500000.0}}),
    ("qwen2", "with windows", "A5", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1,
                                     "layer_types": ["sliding_attention", "full_attention"]}),
)


def variant(family, changes, out):
    """The model of a family with another config, as a directory."""
    source = os.path.join(FIXTURES, family + "-trained")
    for name in os.listdir(source):
        if name != "config.json":
            os.symlink(os.path.abspath(os.path.join(source, name)), os.path.join(out, name))
    config = json.load(open(os.path.join(source, "config.json")))
    json.dump({**config, **changes}, open(os.path.join(out, "config.json"), "w"))
    return out


def run(vernier, model, out, *inject):
    done = subprocess.run([vernier, "capture", "ref", model, "--ids", "@" + IDS, "--points", "*", "--threads", "1", "--force", "-o", out,
                           *(a for i in inject for a in ("--inject", i))], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return done.stderr
    found = {name: d[()] for name, d in tensors(out).items()}
    found["ids"] = np.array([int(i) for i in open(IDS).read().split(",")])
    return found


def fitting(vernier, model):
    text = subprocess.run([vernier, "points", "--faults", model], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()[1:]]
    return [r[0] for r in rows if r[1] != "-"]


def wrong(z, o):
    o = o.astype(np.float64).reshape(z.shape)
    if not (np.isfinite(z).all() and np.isfinite(o).all()):
        return 0.0 if np.array_equal(np.isfinite(z), np.isfinite(o)) else float("inf")
    return float(np.max(np.abs(z - o)) / max(np.max(np.abs(z)), 1e-30))


def taken_for(fault, name, sound):
    """The checkpoint that is recorded in place of another."""
    odd = ("attn_scores", "attn_probs", "gate_act", "k_cache", "v_cache", "gdn_q", "gdn_k", "gdn_g", "gdn_state", "gdn_conv_state", "input")
    names = [n for n in sound if n != "ids" and n.split(".")[-1] not in odd]
    layer, point = name.split(".") if "." in name else ("", name)
    fixed = {"P10.context": "attn_context", "P10.out": "attn_out", "P10.gated": "attn_gated"}
    if fault in fixed:
        return f"{layer}.{fixed[fault]}"
    if fault == "P21":
        return "final_norm"
    if fault == "P20":
        return f"layer{int(layer[5:]) - 1}.{point}"
    alike = [n for n in names if sound[n].size == sound[name].size]
    return alike[alike.index(name) + (1 if fault == "P7" else -1)]


def check_capture(vernier, model, fault, sound, out):
    """The same for a fault of the recording alone: one checkpoint is another, and nothing else changes."""
    tried = 0
    said = run(vernier, model, out, fault + "@nothing.at.all")
    for name in said.strip().split("it fits ")[-1].replace(", ...", "").split(", ")[-6:]:
        faulty = run(vernier, model, out, f"{fault}@{name}")
        if isinstance(faulty, str):
            return faulty.strip(), tried, 0.0
        changed = [n for n in sound if n != "ids" and faulty[n].tobytes() != sound[n].tobytes() and not n.endswith(".input")]
        other = taken_for(fault, name, sound)
        if changed != [name] or faulty[name].tobytes() != sound[other].tobytes():
            return f"{name}: {', '.join(changed)} changed; {name} was to be {other}", tried, 0.0
        tried += 1
    return None, tried, 0.0


def check(vernier, model, truth, fault, sound, out):
    """What is wrong, or None; and how many nodes were looked at."""
    if fault[:3] in ("P6", "P7", "P10", "P20", "P21"):
        return check_capture(vernier, model, fault, sound, out)
    names = [n for n in sound if n != "ids"]
    for where in [f"layer{l}" for l in reversed(range(truth.L))] + ["*"]:
        faulty = run(vernier, model, out, f"{fault}@{where}")
        if not isinstance(faulty, str):
            break
        if any(r in faulty for r in REFUSED):
            return None, 0, 0.0
        if "fits nothing there" not in faulty:
            return faulty.strip(), 0, 0.0
    else:
        return faulty.strip(), 0, 0.0
    inside = lambda n: where == "*" or n.startswith(where + ".")
    predicted = {}
    for n in names:
        z = truth.predict(fault, n, faulty) if inside(n) else None
        if z is not None:
            predicted[n] = z
    changed = [n for n in names if faulty[n].tobytes() != sound[n].tobytes()]
    if not changed:
        return f"{where}: nothing changes", 0, 0.0
    if changed[0] not in predicted:
        return f"{where}: the first to change is {changed[0]}, which no prediction is for ({', '.join(predicted)})", 0, 0.0
    worst = max((wrong(z, faulty[n]), n) for n, z in predicted.items())
    if not worst[0] <= LEAST:
        return f"{where}: {worst[1]} is {worst[0]:.1e} off what is predicted", len(predicted), worst[0]
    return None, len(predicted), worst[0]


def main():
    vernier, failed = sys.argv[1], 0
    seen = set()
    for family, label, chapters, changes in [(f, "", "", None) for f in FAMILIES] + list(VARIANTS):
        with tempfile.TemporaryDirectory() as d, tempfile.TemporaryDirectory() as other:
            model = variant(family, changes, other) if changes else os.path.join(FIXTURES, family + "-trained")
            truth, out = Truth(model), os.path.join(d, "r")
            sound = run(vernier, model, out)
            for n in sound:
                z = truth.predict(None, n, sound) if n != "ids" else None
                if z is not None and not wrong(z, sound[n]) <= LEAST:
                    print(f"{family}: {n}: the sound formula is {wrong(z, sound[n]):.1e} off")
                    failed += 1
            ids, nodes, worst = fitting(vernier, model), 0, (0.0, "")
            ids = [i for i in ids if i.split(".")[0] in chapters.split()] if changes else ids
            family += " " + label if label else ""
            for fault in ids:
                if len(sys.argv) > 2 and fault != sys.argv[2]:
                    continue
                why, n, off = check(vernier, model, truth, fault, sound, out)
                nodes += n
                worst = max(worst, (off, fault))
                if n:
                    seen.add(fault)
                if why:
                    print(f"{family}: {fault}@{why}")
                    failed += 1
        print(f"{family}: {len(ids)} faults fit, {nodes} faulty nodes are as predicted, the farthest by {worst[0]:.1e} ({worst[1]})")
    print(f"{len(seen)} faults seen")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
