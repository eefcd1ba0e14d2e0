#!/usr/bin/env python3
"""parity_faults_gpu.py: a faulty run on the Vulkan engine against the same fault on the reference.

    parity_faults_gpu.py VERNIER [--all]

For the faults that a shader has to know of, five in a run (--all: for every fault by itself), in the first family that each
fits, on 70 tokens: for every checkpoint the NMSE of the GPU in float16 against the reference in float32 is at most 4 times that of the
reference in float16. tests/parity_faults.py holds the reference to the catalogue. Exit status 1 when one fails, 77
(skipped) without a device.
"""
import os
import sys
import tempfile

import numpy as np

from parity_faults import IDS, fitting
from parity_gpu import devices, nmse, record
from parity_hf import FAMILIES, FIXTURES

SHADERS = ("R1", "R3.plus", "R4.across", "R8", "R9", "R12", "A1.twice", "A2", "A3.strict", "A3.ahead", "A4", "A5.wide", "A6", "A14",
           "N2", "N3.layer", "N3.rms", "N4", "N5", "N6", "N6.gated", "N9", "N10", "N14.twice", "M1.relu", "M1.quick", "M2", "M3.both",
           "M3.none", "W1", "W2.heads", "W3.halves", "W6", "P7", "P15",
           "G1.raw", "G2.softplus", "G4", "G5.missing", "G5.mean", "G7.none", "G7.factor", "G7.late", "G8.output", "G8.memory", "G9", "G10",
           "G12", "G13", "G16", "G18.sigmoid", "G18.first", "G20.missing")


def check(vernier, device, model, faults):
    with tempfile.TemporaryDirectory() as d:
        runs = [record(vernier, engine, model, "@" + IDS, precision, os.path.join(d, engine + precision),
                       *(a for f in faults for a in ("--inject", f + "@*")), *more)[0]
                for engine, precision, more in (("ref", "f32", ()), ("ref", "f16", ()), ("gpu", "f16", ("--device", device)))]
    truth, floor, half = runs
    worst = (0.0, "")
    for n, r in truth.items():
        sound = [np.isfinite(x[n]) for x in runs]
        if not all(s.all() for s in sound): # what overflows a half does so on both
            if not np.array_equal(sound[1], sound[2]):
                return n + ": infinities elsewhere than the reference's", worst
            break
        if not r.any(): # a head that was never loaded
            own, least = float(half[n].any()), 1.0
        else:
            own, least = nmse(half[n], r), nmse(floor[n], r)
        worst = max(worst, (own / least if least else own * 1e30, n))
    return (None if worst[0] <= 4 else f"{worst[1]}: {worst[0]:.2f} floors"), worst


def main():
    vernier, every = sys.argv[1], "--all" in sys.argv
    found = devices(vernier)
    if not found:
        print("no suitable device")
        return 77
    left, failed, worst = None, 0, (0.0, "", "")
    done = set()
    for family in FAMILIES:
        model = os.path.join(FIXTURES, family + "-trained")
        new = [f for f in fitting(vernier, model) if f not in done and f != "W12" and (every or f in SHADERS)]
        done.update(new)
        runs = len(new) if every else (len(new) + 4) // 5
        for group in (new[i::runs] for i in range(runs)): # not neighbours, which change the same constant
            for device, _ in found:
                why, own = check(vernier, device, model, group)
                worst = max(worst, (*own, " ".join(group)))
                if why:
                    print(f"{family}: {' '.join(group)}: {why}")
                    failed += 1
    print(f"{len(done)} faults on {len(found)} devices; the worst is {worst[0]:.2f} floors ({worst[2]}, {worst[1]})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
