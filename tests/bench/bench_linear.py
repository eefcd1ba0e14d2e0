#!/usr/bin/env python3
"""bench_linear.py VERNIER [--full] [--old OTHER] [--only AXIS[,AXIS]] [--folder DIR]: how processor time and memory
grow with tensors, names and steps.

For each axis and command, runs one size and 2.5 times as much: the processor time of all processes of the command, the
least of several runs in turn (two; up to six while their ratio is above what is allowed, since other work on the
machine only adds), and the memory of the largest process. Prints both sizes, the ratio, and the exponent log(ratio) /
log(2.5). Exit status 1 if a command takes more than 1.2 times what linear growth allows.

  tensors   compare of 10 tensors in each of n / 10 steps, all outside: written by bench_names
  layers    compare of n tensors in n / 4 layers of one step, all outside
  names     import of n names of one step, show, and weights of a model with n weights more
  steps     explain of n decoded steps of the trained llama, with a fault in its attention

Two minutes of one core. --full: sizes 4 times as large, up to 1,000,000 names and weights, of which import may take
20 s and 1 GB, and weights 1 GB. --old: the same of another vernier, and its time over this one's.
"""
import argparse
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURE = os.path.join(HERE, "..", "..", "fixtures", "llama-trained")
TIMES, MOST, MOST_RUNS = 2.5, 1.2, 6
MILLION = {"import": (20, 1000), "weights": (math.inf, 1000)}  # seconds and MB of 1,000,000 names


