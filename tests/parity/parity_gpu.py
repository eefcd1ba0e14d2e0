#!/usr/bin/env python3
"""parity_gpu.py: the Vulkan engine against the reference, on every suitable device found.

    parity_gpu.py VERNIER [MODEL IDS]

Without a model: the trained fixture of every family and its five prompts, on a processor every second of them. For
every checkpoint, on-demand ones too,

  f16   its NMSE against the reference in float32 is at most 1.7 times the floor, the NMSE of the reference run in
        float16 itself (4 times in the models of parity_random.py, of a few numbers a token); and the NMSE of its worst
        token at most 16 times that of the floor's worst. If one of these runs chooses another expert for a token, only
        earlier tokens count;
  f32   its error is at most 1e-5 of the reference, in norm and at the worst element (of the largest value); or, in
        models that multiply roundings (a norm behind the small numbers of a delta rule does), 6 times what float32
        costs the reference, its own float32 against its float64; or 4 times what it costs transformers, whose sums are
        float32 too, where that is known (parity_random.py).

Prints the worst checkpoint of each; exit status 1 when one fails, 77 (skipped) without a device. Its own arithmetic is
numpy's, so that it checks `vernier compare` too.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from parity_hf import FAMILIES, FIXTURES, PROMPTS, tensors

# Processors execute shaders slowly: without this they take every second prompt.
EVERY = "VERNIER_TEST_ALL" in os.environ
FLOORS = 1.7  # measured: 1.57 on lavapipe, 1.64 on an H100 and an H200


def devices(vernier):
    """Index, name and type of the suitable devices."""
    run = subprocess.run([vernier, "devices"], capture_output=True, text=True)
    found = []
    for block in re.split(r"(?m)^(?=\d+  )", run.stdout):
        head = re.match(r"(\d+)  (.*)\n   type +(\w+)", block)
        if head and "missing:" not in block:
            found.append(head.groups())
    return found


def record(vernier, engine, model, ids, precision, out, *more):
    subprocess.run([vernier, "capture", engine, model, "--ids", ids, "--precision", precision, "--points", "*", "-o",
                    out,
                    *more], check=True, stderr=subprocess.DEVNULL)
    return ({name: d[()].astype(np.float64) for name, d in tensors(out).items()},
            {name: str(d.attrs["axes"]).split() for name, d in tensors(out).items()})


def nmse(x, r):
    wrong = float(np.sum((x - r) ** 2))  # rows of the first token of a prediction head are all 0
    return wrong / float(np.sum(r ** 2)) if wrong else 0.0


def worst_token(x, r, axes):
    """NMSE of the worst token; rows below an eighth of the median row's norm are taken for rows of that norm."""
    if "token" not in axes:
        return nmse(x, r)
    first = lambda a: np.moveaxis(a, axes.index("token"), 0).reshape(a.shape[axes.index("token")], -1)
    wrong, size = np.sum((first(x) - first(r)) ** 2, axis=1), np.sum(first(r) ** 2, axis=1)
    least = np.maximum(size, np.sort(size)[(len(size) + 1) // 2 - 1] / 64)
    return float(np.max(np.divide(wrong, least, out=np.zeros_like(wrong), where=wrong != 0)))


def relative(x, r):
    wrong = float(np.max(np.abs(x - r)))
    return max(nmse(x, r) ** 0.5, wrong / float(np.max(np.abs(r)))) if wrong else 0.0


def cost(known):
    """The same of transformers' float32 run, by the attributes of a golden recording."""
    norm, largest = known["float32_rms_error"], known["float32_largest_error"]
    return max(norm / known["rms"] if norm else 0.0, largest / known["absmax"] if largest else 0.0)


def cost_of(cost, name):
    """A cache of keys or values costs what these do."""
    layer, _, point = name.rpartition(".")
    made = {"k_cache": "k_rope", "v_cache": "v_proj"}.get(point, point)
    return cost.get(f"{layer}.{made}" if layer else made, 0.0)


def over(own, least):
    return own / least if least > 0 else (0.0 if own == 0 else float("inf"))


def by_expert(run, axes):
    """Puts the slots of every token in the order of its experts' ids."""
    for n in [n for n in run if n.endswith(".router_ids")]:
        order = np.argsort(run[n], axis=1, kind="stable")
        for of in [m for m in run if m.split(".")[0] == n.split(".")[0] and axes[m][:2] == ["token", "slot"]
                   and run[m].shape[1] == order.shape[1]]:  # and not the one of a shared expert
            run[of] = np.take_along_axis(run[of], order.reshape(*order.shape, *[1] * (run[of].ndim - 2)), axis=1)


def same_choices(runs, axes):
    """A function (name, data) -> the data of tokens before the first for which a run chooses another set of experts;
    None: it has none of them, or no tokens. Attention is causal, so earlier tokens do not see that choice."""
    ids = [[r[n] for r in runs] for n in axes if n.endswith(".router_ids")]
    other = [t for of in ids for r in of for t in np.flatnonzero(np.any(r != of[0], axis=1))]
    n = min(other, default=None)

    def cut(name, x):
        if n is None:
            return x
        return np.take(x, range(n), axes[name].index("token")) if n and "token" in axes[name] else None
    return cut


def check(vernier, device, model, ids, label, cost={}, floors=FLOORS, *more):
    """cost: by name, what float32 costs another engine. floors: the most for float16."""
    with tempfile.TemporaryDirectory() as d:
        at = lambda name: os.path.join(d, name)
        truth, axes = record(vernier, "ref", model, ids, "f32", at("r"), *more)
        floor, _ = record(vernier, "ref", model, ids, "f16", at("f"), *more)
        half, _ = record(vernier, "gpu", model, ids, "f16", at("h"), "--device", device, *more)
        single, _ = record(vernier, "gpu", model, ids, "f32", at("s"), "--device", device, *more)
        double = {}
        if set(truth) == set(single) and any(not relative(single[n], r) <= 1e-5 for n, r in truth.items()
                                             if single[n].shape == r.shape):
            double, _ = record(vernier, "ref", model, ids, "f64", at("d"), *more)
    if not (set(truth) == set(floor) == set(half) == set(single)):
        print(f"{label}: the engines record different checkpoints")
        return False
    worst16, token16, worst32, good = (0.0, "-"), (0.0, "-"), (0.0, "-"), True
    for run in truth, floor, half, single:
        by_expert(run, axes)
    cut, counted = same_choices([truth, floor, half], axes), 0
    for name, r in truth.items():
        if half[name].shape != r.shape or single[name].shape != r.shape:
            print(f"{label}: {name}: shapes differ")
            return False
        off = relative(single[name], r)
        allowed = max(1e-5, 6 * relative(r, double[name]) if double else 0.0, 4 * cost_of(cost, name))
        worst32 = max(worst32, (off, name))
        good &= off <= allowed
        r, own, least = (cut(name, x) for x in (r, half[name], floor[name]))
        if r is not None:
            counted += 1
            ratio = over(nmse(own, r), nmse(least, r))
            token = over(worst_token(own, r, axes[name]), worst_token(least, r, axes[name]))
            worst16 = max(worst16, (ratio, name))
            token16 = max(token16, (token, name))
            good &= ratio <= floors and token <= 16.0
    some = "" if counted == len(truth) else f" ({counted} of them, of tokens with the same experts)"
    print(f"{label}: {len(truth)} checkpoints; f16{some} at most {worst16[0]:.2f} times the floor ({worst16[1]}), "
          f"its worst token {token16[0]:.2f} times ({token16[1]}); f32 at most {worst32[0]:.1e} relative "
          f"({worst32[1]}){'' if good else '   FAILED'}")
    return good


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    vernier, found = sys.argv[1], devices(sys.argv[1])
    if not found:
        print("SKIPPED: no suitable Vulkan device")
        sys.exit(77)
    good = True
    for index, name, kind in found:
        print(f"device {index}: {name}")
        if len(sys.argv) == 4:
            good &= check(vernier, index, sys.argv[2], sys.argv[3], os.path.basename(sys.argv[2]))
            continue
        for n, family in enumerate(FAMILIES):
            for p in PROMPTS if EVERY or kind != "cpu" else PROMPTS[n % 2::2]:
                good &= check(vernier, index, os.path.join(FIXTURES, f"{family}-trained"),
                              "@" + os.path.join(FIXTURES, "prompts", p + ".ids"), f"{family} {p}")
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
