#!/usr/bin/env python3
"""parity_decode.py: decoding, against HuggingFace, against a prefill of the same tokens, and GPU against reference.

    parity_decode.py VERNIER [--steps N] [FAMILY...]

On the trained fixture of every family, or of those named, 64 tokens after a prompt, or N but for greedy:

  greedy      the reference in float32 and float64 says what transformers' generate says (where golden/ has it)
  drawn       every token is the one that Philox4x32-10 and the recorded scores give, computed here once more (Qwen2's)
  by step     each row of each checkpoint is that of one prefill of all tokens: float32 to 3e-6 of the largest value
              (both engines); Qwen3.5, whose prefill and steps are other sums, to 4e-5
  gpu f16     teacher-forced with the reference's ids: at most 4 times the floor at every checkpoint of every step,
              tensors of fewer than 128 numbers over all steps together (specs/limits.md); `vernier compare` says so
              too; and a paged cache gives the same bits

Device tests on every suitable device; without one only the reference is tested.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from parity_gpu import devices
from parity_hf import FAMILIES, FIXTURES, tensors

STEPS = 64
FEW = 128
BY_STEP = {"qwen3_5_text": 4e-5}
BY_STEP_ELSE = 3e-6


def model_of(family):
    return os.path.join(FIXTURES, family + "-trained")


MODEL = model_of("qwen2")


def prompt(name):
    with open(os.path.join(FIXTURES, "prompts", name + ".ids")) as f:
        return [int(x) for x in f.read().replace(",", " ").split()]


def listed(ids):
    return ",".join(map(str, ids))


def capture(vernier, engine, ids, out, *more, model=MODEL):
    subprocess.run([vernier, "capture", engine[0], model, *engine[1:], "--ids", listed(ids), "-o", out, "--force",
                    *more],
                   check=True, stderr=subprocess.DEVNULL)
    return out


def ids_of(path):
    with h5py.File(path, "r") as f:
        return f["run/token_ids"][()].tolist()


def recorded(path):
    """Every checkpoint of every step, second names left out: "step.3/layer0/q_rope" -> array."""
    found = {}
    with h5py.File(path, "r") as f:
        f.visititems(lambda name, d: found.__setitem__(name, d[()])
                     if name.startswith("step.") and isinstance(d, h5py.Dataset) else None)
    return found


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

def greedy(vernier, family, d):
    good, path = True, os.path.join(FIXTURES, "golden", family + "-trained.text.json")
    if not os.path.exists(path):
        return True
    with open(path) as f:
        golden = json.load(f)["greedy"]
    for g in golden:
        ids = prompt(g["prompt"])
        for precision in ("f32", "f64"):
            out = capture(vernier, ["ref"], ids, os.path.join(d, "g"), "--decode", str(len(g["ids"])), "--points",
                          "logits",
                          "--precision", precision, model=model_of(family))
            same = ids_of(out) == ids + g["ids"]
            good &= same
            if not same:
                print(f"greedy {g['prompt']} {precision}: other tokens than transformers   FAILED")
    print(f"{family}: greedy: {len(golden)} prompts, at most {max(len(g['ids']) for g in golden)} tokens each as "
          f"transformers says: {good}")
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


def by_step(vernier, engine, family, d):
    ids, model = prompt("p017"), model_of(family)
    allowed = BY_STEP.get(family, BY_STEP_ELSE)
    steps = capture(vernier, engine, ids, os.path.join(d, "a"), "--precision", "f32", "--decode", str(STEPS),
                    model=model)
    whole = capture(vernier, engine, ids_of(steps), os.path.join(d, "b"), "--precision", "f32", model=model)
    truth, worst = {}, (0.0, "-")
    for name, data in tensors(whole).items():
        x = data[()].astype(np.float64)
        truth[name] = x, float(np.max(np.abs(x)))
    for i in range(STEPS + 1):
        for name, data in tensors(steps, i).items():
            x, scale = truth[name]
            if "token" in str(data.attrs["axes"]).split():
                rows = x[:len(ids)] if i == 0 else x[len(ids) + i - 1:len(ids) + i]
            elif i == STEPS:
                rows = x  # a state, and all tokens are in it
            else:
                continue
            worst = max(worst, (float(np.max(np.abs(data[()].astype(np.float64) - rows))) / scale, f"step.{i}/{name}"))
    good = worst[0] <= allowed
    print(f"{family}: {' '.join(engine)}: by step: at most {worst[0]:.1e} from a prefill ({worst[1]}), "
          f"{allowed:.0e} allowed"
          f"{'' if good else '   FAILED'}")
    return good


def over(own, least):
    return own / least if least > 0 else (0.0 if own == 0 else float("inf"))


def forced(vernier, device, family, d):
    ids, model, single, small, few = prompt("p017"), model_of(family), (0.0, "-"), (0.0, "-"), {}
    at = lambda name: os.path.join(d, name)
    ref = capture(vernier, ["ref"], ids, at("r"), "--decode", str(STEPS), "--points", "*", model=model)
    more = ["--points", "*", "--force-ids", listed(ids_of(ref)[len(ids):])]
    floor = capture(vernier, ["ref"], ids, at("f"), "--precision", "f16", *more, model=model)
    gpu = capture(vernier, ["gpu", "--device", device], ids, at("h"), "--precision", "f16", *more, model=model)
    paged = capture(vernier, ["gpu", "--device", device], ids, at("p"), "--precision", "f16", *more, "--kv", "paged",
                    model=model)
    truth, least, own, other = (recorded(x) for x in (ref, floor, gpu, paged))
    good = set(truth) == set(least) == set(own) == set(other) and any(name.startswith(f"step.{STEPS}/")
                                                                      for name in truth)
    for full, r in truth.items() if good else ():
        r, (step, name) = r.astype(np.float64), full.split("/", 1)
        e, f = (float(np.sum((x[full].astype(np.float64) - r) ** 2)) for x in (own, least))
        if step != "step.0" and r.size < FEW:
            few.setdefault(name, []).append((e, f))
            small = max(small, (over(e, f), full))
        else:
            single = max(single, (over(e, f), full))
    together = max(((over(*np.sum(x, axis=0)), name) for name, x in few.items()), default=(0.0, "-"))
    same = good and all(own[x].tobytes() == other[x].tobytes() for x in own)
    run = subprocess.run([vernier, "compare", ref, gpu, "--floor", floor], capture_output=True, text=True)
    good &= single[0] <= 4.0 and together[0] <= 4.0 and same and run.returncode == 0
    print(f"{family}: device {device}: forced: {len(truth)} checkpoints of {STEPS} steps; f16 at most {single[0]:.2f} "
          f"times the floor "
          f"({single[1]}), small tensors {together[0]:.2f} over all steps ({together[1]}) and {small[0]:.2f} at one "
          f"({small[1]}); "
          f"{'as paged' if same else 'OTHER BITS PAGED'}; {run.stdout.splitlines()[-1] if run.stdout else run.stderr}"
          f"{'' if good else '   FAILED'}")
    return good


def main():
    global STEPS
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    a.add_argument("--steps", type=int, default=STEPS, metavar="N")
    a = a.parse_intermixed_args()
    if not set(a.families) <= set(FAMILIES):
        sys.exit("families: " + ", ".join(FAMILIES))
    vernier, good, STEPS = a.vernier, True, a.steps
    gpus = devices(vernier)
    for index, name, _ in gpus:
        print(f"device {index}: {name}")
    with tempfile.TemporaryDirectory() as d:
        for family in a.families or FAMILIES:
            good &= greedy(vernier, family, d)
            for engine in (["ref"], *(["gpu", "--device", index] for index, _, _ in gpus)):
                good &= family != "qwen2" or sampled(vernier, engine, d)
                good &= by_step(vernier, engine, family, d)
            for index, _, _ in gpus:
                good &= forced(vernier, index, family, d)
            sys.stdout.flush()
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
