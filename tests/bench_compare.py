#!/usr/bin/env python3
"""bench_compare.py VERNIER [--gb 1] [--repeat 3]: vernier compare against what people use today.

Makes two recordings of `--gb` GB each (float32, and the second again in float16), and times in the same run, with the
files in the page cache: a numpy/h5py script as a person writes it (cosine, max abs, mean abs, max rel), h5diff -d,
cat of both files into nowhere, and vernier compare with all its metrics. Prints the best of the repeats, the ratios and
vernier's largest memory, and whether the goals are reached: the script takes at least 7 times as long, h5diff 10 times
(60 times of float32 against float16), vernier at most 1.5 times as long as cat and in less than 200 MB. Exit status 1
when one is not, or was not measured.
Needs h5py, numpy and h5diff.
"""
import argparse, os, shutil, subprocess, sys, tempfile, time

import h5py
import numpy as np

T, D = 1024, 4096  # 16 MiB a tensor
# Times as long as vernier compare, at least.
GOALS = {
    "float32 against float32": {"numpy and h5py": 7.0, "h5diff -d 1e-3": 10.0, "cat of both": 1 / 1.5},
    "float32 against float16": {"numpy and h5py": 7.0, "h5diff -d 1e-3": 60.0, "cat of both": 1 / 1.5},
}
MEMORY = 200  # MB


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


def busy():
    """What else runs here, in words; empty when hardly anything does."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    return f"the machine was busy before we began (load {load:.1f} on {cores} processors)" if load > 0.3 * cores else ""


def against(vernier, name, first, second, limits, repeat):
    """Times one pair of recordings; how many times as long the others took, None where one is not installed."""
    for path in (first, second):  # into the page cache
        with open(path, "rb") as f:
            while f.read(1 << 24):
                pass
    print(f"{name}, {os.path.getsize(first) / 1e9:.2f} and {os.path.getsize(second) / 1e9:.2f} GB")
    command = [vernier, "compare", first, second, "--limits", limits]
    ours, all_ours = best(command, max(repeat, 5))
    print(f"  vernier compare  {ours:7.3f} s          all runs: {' '.join(f'{t:.3f}' for t in all_ours)}")
    times = {}
    for what, other in (("numpy and h5py", [sys.executable, "-c", NUMPY, first, second]),
                        ("h5diff -d 1e-3", ["h5diff", "-d", "1e-3", first, second]),
                        ("cat of both", ["cat", first, second])):
        times[what] = best(other, max(repeat, 5) if what == "cat of both" else repeat)[0] if shutil.which(other[0]) else None
    again, _ = best(command, max(repeat, 5))
    print(f"  vernier compare  {again:7.3f} s   once more")
    ours = max(ours, again)  # so that no lucky moment decides
    for what, t in times.items():
        print(f"  {what}   {t:7.3f} s   {t / ours:6.1f} times as long" if t else f"  {what}   not installed")
    return {"memory": memory(command), **{what: t and t / ours for what, t in times.items()}}


def memory(command):
    """Largest resident memory of a run, MB."""
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(p.pid, 0)
    return usage.ru_maxrss / 1024


def judge(ratios, crowd):
    """Says of every goal whether it is reached; the exit status."""
    missed = 0
    for name, of in ratios.items():
        for what, goal in GOALS[name].items():
            ratio = of.get(what)
            reached = ratio is not None and ratio >= goal
            missed += not reached
            print(f"{'reached' if reached else 'MISSED':8} {name}: {goal:.3g} times {what}: "
                  f"{f'{ratio:.2f}' if ratio is not None else 'not measured'}")
        missed += of["memory"] > MEMORY
        print(f"{'reached' if of['memory'] <= MEMORY else 'MISSED':8} {name}: {MEMORY} MB of memory: {of['memory']:.0f}")
    if crowd:
        print(f"{crowd}: these times say little")
    return 1 if missed else 0


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("vernier")
    p.add_argument("--gb", type=float, default=1.0)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--folder", help="keep the files here")
    o = p.parse_args()
    crowd = busy()
    if o.folder:
        os.makedirs(o.folder, exist_ok=True)
    folder = o.folder or tempfile.mkdtemp()
    try:
        paths = [os.path.join(folder, x) for x in ("a32.h5", "b32.h5", "b16.h5", "limits.yaml")]
        a, b, h, limits = paths if all(map(os.path.exists, paths)) else recordings(folder, o.gb)
        ratios = {name: against(o.vernier, name, a, second, limits, o.repeat)
                  for name, second in (("float32 against float32", b), ("float32 against float16", h))}
    finally:
        if not o.folder:
            shutil.rmtree(folder)
    return judge(ratios, crowd)


if __name__ == "__main__":
    sys.exit(main())
