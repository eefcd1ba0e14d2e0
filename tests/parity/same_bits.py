#!/usr/bin/env python3
"""same_bits.py: a digest of everything that a program records, correct and with every fault.

    same_bits.py VERNIER [ref|gpu]... > DIGESTS

For a change that must leave every result the same: run it with the program before and after, and diff the outputs. A
line is a recording: engine, precision, family, the fault and where it is made, and the digest of its plan and of
every number in it. The prompt is 70 tokens, the last three of them decoded one by one. The reference makes every fault
at one node of the first two families that it fits, in f32 and in f16; the GPU, in f16, those that a shader knows of, at
one node of the first family, and in f32 five of them in a run. Exit status 1 when nothing could be recorded.
"""
import hashlib
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from parity_faults import IDS
from parity_faults_gpu import TRIED, groups
from parity_hf import FAMILIES, FIXTURES

STEPS = 3


def digest(path):
    """The digest of the plan's lines and of every number, without the time and version of the file."""
    h = hashlib.sha256()

    def add(name, item):
        if isinstance(item, h5py.Dataset) and (name.startswith("plan/") or name.startswith("step.")):
            x = item[()]
            h.update(f"{name} {x.shape} {x.dtype}".encode())
            h.update(b"\n".join(x.ravel().tolist()) if x.dtype == object else np.ascontiguousarray(x).tobytes())
    with h5py.File(path) as f:
        f.visititems(add)
    return h.hexdigest()[:32]


def record(vernier, engine, precision, family, *faults):
    ids = open(IDS).read().strip().split(",")
    model = os.path.join(FIXTURES, family + "-trained")
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "r")
        done = subprocess.run([vernier, "capture", engine, model, "--ids", ",".join(ids[:-STEPS]), "--force-ids",
                               ",".join(ids[-STEPS:]),
                               "--points", "*", "--precision", precision, "-o", out,
                               *(a for f in faults for a in ("--inject", f))],
                              capture_output=True, text=True)
        said = digest(out) if done.returncode == 0 else done.stderr.strip().replace(d, "")
    print(engine, precision, family, " ".join(faults) or "correct", said, flush=True)
    return done.returncode == 0


def places(vernier, family):
    """A node in the middle of those that each fault fits."""
    text = subprocess.run([vernier, "points", "--faults=*", os.path.join(FIXTURES, family + "-trained")], check=True,
                          capture_output=True, text=True).stdout
    fits = {}
    for line in text.splitlines():
        fault, name = line.split()
        fits.setdefault(fault, []).append(name)
    return {fault: names[len(names) // 2] for fault, names in fits.items()}


def main():
    vernier, engines = sys.argv[1], sys.argv[2:] or ["ref", "gpu"]
    seen, made = {}, 0
    for family in FAMILIES:
        for engine in engines:
            for precision in "f32", "f16":
                made += record(vernier, engine, precision, family)
        for fault, name in places(vernier, family).items():
            seen[fault] = seen.get(fault, 0) + 1
            for precision in ("f32", "f16") if "ref" in engines and seen[fault] <= 2 else ():
                made += record(vernier, "ref", precision, family, f"{fault}@{name}")
            if "gpu" in engines and seen[fault] == 1 and fault in TRIED:
                made += record(vernier, "gpu", "f16", family, f"{fault}@{name}")
        for group in groups([f for f, n in seen.items() if n == 1 and f in TRIED]) if "gpu" in engines else ():
            made += record(vernier, "gpu", "f32", family, *(f + "@*" for f in group))
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main())
