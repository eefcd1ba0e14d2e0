#!/usr/bin/env python3
"""bench_values.py BUILD [--layers 6] [--tokens 256] [--repeat 3]: whether values change the time.

Benchmarks use synthetic weights. Here the weights of one synthetic model (`vernier synth qwen2-0.5b`, fewer layers) are replaced,
in bfloat16: every number by one of a wide range (2^-17 to 2^-2); each row by its first number; every number by a subnormal one.
Prints for each: the reference's pass with the logits of the last token (capture ref), compare of its float32 and float16
recordings, and how many times as long they take as with the model itself, in seconds of processors, which a busy machine changes
less. Each is the least of the repeats. The last two float16 recordings are outside limits: compare reads wrong tensors again to
say what they hold. Exit status 1: something else takes 1.25 times as long. Needs numpy and 3 GB of disk.
"""
import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

from stopwatch import in_turn, into_cache

MOST = 1.25
VALUES = {  # what becomes of weights, (rows, columns) of bfloat16 as 16 bits: 1 of the sign, 8 of the exponent, 7
    "the model itself": lambda w: w,
    "a wide range": lambda w: (w & 0x807f) | ((110 + (w & 15)) << 7),
    "equal numbers in a row": lambda w: np.broadcast_to(w[:, :1], w.shape),
    "subnormal numbers": lambda w: w & 0x807f,
}


def changed(model, to, change):
    """A copy of a model with other weights."""
    os.makedirs(to)
    shutil.copy(os.path.join(model, "config.json"), to)
    with open(os.path.join(model, "model.safetensors"), "rb") as f, open(os.path.join(to, "model.safetensors"), "wb") as g:
        head = f.read(8)
        head += f.read(struct.unpack("<Q", head)[0])
        g.write(head)
        tensors = {name: t for name, t in json.loads(head[8:]).items() if name != "__metadata__"}
        for t in sorted(tensors.values(), key=lambda t: t["data_offsets"]):
            w = np.frombuffer(f.read(t["data_offsets"][1] - t["data_offsets"][0]), "<u2")
            g.write(np.ascontiguousarray(change(w.reshape(t["shape"][0], -1)), dtype="<u2").tobytes())


def measure(o, model, folder):
    """Seconds of processors of the pass and of compare; whether compare finds the pair within limits."""
    vernier, a, b = os.path.join(o.build, "compare", "vernier"), os.path.join(folder, "f32.h5"), os.path.join(folder, "f16.h5")
    ids = ",".join(str((i * 7919 + 13) % 151936) for i in range(o.tokens))
    for to, more in (a, ()), (b, ("--precision", "f16")):
        out = subprocess.run([vernier, "capture", "ref", model, "--ids", ids, "-o", to, "--force", *more], capture_output=True, text=True)
        if out.returncode:
            sys.exit(f"bench_values.py: {out.stderr.strip()}")
    into_cache(a, b)
    threads = ["--threads", str(o.threads)]
    alone = [vernier, "capture", "ref", model, "--ids", ids, "-o", os.path.join(folder, "last.h5"), "--force", "--points", "logits",
             "--tokens", "last", *threads]
    compare = [vernier, "compare", a, b, *threads]
    within = subprocess.run(compare, capture_output=True).returncode == 0
    return [run.cpu for run in in_turn((alone, compare), o.repeat)], within


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    o = p.parse_args()
    good, itself = True, None
    with tempfile.TemporaryDirectory() as folder:
        model, other = os.path.join(folder, "model"), os.path.join(folder, "other")
        subprocess.run([os.path.join(o.build, "compare", "vernier"), "synth", "qwen2-0.5b", "-o", model, "--layers", str(o.layers)], check=True,
                       capture_output=True)
        for name, change in VALUES.items():
            shutil.rmtree(other, ignore_errors=True)
            changed(model, other, change)
            taken, within = measure(o, other, folder)
            itself = itself or taken
            ratios = [x / y for x, y in zip(taken, itself)]
            good &= max(ratios[:1 + within]) <= MOST
            print(f"{name:24} pass {taken[0]:6.2f} s of processors, {ratios[0]:.2f} times; compare {taken[1]:5.2f} s, {ratios[1]:.2f} times"
                  f"{'' if within else ', outside limits'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
