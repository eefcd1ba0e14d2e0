#!/usr/bin/env python3
"""bench_compare.py VERNIER [--gb 1] [--repeat 3]: vernier compare against what people use today.

Makes two recordings of `--gb` GB each (float32, and the second again in float16), and times in the same run, with the
files in the page cache: a numpy/h5py script as a person writes it (cosine, max abs, mean abs, max rel), h5diff -d, and
vernier compare with all its metrics. Prints the best of the repeats and the ratios. Needs h5py, numpy and h5diff.
"""
import argparse, os, shutil, subprocess, sys, tempfile, time

import h5py
import numpy as np

T, D = 1024, 4096  # 16 MiB a tensor


def write(path, tensors, dtype, precision):
    with h5py.File(path, "w") as f:
        f.attrs.update(format="vernier-checkpoint", format_version=1, complete=1)
        run = f.create_group("run")
        run.attrs.update(engine="bench", precision=precision)
        run["token_ids"] = np.arange(T, dtype=np.int32)
        run["positions"] = np.arange(T, dtype=np.int32)
        step = f.create_group("step.0")
        step.attrs.update(position=0, tokens=T)
        for i, x in enumerate(tensors()):
            d = step.create_dataset(f"layer{i}/output", data=x.astype(dtype))
            d.attrs.update(order=i, layer=i, point="output", op="add", basis="hidden", axes="token hidden")


def recordings(folder, gb):
    n = max(1, round(gb * 1e9 / (4 * T * D)))

    def tensors(noise):
        def make():
            rng, other = np.random.default_rng(1), np.random.default_rng(2)
            for _ in range(n):
                x = rng.standard_normal((T, D), dtype=np.float32)
                yield x + noise * other.standard_normal((T, D), dtype=np.float32) if noise else x
        return make

    a, b, h = (os.path.join(folder, x) for x in ("a32.h5", "b32.h5", "b16.h5"))
    write(a, tensors(0), np.float32, "f32")
    write(b, tensors(1e-4), np.float32, "f32")
    write(h, tensors(1e-4), np.float16, "f16")
    limits = os.path.join(folder, "limits.yaml")
    with open(limits, "w") as f:
        f.write("version: 1\ndefaults: { nmse: 1.0e-6, cosine: 0.999, nonfinite: 0 }\n")
    return a, b, h, limits


NUMPY = r"""
import sys, h5py, numpy as np
with h5py.File(sys.argv[1]) as f, h5py.File(sys.argv[2]) as g:
    def visit(name, d):
        if not isinstance(d, h5py.Dataset) or not name.startswith("step."):
            return
        x, y = d[()], g[name][()]
        if y.dtype != x.dtype:
            x, y = x.astype(np.float32), y.astype(np.float32)
        x, y = x.ravel(), y.ravel()
        e = np.abs(x - y)
        cosine = np.dot(x, y) / (np.linalg.norm(x) * np.linalg.norm(y))
        print(name, cosine, e.max(), e.mean(), (e / (np.abs(x) + 1e-6)).max())
    f.visititems(visit)
"""


def best(command, repeat):
    times = []
    for _ in range(repeat):
        t = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        times.append(time.perf_counter() - t)
        if done.returncode not in (0, 1):
            sys.exit(f"{command[0]}: status {done.returncode}: {done.stderr.decode()}")
    return min(times), times


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("vernier")
    p.add_argument("--gb", type=float, default=1.0)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--folder", help="keep the files here")
    o = p.parse_args()
    folder = o.folder or tempfile.mkdtemp()
    try:
        paths = [os.path.join(folder, x) for x in ("a32.h5", "b32.h5", "b16.h5", "limits.yaml")]
        a, b, h, limits = paths if all(map(os.path.exists, paths)) else recordings(folder, o.gb)
        for name, second in (("float32 against float32", b), ("float32 against float16", h)):
            for path in (a, second):  # into the page cache
                with open(path, "rb") as f:
                    while f.read(1 << 24):
                        pass
            print(f"{name}, {os.path.getsize(a) / 1e9:.2f} and {os.path.getsize(second) / 1e9:.2f} GB")
            ours, all_ours = best([o.vernier, "compare", a, second, "--limits", limits], max(o.repeat, 5))
            print(f"  vernier compare  {ours:7.3f} s          all runs: {' '.join(f'{t:.3f}' for t in all_ours)}")
            for what, command in (("numpy and h5py", [sys.executable, "-c", NUMPY, a, second]),
                                  ("h5diff -d 1e-3", ["h5diff", "-d", "1e-3", a, second])):
                if command[0] == "h5diff" and not shutil.which("h5diff"):
                    print("  h5diff           not installed")
                    continue
                t, _ = best(command, o.repeat)
                print(f"  {what}   {t:7.3f} s   {t / ours:6.1f} times as long")
            again, _ = best([o.vernier, "compare", a, second, "--limits", limits], max(o.repeat, 5))
            print(f"  vernier compare  {again:7.3f} s   once more")
    finally:
        if not o.folder:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
