#!/usr/bin/env python3
"""imported_numbers.py VERNIER [SEED [N]]: h5py finds in an imported recording every number of the dump.

N dumps of chance (default 12): names with and without a layer, formats, shapes from one number to some hundred
kilobytes, one to 200 tensors. `import` writes such files without HDF5 (capture/file/bulk.h); HDF5 and numpy judge.
"""
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

try:
    import h5py
except ImportError:
    print("skipped: no h5py")
    sys.exit(77)

SHAPES = ((1,), (64,), (2, 3, 17), (2, 3, 400), ("T", 1), ("T", 48), ("T", 512), ("T", 4, 16))


def dump_of(rng, tokens):
    """{name: array}"""
    numbers, out = np.random.default_rng(rng.randrange(1 << 30)), {}
    for i in range(rng.choice((1, 3, 20, 200))):
        name = rng.choice((f"layer{rng.randrange(6)}.x{i}", f"layer{rng.randrange(3)}.a.b{i}", f"other.{i}.n", f"w{i}"))
        shape = [tokens if n == "T" else n for n in rng.choice(SHAPES)]
        out[name] = (numbers.standard_normal(shape) * 10).astype(rng.choice(("f4", "f2", "f8", "i4")))
    return out


def wrong_in(vernier, dump, tokens, folder):
    """What is wrong in the recording of a dump."""
    npz, path = os.path.join(folder, "dump.npz"), os.path.join(folder, "out.h5")
    np.savez(npz, **dump)
    r = subprocess.run([vernier, "import", npz, "-o", path, "--ids", ",".join(["5"] * tokens), "--unmapped", "keep",
                        "--precision", "f32", "--force"], capture_output=True, text=True, check=False)
    if r.returncode:
        return [f"import: {r.returncode}, {r.stderr.strip()}"]
    found = {}
    with h5py.File(path) as f:
        f["step.0"].visititems(
            lambda name, o: found.update({name.replace("/", "."): o[()]} if isinstance(o, h5py.Dataset) else {}))
    said = subprocess.run([vernier, "show", path, "--check"], capture_output=True, text=True, check=False).stdout
    return [n for n, a in dump.items() if n not in found or not np.array_equal(found[n].astype(a.dtype), a)] + [
        said[-200:]] * (", 0 wrong" not in said)


def main():
    rng, bad = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1), 0
    for trial in range(int(sys.argv[3]) if len(sys.argv) > 3 else 12):
        tokens = rng.choice((1, 2, 7, 33, 90, 300))
        with tempfile.TemporaryDirectory() as folder:
            wrong = wrong_in(os.path.abspath(sys.argv[1]), dump_of(rng, tokens), tokens, folder)
        bad += bool(wrong)
        if wrong:
            print(f"dump {trial}, {tokens} tokens: {len(wrong)} wrong, the first: {wrong[0]}")
    print(f"{bad} dumps are wrong")
    sys.exit(bad > 0)


main()
