#!/usr/bin/env python3
"""bench.py BUILD [--tokens 512] [--layers N] [--repeat 3] [--threads N] [--torch PYTHON] [--llama BENCH GGUF] [--rows NAMES] [--json FILE]

Prints one table: what vernier does, how long it takes, and how many times that is as long as a peer of the same run. The peer
and vernier run in turn, so that a busy moment meets both; each time is the least of the repeats, with the files in the page
cache. Recordings are those of `vernier synth qwen2-0.5b` (24 layers, logits over a vocabulary of 151,936).

  compare       float32 against float16, every metric: cat of both files
  floor         the same with a recorded floor: cat of the three files
  small         78,000 tensors of 8 numbers: cat of both files
  forward       the reference's pass in float32: the bare cblas_sgemm of its products
  torch         the same pass, by the clock: transformers on the CPU with as many threads (--torch names its Python)
  replay        compare --model --replay: capture ref of the same tokens
  explain       explain of a fault at the logits: capture ref of the same tokens
  gpu           capture gpu in float16 (bench_gpu, all logits): llama.cpp's llama-bench where --llama names it

--json writes the rows with the machine they were measured on. A row that cannot be measured here says why. Exit status 1 when
a goal is missed. Needs h5py and numpy, 3 GB of disk for 512 tokens and 24 layers.
"""
import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from bench_compare import busy, header, in_turn, into_cache

SMALL = 78000
GOALS = {  # at most so many times as long as the peer
    "compare": 1.5, "floor": 2.0, "forward": 1.15, "torch": 1.0, "replay": 3.0, "explain": 2.0,
}
SECONDS = {"explain": 15.0, "small": 3.0}  # or at most so many seconds, whatever the peer takes
TORCH = r"""
import sys, time, torch, transformers
torch.set_num_threads(int(sys.argv[3]))
m = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
ids = torch.arange(int(sys.argv[2]))[None] * 7919 % m.config.vocab_size
best = float("inf")
with torch.no_grad():
    m(ids)
    for _ in range(int(sys.argv[4])):
        start = time.perf_counter()
        m(ids)
        best = min(best, time.perf_counter() - start)
print("torch", best)
"""