# Runs a command from a small process: one forked from a large process counts as large as that.
MEASURED = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"""


def run(command, expect=(0, 1)):
    """Seconds of processors and MB of the largest process, of the command and of the processes that it starts."""
    done = subprocess.run([sys.executable, "-c", MEASURED, *command], capture_output=True, text=True)
    status, seconds, size = map(float, done.stdout.split())
    if status not in expect:
        sys.exit(f"{' '.join(command)[:200]}: exit status {status:.0f}: {done.stderr[-500:]}")
    return seconds, size


def least(commands):
    """The least of several runs of both, seconds and MB of each."""
    best = [(math.inf, math.inf)] * len(commands)
    for i in range(MOST_RUNS):
        best = [tuple(map(min, b, run(c))) for b, c in zip(best, commands)]
        if i > 0 and best[1][0] <= MOST * TIMES * best[0][0]:
            break
    return best


def safetensors(path, names, base=None):
    """A file of these tensors of two numbers each, behind those of `base`."""
    head, body = {}, b""
    if base:
        with open(base, "rb") as f:
            head, body = json.loads(f.read(struct.unpack("<Q", f.read(8))[0])), f.read()
    for i, name in enumerate(names):
        at = len(body) + 8 * i
        head[name] = {"dtype": "F32", "shape": [2], "data_offsets": [at, at + 8]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body + struct.pack("<f", 1.0) * (2 * len(names)))


class Axes:
    """What each axis measures: yields (command's name, arguments); the files are made here."""

    def __init__(self, vernier):
        self.vernier = vernier
        self.names = os.path.join(os.path.dirname(os.path.dirname(vernier)), "tests", "bench_names")

    def make(self, *arguments):
        run([self.vernier, *arguments], (0,))

    def tensors(self, n):
        for tag, value in ("a", "1"), ("b", "1.0001"):
            run([self.names, f"{tag}{n}.h5", "10", str(n // 10), value], (0,))
        yield "compare", ["compare", f"a{n}.h5", f"b{n}.h5", "--threads", "1"]

    def layers(self, n):
        names = [f"layer{i}.{p}" for i in range(n // 4) for p in ("q_proj", "k_proj", "v_proj", "output")]
        for tag in "ab":
            safetensors("d.safetensors", names if tag == "a" else names[1:] + names[:1])
            self.make("import", "d.safetensors", "-o", f"l{tag}{n}.h5", "--ids", "1,2", "--unmapped", "keep", "--force")
        yield "compare", ["compare", f"la{n}.h5", f"lb{n}.h5", "--threads", "1", "--allow", "itself"]

    def weights(self, n):
        os.makedirs(f"m{n}", exist_ok=True)
        shutil.copy(os.path.join(FIXTURE, "config.json"), f"m{n}")
        safetensors(f"m{n}/model.safetensors", [f"other.{i}.name" for i in range(n)],
                    os.path.join(FIXTURE, "model.safetensors"))
        yield "weights", ["weights", f"m{n}", f"m{n}", "--threads", "1"]

    def import_(self, n):
        safetensors(f"n{n}.safetensors", [f"other.{i}.name" for i in range(n)])
        yield "import", ["import", f"n{n}.safetensors", "-o", f"n{n}.h5", "--ids", "1,2", "--unmapped", "keep",
                         "--force"]
        yield "show", ["show", f"n{n}.h5"]

    def steps(self, n):
        if not os.path.exists("llama"):
            shutil.copytree(FIXTURE, "llama")
            with open("llama/config.json") as f:
                config = json.load(f)
            config["max_position_embeddings"] = 65536
            os.unlink("llama/config.json")
            with open("llama/config.json", "w") as f:
                json.dump(config, f)
        ids = ",".join(str(i % 100 + 5) for i in range(8))
        self.make("capture", "ref", "llama", "--ids", ids, "--decode", str(n), "-o", f"s{n}.h5", "--force")
        self.make("capture", "ref", "llama", "--ids", ids, "--force-ids-from", f"s{n}.h5", "--inject",
                  "A3.strict@layer*.attn_context", "-o", f"t{n}.h5", "--force")
        yield "explain", ["explain", f"s{n}.h5", f"t{n}.h5", "--model", "llama", "--threads", "1"]


AXES = {"tensors": (Axes.tensors, 10000), "layers": (Axes.layers, 10000), "names": (Axes.import_, 40000),
        "weights": (Axes.weights, 100000), "steps": (Axes.steps, 100)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("vernier")
    p.add_argument("--full", action="store_true")
    p.add_argument("--old")
    p.add_argument("--only", default=",".join(AXES))
    p.add_argument("--folder")
    o = p.parse_args()
    vernier, old, bad = os.path.abspath(o.vernier), o.old and os.path.abspath(o.old), 0
    folder = o.folder or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    os.environ["OMP_WAIT_POLICY"] = "passive"  # threads that wait take no processor time
    try:
        for axis in o.only.split(","):
            make, few = AXES[axis]
            sizes = [size * (10 if axis == "names" else 4) if o.full else size for size in (few, int(few * TIMES))]
            for (what, small), (_, large) in zip(*(list(make(Axes(vernier), size)) for size in sizes)):
                a, b = least([[vernier, *small], [vernier, *large]])
                grown, wide = (big / little for little, big in zip(a, b))
                over = max(grown, wide) > MOST * TIMES
                seconds, size = MILLION.get(what, (math.inf, math.inf))
                dear = sizes[1] == 1000000 and (b[0] > seconds or b[1] > size)
                bad += over or dear
                before = least([[old, *small], [old, *large]]) if old else None
                print(f"{axis:8} {what:8} {sizes[0]:7} -> {sizes[1]:7}: {a[0]:6.2f} -> {b[0]:6.2f} s of processors, "
                      f"{grown:.2f} times, exponent {math.log(grown) / math.log(TIMES):.2f}; "
                      f"{a[1]:5.0f} -> {b[1]:5.0f} MB, {wide:.2f} times"
                      f"{f'; old / new {before[0][0] / a[0]:.2f} and {before[1][0] / b[0]:.2f}' if old else ''}"
                      f"{'  MORE THAN LINEAR' if over else ''}{f'  MORE THAN {seconds} s, {size} MB' if dear else ''}",
                      flush=True)
    finally:
        os.chdir("/")
        if not o.folder:
            shutil.rmtree(folder)
    print(f"growth: {bad} more than linear, or than they may take")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
