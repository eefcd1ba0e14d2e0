#!/usr/bin/env python3
"""parity_hf.py: libref against HuggingFace's own numbers, checkpoint by checkpoint.

    parity_hf.py VERNIER [MODEL IDS GOLDEN]

Without a model: the trained fixture of every family and its five prompts. For every
checkpoint of the golden recording, which fixtures/golden.py made in float64,

  float32   our largest error against HuggingFace in float64 is at most twice
            HuggingFace's own float32 error (an attribute of the checkpoint), or
            two ulps of the largest value;
            three times if our rms error is no larger than HuggingFace's: then
            the largest is the luck of one number, which differs by processor;
  float64   our largest error is at most 1e-11 of the largest value.

Prints the worst checkpoint of each prompt; exit status 1 when one fails.
"""
import glob
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
PROMPTS = ("p001", "p002", "p017", "p070", "p200")
FAMILIES = sorted(os.path.basename(d)[: -len("-trained")] for d in glob.glob(os.path.join(FIXTURES, "*-trained")))


def tensors(path, step=0):
    """name -> dataset of a step, in execution order."""
    found = {}

    def visit(group, prefix):
        for key, item in group.items():
            if isinstance(item, h5py.Group):
                visit(item, prefix + key + ".")
            else:
                found[prefix + key] = item

    visit(h5py.File(path, "r")[f"step.{step}"], "")
    return dict(sorted(found.items(), key=lambda kv: kv[1].attrs["order"]))


def record(vernier, model, ids, precision, out, *more):
    subprocess.run([vernier, "capture", "ref", model, "--ids", ids, "--precision", precision, "--points", "*",
                    "-o", out, *more], check=True, stderr=subprocess.DEVNULL)
    return tensors(out)


def largest_error(x, truth):
    return float(np.max(np.abs(x.astype(np.float64) - truth))) if truth.size else 0.0


def rms_error(x, truth):
    return float(np.sqrt(np.mean((x.astype(np.float64) - truth) ** 2))) if truth.size else 0.0


def check(vernier, model, ids, golden, label, *more):
    worst32, worst64, good = (0.0, "-"), (0.0, "-"), True
    known = tensors(golden)
    with tempfile.TemporaryDirectory() as d:
        ours32 = record(vernier, model, ids, "f32", os.path.join(d, "a.h5"), *more)
        ours64 = record(vernier, model, ids, "f64", os.path.join(d, "b.h5"), *more)
        for name, dataset in known.items():
            truth = dataset[()]
            for ours in (ours32, ours64):
                if name not in ours or ours[name].shape != truth.shape:
                    print(f"{label}: {name}: {'missing' if name not in ours else ours[name].shape} against "
                          f"{truth.shape}")
                    return False
            scale = float(np.max(np.abs(truth))) or 1.0  # ids may all be 0
            relative = largest_error(ours64[name][()], truth) / scale
            worst64 = max(worst64, (relative, name))
            ours, theirs = ours32[name][()], dataset.attrs
            times = 3 if rms_error(ours, truth) <= theirs["float32_rms_error"] else 2
            allowed = max(times * theirs["float32_largest_error"], 2 * float(np.spacing(np.float32(scale))))
            part = largest_error(ours, truth) / allowed
            worst32 = max(worst32, (part, name))
            good &= relative <= 1e-11 and part <= 1.0
    print(f"{label}: {len(known)} checkpoints, float32 worst {worst32[0]:.2f} of what is allowed ({worst32[1]}), "
          f"float64 worst {worst64[0]:.1e} relative ({worst64[1]}){'' if good else '   FAILED'}")
    return good


def main():
    if len(sys.argv) == 5:
        sys.exit(0 if check(sys.argv[1], *sys.argv[2:5], os.path.basename(sys.argv[2])) else 1)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    good = True
    for family in FAMILIES:
        for p in PROMPTS:
            good &= check(sys.argv[1], os.path.join(FIXTURES, f"{family}-trained"),
                          "@" + os.path.join(FIXTURES, "prompts", p + ".ids"),
                          os.path.join(FIXTURES, "golden", f"{family}-trained.{p}.f64.h5"), f"{family} {p}")
    print(f"{'1 passed, 0 failed' if good else '0 passed, 1 failed'}: {', '.join(FAMILIES)}")
    sys.exit(0 if good and FAMILIES else 1)


if __name__ == "__main__":
    main()
