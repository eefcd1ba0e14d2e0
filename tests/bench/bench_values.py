#!/usr/bin/env python3
"""bench_values.py BUILD [--layers 6] [--tokens 256] [--repeat 3]: whether values change the time.

Benchmarks use synthetic weights. Here the weights of one synthetic model (`vernier synth qwen2-0.5b`, fewer layers) are
replaced, in bfloat16: every number by one of a wide range (2^-17 to 2^-2); each row by its first number; every number
by a subnormal one. Prints for each: the reference's pass with the logits of the last token (capture ref), compare of
its float32 and float16 recordings, and how many times as long they take as with the model itself, in seconds of
processors, which a busy machine changes less. They run in turn, and each is the least of the repeats. The limits permit
every error, because compare reads a tensor outside its limits again. Exit status 1: something takes 1.25 times as long.
Needs numpy and 5 GB of disk.
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

from stopwatch import FIRST, in_turn, into_cache

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
    with open(os.path.join(model, "model.safetensors"),
              "rb") as f, open(os.path.join(to, "model.safetensors"), "wb") as g:
        head = f.read(8)
        head += f.read(struct.unpack("<Q", head)[0])
        g.write(head)
        tensors = {name: t for name, t in json.loads(head[8:]).items() if name != "__metadata__"}
        for t in sorted(tensors.values(), key=lambda t: t["data_offsets"]):
            w = np.frombuffer(f.read(t["data_offsets"][1] - t["data_offsets"][0]), "<u2")
            g.write(np.ascontiguousarray(change(w.reshape(t["shape"][0], -1)), dtype="<u2").tobytes())


def commands(o, model, limits):
    """The pass and the comparison of a model; its recordings are made."""
    vernier, a, b = os.path.join(o.build, "compare", "vernier"), model + ".f32.h5", model + ".f16.h5"
    threads = ["--threads", str(o.threads)]
    capture = [vernier, "capture", "ref", model, "--ids",
               ",".join(str((i * 7919 + 13) % 151936) for i in range(o.tokens)), "--force", *threads]
    for to, more in (a, ()), (b, ("--precision", "f16")):
        out = subprocess.run([*capture, "-o", to, *more], capture_output=True, text=True)
        if out.returncode:
            sys.exit(f"bench_values.py: {out.stderr.strip()}")
    into_cache(a, b)
    return [[*capture, "-o", model + ".last.h5", "--points", "logits", "--tokens", "last"],
            [vernier, "compare", a, b, "--limits", limits, *threads]]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--first", action="store_true",
                   help="time with real-time priority (chrt, as root): others on the machine wait")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    o = p.parse_args()
    if o.first:
        FIRST.extend(("chrt", "-r", "1"))
    with tempfile.TemporaryDirectory() as folder:
        model, limits, works = os.path.join(folder, "model"), os.path.join(folder, "limits.yaml"), []
        with open(limits, "w") as f:
            f.write("version: 1\ndefaults: { nmse: 1.0e30, constant: allowed }\n")
        subprocess.run([os.path.join(o.build, "compare", "vernier"), "synth", "qwen2-0.5b", "-o", model, "--layers",
                        str(o.layers)], check=True,
                       capture_output=True)
        for i, change in enumerate(VALUES.values()):
            changed(model, f"{model}{i}", change)
            works += commands(o, f"{model}{i}", limits)
        taken = [run.cpu for run in in_turn(works, o.repeat)]
    ratios = [x / taken[i % 2] for i, x in enumerate(taken)]
    for i, name in enumerate(VALUES):
        print(f"{name:24} pass {taken[2 * i]:6.2f} s of processors, {ratios[2 * i]:.2f} times; "
              f"compare {taken[2 * i + 1]:5.2f} s, {ratios[2 * i + 1]:.2f} times")
    return 0 if max(ratios) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
