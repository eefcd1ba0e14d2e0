#!/usr/bin/env python3
"""parity_decode.py: decoding, against HuggingFace, against a prefill of the same tokens, and GPU against reference.

    parity_decode.py VERNIER

On the trained fixture, 64 tokens behind a prompt:

  greedy      the reference in float32 and float64 says what transformers' generate says
  drawn       every token is the one that Philox4x32-10 and the recorded scores give, computed here once more
  by step     each row of each checkpoint is that of one prefill of all tokens: float32 to 3e-6 of the largest value
              (reference) and 1e-5 (GPU)
  gpu f16     teacher-forced with the reference's ids: at most 4 times the floor at every checkpoint of every step, and
              `vernier compare` says so too

Device tests on every suitable device; without one only the reference is tested.
"""
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from parity_gpu import devices, nmse
from parity_hf import FIXTURES, tensors

MODEL = os.path.join(FIXTURES, "qwen2-trained")
STEPS = 64


def prompt(name):
    with open(os.path.join(FIXTURES, "prompts", name + ".ids")) as f:
        return [int(x) for x in f.read().replace(",", " ").split()]


def listed(ids):
    return ",".join(map(str, ids))


def capture(vernier, engine, ids, out, *more):
    subprocess.run([vernier, "capture", engine[0], MODEL, *engine[1:], "--ids", listed(ids), "-o", out, "--force", *more],
                   check=True, stderr=subprocess.DEVNULL)
    return out


def ids_of(path):
    with h5py.File(path, "r") as f:
        return f["run/token_ids"][()].tolist()


def logits(path):
    """The last row of every step."""
    with h5py.File(path, "r") as f:
        return [f[f"step.{i}/logits"][()][-1].astype(np.float64) for i in range(sum(k.startswith("step.") for k in f))]


# ---- the draw, once more ------------------------------------------------------------------

def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def drawn(row, temperature, seed, step):
    if temperature == 0:
        return int(np.argmax(row))
    w = philox((step & 0xFFFFFFFF, step >> 32, 0, 0), (seed & 0xFFFFFFFF, seed >> 32))
    u = ((w[0] >> 5) * 2.0 ** 26 + (w[1] >> 6)) * 2.0 ** -53
    cumulative = np.cumsum(np.exp((row - row.max()) / temperature))
    return int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))


# ---- the checks ------------------------------------------------------------------------------

def greedy(vernier, d):
    good = True
    with open(os.path.join(FIXTURES, "golden", "qwen2-trained.text.json")) as f:
        golden = json.load(f)["greedy"]
    for g in golden:
        ids = prompt(g["prompt"])
        for precision in ("f32", "f64"):
            out = capture(vernier, ["ref"], ids, os.path.join(d, "g"), "--decode", str(len(g["ids"])), "--points", "logits",
                          "--precision", precision)
            same = ids_of(out) == ids + g["ids"]
            good &= same
            if not same:
                print(f"greedy {g['prompt']} {precision}: other tokens than transformers   FAILED")
    print(f"greedy: {len(golden)} prompts, {STEPS} tokens each as transformers says: {good}")
    return good


def sampled(vernier, engine, d):
    ids, n, good = prompt("p017"), 0, True
    for temperature, seed in ((0, 3), (0.7, 5), (1.5, 5), (1.5, 2 ** 62 + 9)):
        out = capture(vernier, engine, ids, os.path.join(d, "s"), "--decode", str(STEPS), "--points", "logits",
                      "--temperature", str(temperature), "--seed", str(seed))
        said, rows = ids_of(out)[len(ids):], logits(out)
        for i, token in enumerate(said):
            good &= token == drawn(rows[i], temperature, seed, i)
            n += 1
    print(f"{' '.join(engine)}: drawn: {n} tokens as computed here: {good}")
    return good


def by_step(vernier, engine, d, allowed):
    ids = prompt("p017")
    steps = capture(vernier, engine, ids, os.path.join(d, "a"), "--precision", "f32", "--decode", str(STEPS))
    whole = tensors(capture(vernier, engine, ids_of(steps), os.path.join(d, "b"), "--precision", "f32"))
    worst = (0.0, "-")
    for i in range(STEPS + 1):
        for name, data in tensors(steps, i).items():
            truth = whole[name][()].astype(np.float64)
            scale = float(np.max(np.abs(truth)))
            rows = truth[:len(ids)] if i == 0 else truth[len(ids) + i - 1:len(ids) + i]
            worst = max(worst, (float(np.max(np.abs(data[()].astype(np.float64) - rows))) / scale, f"step.{i}/{name}"))
    good = worst[0] <= allowed
    print(f"{' '.join(engine)}: by step: at most {worst[0]:.1e} from a prefill ({worst[1]}), {allowed:.0e} allowed{'' if good else '   FAILED'}")
    return good


def forced(vernier, device, d):
    ids, good, worst, n = prompt("p017"), True, (0.0, "-"), 0
    at = lambda name: os.path.join(d, name)
    ref = capture(vernier, ["ref"], ids, at("r"), "--decode", str(STEPS), "--points", "*")
    more = ["--points", "*", "--force-ids", listed(ids_of(ref)[len(ids):])]
    floor = capture(vernier, ["ref"], ids, at("f"), "--precision", "f16", *more)
    gpu = capture(vernier, ["gpu", "--device", device], ids, at("h"), "--precision", "f16", *more)
    for i in range(STEPS + 1):
        truth, least, own = tensors(ref, i), tensors(floor, i), tensors(gpu, i)
        good &= set(truth) == set(least) == set(own)
        for name in truth:
            r = truth[name][()].astype(np.float64)
            e, f = (nmse(x[name][()].astype(np.float64), r) for x in (own, least))
            ratio = e / f if f > 0 else (0.0 if e == 0 else float("inf"))
            worst, n = max(worst, (ratio, f"step.{i}/{name}")), n + 1
            good &= ratio <= 4.0
    run = subprocess.run([vernier, "compare", ref, gpu, "--model", MODEL], capture_output=True, text=True)
    good &= run.returncode == 0
    print(f"device {device}: forced: {n} checkpoints of {STEPS} steps; f16 at most {worst[0]:.2f} times the floor ({worst[1]}); "
          f"{run.stdout.splitlines()[-1] if run.stdout else run.stderr}{'' if good else '   FAILED'}")
    return good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    vernier = sys.argv[1]
    with tempfile.TemporaryDirectory() as d:
        good = greedy(vernier, d)
        good &= sampled(vernier, ["ref"], d)
        good &= by_step(vernier, ["ref"], d, 3e-6)
        for index, name in devices(vernier):
            print(f"device {index}: {name}")
            good &= sampled(vernier, ["gpu", "--device", index], d)
            good &= by_step(vernier, ["gpu", "--device", index], d, 1e-5)
            good &= forced(vernier, index, d)
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