class Bench:
    def __init__(self, o, folder):
        self.o, self.folder, self.rows = o, folder, []
        self.vernier = os.path.join(o.build, "compare", "vernier")
        self.model = os.path.join(folder, "model")
        self.threads = ["--threads", str(o.threads)]
        self.ids = ",".join(str((i * 7919 + 13) % 151936) for i in range(o.tokens))

    def path(self, name):
        return os.path.join(self.folder, name)

    def capture(self, name, *more):
        return [self.vernier, "capture", "ref", self.model, "--ids", "@" + self.path("ids"), "-o", self.path(name), "--force",
                *self.threads, *more]

    def prepare(self):
        """The model and its recordings, of which each row takes what it needs; those that --folder holds already are taken as they are."""
        layers = ["--layers", str(self.o.layers)] if self.o.layers else []
        if not os.path.exists(self.model):
            subprocess.run([self.vernier, "synth", "qwen2-0.5b", "-o", self.model, *layers], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(self.path("ids"), "w") as f:
            f.write(self.ids)
        for name, more in (("f32.h5", ()), ("f16.h5", ("--precision", "f16")), ("f16b.h5", ("--precision", "f16-acc16")),
                           ("wrong.h5", ("--precision", "f16", "--inject", "M9@logits"))):
            if not os.path.exists(self.path(name)):
                subprocess.run(self.capture(name, *more), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def add(self, row, work, ours, peer, theirs, note=""):
        """A row of two numbers of seconds."""
        ratio, goal, most = ours / theirs if theirs else None, GOALS.get(row), SECONDS.get(row)
        met = [x <= y for x, y in ((ratio, goal), (ours, most)) if x is not None and y is not None]
        self.rows.append({"row": row, "work": work, "seconds": ours, "peer": peer, "peer_seconds": theirs, "ratio": ratio,
                          "goal_ratio": goal, "goal_seconds": most, "reached": any(met) if met else None, "note": note})
        goals = " or ".join(f"{x:g} {unit}" for x, unit in ((goal, "times"), (most, "s")) if x is not None)
        print(f"{row:8} {work:56} {ours:8.3f} s {ratio or float('nan'):7.2f} times {peer} ({theirs or float('nan'):.3f} s)"
              f"{f'; goal {goals}: ' + ('reached' if any(met) else 'MISSED') if met else ''}{note and '; ' + note}", flush=True)

    def skip(self, row, why):
        self.rows.append({"row": row, "skipped": why})
        print(f"{row:8} not measured: {why}", flush=True)

    def pair(self, row, work, ours, peer, theirs, files=()):
        into_cache(*files)
        a, b = in_turn((ours, theirs), self.o.repeat)
        self.add(row, work, a.clock, peer, b.clock, f"{a.cpu / a.clock:.1f} cores busy, {a.memory:.0f} MB")

    def compare(self):
        files = self.path("f32.h5"), self.path("f16.h5")
        size = sum(map(os.path.getsize, files)) / 1e9
        self.pair("compare", f"compare f32 f16, {size:.2f} GB", [self.vernier, "compare", *files, *self.threads],
                  "cat", ["cat", *files], files)

    def floor(self):
        files = [self.path(name) for name in ("f32.h5", "f16b.h5", "f16.h5")]
        size = sum(map(os.path.getsize, files)) / 1e9
        self.pair("floor", f"compare f32 f16 --floor f16, {size:.2f} GB",
                  [self.vernier, "compare", *files[:2], "--floor", files[2], "--allow", "precision",
                   *self.threads], "cat", ["cat", *files], files)

    def small(self):
        files = self.path("small_a.h5"), self.path("small_b.h5")
        for path, noise in zip(files, (0, 1e-6)):
            rng = np.random.default_rng(1)
            with h5py.File(path, "w", libver="latest") as f:
                header(f, "f32", 8)
                for i in range(SMALL // 13):
                    for point in range(13):
                        d = f["step.0"].create_dataset(f"layer{i}/t{point}", data=rng.standard_normal(8, dtype=np.float32) + np.float32(noise))
                        d.attrs.update(order=i * 13 + point, axes="hidden")
        self.pair("small", f"compare of {SMALL:,} small tensors", [self.vernier, "compare", *files, *self.threads], "cat",
                  ["cat", *files], files)
        for path in files:
            os.unlink(path)

    def forward(self):
        out = subprocess.run([os.path.abspath(os.path.join(self.o.build, "tests", "bench_ref")), self.model, str(self.o.tokens),
                              str(self.o.threads), str(self.o.repeat)], capture_output=True, text=True, cwd=self.folder)
        said = dict(re.findall(r"^(bare|forward, no taps|forward, recording)\D*([0-9.]+) s", out.stdout, re.M))
        if len(said) < 3:
            return self.skip("forward", f"bench_ref: {out.stderr.strip() or 'status %d' % out.returncode}")
        self.pass_seconds = float(said["forward, no taps"])
        self.add("forward", f"pass of {self.o.tokens} tokens, f32", self.pass_seconds, "bare sgemm", float(said["bare"]), "median")

    def torch(self):
        if not self.o.torch:
            return self.skip("torch", "no --torch PYTHON")
        if not hasattr(self, "pass_seconds"):
            self.forward()
        out = subprocess.run([self.o.torch, "-c", TORCH, self.model, str(self.o.tokens), str(self.o.threads), str(self.o.repeat)],
                             capture_output=True, text=True)
        found = re.search(r"^torch ([0-9.]+)", out.stdout, re.M)
        if not found:
            return self.skip("torch", (out.stderr.strip().splitlines() or ["no answer"])[-1])
        self.add("torch", f"pass of {self.o.tokens} tokens, f32", self.pass_seconds, "transformers", float(found[1]))

    def replay(self):
        files = self.path("f32.h5"), self.path("f16.h5")
        self.pair("replay", f"compare --model --replay, {self.o.tokens} tokens",
                  [self.vernier, "compare", *files, "--model", self.model, "--replay", *self.threads], "capture ref",
                  self.capture("again.h5"), files)

    def explain(self):
        files = self.path("f32.h5"), self.path("wrong.h5")
        self.pair("explain", f"explain a fault at the logits, {self.o.tokens} tokens",
                  [self.vernier, "explain", *files, "--model", self.model, *self.threads], "capture ref",
                  self.capture("again.h5"), files)

    def gpu(self):
        if not any(map(os.path.exists, ("/dev/dri", "/dev/nvidiactl"))):
            return self.skip("gpu", "no device here; Mesa's software driver says nothing of speed")
        bench = os.path.join(self.o.build, "tests", "bench_gpu")
        out = subprocess.run([bench, self.model, "f16", str(self.o.repeat), str(self.o.tokens)], capture_output=True, text=True)
        if out.returncode:
            return self.skip("gpu", (out.stderr.strip().splitlines() or ["bench_gpu is not built"])[-1])
        print(out.stdout, end="")
        self.rows.append({"row": "gpu", "printed": out.stdout})
        if self.o.llama:
            out = subprocess.run([self.o.llama[0], "-m", self.o.llama[1], "-p", str(self.o.tokens), "-n", "0"], capture_output=True, text=True)
            print(out.stdout, end="")
            self.rows.append({"row": "llama.cpp", "printed": out.stdout})

    def machine(self):
        with open("/proc/cpuinfo") as f:
            names = re.findall(r"model name\s*: (.*)", f.read())
        return {"processor": names[0] if names else platform.processor(), "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
                "system": platform.platform(), "version": subprocess.run([self.vernier, "--version"], capture_output=True, text=True).stdout.strip()}


ROWS = "compare", "floor", "small", "forward", "torch", "replay", "explain", "gpu"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--layers", type=int)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--torch", metavar="PYTHON")
    p.add_argument("--llama", nargs=2, metavar=("BENCH", "GGUF"))
    p.add_argument("--rows", type=lambda x: x.split(","), default=list(ROWS))
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--folder", help="make the recordings here and keep them, or take those that are there")
    o = p.parse_args()
    if set(o.rows) - set(ROWS):
        p.error(f"--rows takes {', '.join(ROWS)}")
    crowd = busy()
    folder = o.folder or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    bench = Bench(o, folder)
    machine = bench.machine()
    print(f"{machine['processor']}, {machine['cores']} cores, {o.threads} threads, {o.tokens} tokens, {o.layers or 24} layers", flush=True)
    try:
        bench.prepare()
        for row in o.rows:
            getattr(bench, row)()
    finally:
        if not o.folder:
            shutil.rmtree(folder)
    if crowd:
        print(f"{crowd}: these times say little")
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"machine": machine, "threads": o.threads, "tokens": o.tokens, "layers": o.layers or 24, "rows": bench.rows}, f, indent=1)
    return int(any(row.get("reached") is False for row in bench.rows))


if __name__ == "__main__":
    sys.exit(main())
