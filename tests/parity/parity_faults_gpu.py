#!/usr/bin/env python3
"""parity_faults_gpu.py: a faulty run on the Vulkan engine against the same fault on the reference.

    parity_faults_gpu.py VERNIER [--all]

For faults of every operation, five in a run (--all: for every fault by itself), in the first family that each fits, on
70 tokens: for every checkpoint the NMSE of the GPU in float16 against the reference in float32 is at most 4 times that
of the reference in float16. Operations whose formula a fault changes run on the reference (capture/run/hybrid.h). A
processor takes every fifth run, without VERNIER_TEST_ALL in the environment. parity_faults.py holds the reference
to the catalogue. Exit status 1 when one fails, 77 (skipped) without a device.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

from parity_faults import GPU_ALONE, IDS, LATER, fitting
from parity_gpu import EVERY, devices, nmse, record
from parity_hf import FAMILIES, FIXTURES, tensors

TRIED = ("A9", "M8", "M9.cap", "M9.log", "N15", "N17", "N18", "P5", "P5.bf16", "P9", "P9.tile", "P14", "G4.two",
           "G13.lost", "G15", "G17", "R3b.next", "R3b.zero", "R10.cached", "R10.again", "R11", "R14", "R15.zero", "R1",
           "R3.plus", "R4.across", "R8", "R9", "R12", "A1.twice", "A2", "A3.strict", "A3.uniform", "A3.nan", "A3.ahead",
           "A4", "A4.one", "A5.wide", "A5.sinks", "A6", "A14",
           "A3.chunk", "A7.zeros", "A7.flat", "A10.queries", "A10.heads", "A12.half", "A13.f16", "A13.bf16", "P2", "C1",
           "C2", "C2.seen", "C3", "C3.after", "C4", "C5",
           "C5.before", "C6", "C7.f16", "C7.int8", "C7.f8", "C7.e5m2", "C8", "C10.k", "C10.v", "C11.last",
           "N2", "N3.layer", "N3.rms", "N4", "N5", "N6",
           "N6.gated", "N9", "N21.bf16", "N22.f16", "R3b.twice", "R3.words", "R16.next", "R15.twice", "R15.words",
           "M5.words", "A3.blocks", "A5.call", "A5.overwritten", "A12.zero", "A18", "W2.kvq", "W2.stored_vqk", "N10",
           "N14.twice", "M1.relu", "M1.quick", "M2", "M3.both",
           "M3.none", "W1", "W2.heads", "W3.halves", "W6", "P7", "P15",
           "G1.raw", "G2.softplus", "G4", "G4.k", "G4.v", "G5.missing", "G5.mean", "G7.none", "G7.factor", "G7.late",
           "G8.output", "G8.memory", "G9", "G10",
           "G12", "G12.qk", "G13", "G14.channels", "G16", "G16.calls", "G19.bf16",
           "G18.before", "G18.sigmoid", "G18.first",
           "G20.missing")


# Faults that change the same constant are not made together, nor two that add a node after others;
# that one comes last, because it takes the names of nodes, which are then out of reach.
BEHIND = ("A9", "M5.", "M8", "M9.", "N15", "P5", "P7", "P9", "P11", "P14", "P15", "P18")
SAME = (BEHIND, ("A10", "A12", "A13", "P2"), ("C",), ("R10.cached", "R10.again", "R11"), ("A6", "A7"),
        ("A2", "A3", "A4"), ("R",), ("N",), ("M",), ("G4.k", "G4.v", "G7", "G8", "G9"), ("W",))


def groups(faults):
    """Five each, all of the first call or all of later ones, no two of which change the same constant."""
    done = []
    for f in faults:
        kind = lambda x: next((s for s in SAME if x.startswith(s)), x)
        into = next((g for g in done if len(g) < 5 and (g[0] in LATER) == (f in LATER)
                     and all(kind(x) != kind(f) for x in g)), None)
        if into is None:
            done.append([f])
        else:
            into.append(f)
    return [sorted(g, key=lambda f: f.startswith(BEHIND)) for g in done]


def check(vernier, device, model, faults):
    """Three single tokens after 67 where the faults show in later calls, else all 70 tokens at once."""
    ids, steps = open(IDS).read().strip().split(","), 3 if faults[0] in LATER else 0
    cut = len(ids) - steps
    forced = ("--force-ids", ",".join(ids[cut:])) if steps else ()
    runs = []
    with tempfile.TemporaryDirectory() as d:
        for engine, precision, more in (("ref", "f32", ()), ("ref", "f16", ()), ("gpu", "f16", ("--device", device))):
            out = os.path.join(d, engine + precision)
            record(vernier, engine, model, ",".join(ids[:cut]), precision, out,
                   *(a for f in faults for a in ("--inject", f + "@*")), *forced, *more)
            # single tokens together: they are few numbers
            calls = [tensors(out, i) for i in range(min(1, steps), steps + 1)]
            runs.append({name: np.concatenate([c[name][()].astype(np.float64).ravel() for c in calls])
                         for name in calls[0]})
    truth, floor, half = runs
    worst = (0.0, "")
    for n, r in truth.items():
        finite = [np.isfinite(x[n]) for x in runs]
        if not all(s.all() for s in finite): # what overflows a half does so on both
            if not np.array_equal(finite[1], finite[2]):
                return n + ": infinities elsewhere than the reference's", worst
            break
        if not r.any(): # a head that was never loaded
            own, least = float(half[n].any()), 1.0
        else:
            own, least = nmse(half[n], r), nmse(floor[n], r)
        worst = max(worst, (own / least if least else own * 1e30, n))
    return (None if worst[0] <= 4 else f"{worst[1]}: {worst[0]:.2f} floors"), worst


def barrier(vernier, device):
    """A barrier is left out; if the operation has none, the run says so. The result depends on the
    device."""
    model, said = os.path.join(FIXTURES, "qwen2-trained"), []
    with tempfile.TemporaryDirectory() as d:
        for points in "layer1.output", "layer1.*":
            said.append(subprocess.run([vernier, "capture", "gpu", model, "--ids", "@" + IDS, "--points", points,
                                        "--device", device, "--force",
                                        "-o", os.path.join(d, "r"), "--inject", "P9.barrier@layer1.output"],
                                       capture_output=True, text=True))
    if said[0].returncode:
        return "a barrier left out: " + said[0].stderr.strip()
    return (None if said[1].returncode == 2 and "no barrier to omit" in said[1].stderr
            else "no barrier there: " + said[1].stderr.strip())


def changes(vernier, model, fault):
    """Whether it changes that model's weights: to truncate those in bfloat16 changes nothing."""
    with tempfile.TemporaryDirectory() as d:
        return fault[0] != "W" or subprocess.run(
            [vernier, "capture", "ref", model, "--ids", "5,6", "--inject", fault + "@*", "-o", os.path.join(d, "r")],
            stderr=subprocess.DEVNULL).returncode == 0


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
        new = [f for f in fitting(vernier, model) if f not in done and f not in ("W12", *GPU_ALONE)
               and (every or f in TRIED) and changes(vernier, model, f)]
        done.update(new)
        for n, group in enumerate([f] for f in new) if every else enumerate(groups(new)):
            for device, _, kind in found:
                if kind == "cpu" and n % 5 and not EVERY and not every:
                    continue
                why, own = check(vernier, device, model, group)
                worst = max(worst, (*own, " ".join(group)))
                if why:
                    print(f"{family}: {' '.join(group)}: {why}")
                    failed += 1
    for device, _, _ in found:
        why = barrier(vernier, device)
        if why:
            print(why)
            failed += 1
    print(f"{len(done)} faults on {len(found)} devices; the worst is {worst[0]:.2f} floors ({worst[2]}, {worst[1]})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
