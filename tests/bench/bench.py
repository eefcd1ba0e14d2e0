#!/usr/bin/env python3
"""bench.py BUILD [--torch PYTHON] [--big MODEL] [--llama BENCH [GGUF]] [--only ROW...] [--gpu] [--json FILE] [--repeat
3] ...

Prints one table: what vernier does, how long it takes, how many times that is as long as a peer of the same run, and
whether the goal is met. Each time is the least of the repeats, of vernier and of peers alike. vernier, cat and
cblas_sgemm run in turn, so that a busy moment meets both, with their files in the page cache; other peers run after
them. The model is `vernier synth qwen2-0.5b` (24 layers, a vocabulary of 151,936); the prompt has 512 tokens.

  compare       float32 against float16, every metric: cat of both files; a numpy script; h5diff
  floor         the same with a recorded floor: cat of the three files
  small         78,000 tensors of 8 numbers: cat of both files
  forward       the reference's pass in float32: the bare cblas_sgemm of its products; transformers with as many threads
                (--torch); llama.cpp with as many, which multiplies in float16 and computes the last token's logits only
  record        the same pass, every default point recorded: the pass, and a plain write of as many bytes, synced as a
                recording is (fsync); the same in memory (/dev/shm), which no disk slows down
  replay        compare --model --replay: capture ref of the same tokens
  explain       explain of a fault at the logits: capture ref of the same tokens
  big-floor     as floor, of a prompt four times as long (8.7 GB and the floor)
  big-forward   the pass of the model that --big names (`vernier synth mistral-7b`): its bare cblas_sgemm
  big-replay    compare --model --replay of it: capture ref of the same tokens
  big-load      loading it for the GPU: cat of its files; torch (reading the safetensors to the device)
  gpu           capture gpu in float16, all logits, 128, 512 and 2048 tokens: transformers from a CUDA graph; launched
                one by one (eager); llama.cpp, which computes the last token's logits only
  gpu-next      one token behind them: the same, and the linear layers alone by cuBLAS
  gpu-f32       capture gpu in float32, 128 and 512 tokens: transformers as above
  gpu-models    capture gpu in float16, 512 tokens, of larger shapes with the layers of GPU_SHAPES: transformers (to try
                it without a device: --software --layers 1 --tokens 8)

The goals hold for these sizes; with others, none is judged. A goal for some number of cores is judged where that many
are used; elsewhere its row ends with that number. Times of the GPU are those of the device; the clock's stand in the
note. A row that cannot be measured here says why. --json writes the rows with the machine that they were measured on,
after each row anew. Exit status 1: a goal is missed.

The candidate of a floor is the float16 run with one sum of the first layer in float32: what follows differs from the
floor, is within limits, and costs one pass. llama.cpp is measured by its llama-bench, which --llama names (Debian:
llama.cpp-tools), on the GGUF file named there, or on one that the Python of --torch makes of the model with the package
gguf.

--prepare only makes what the rows need (models, recordings), in --folder, and says how long each takes: the next run
with the same --folder measures at once. It also makes the model of --big (mistral-7b) where there is none.

Needs 5 GB of disk; 12 GB more for big-floor, 13 GB for big-replay; `small` and the numpy script need h5py and numpy.
Where there is no device with Vulkan, or only a software device, the rows of the GPU say so.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import bench_gpu
from bench_gpu import Missing
from stopwatch import Failed, busy, in_turn, into_cache

SMALL = 78000
HOST_MEMORY = 2048  # MB beyond the page cache, for loading
BUSY = 10  # of 16 cores, in a comparison with a floor
MORE_MEMORY = 1.5  # GiB of a pass, beside the weights
RATIOS = {  # at most so many times as long as the first peer
    "compare": 1.5, "floor": 2.0, "big-floor": 2.0, "forward": 1.15, "record": 1.3, "transformers": 1.0, "replay": 3.0,
    "big-forward": 1.25, "big-shapes": 1.3,
    "big-replay": 3.0, "gpu-models": 1.5,
}
# that a goal is for
CORES = {"floor": 16, "big-floor": 16, "forward": 2, "transformers": 2, "explain": 2, "big-forward": 16,
         "big-replay": 16}
SECONDS = {  # at most this many seconds, independent of peers; with the number of tokens if it matters
    "explain": 15.0, "small": 3.0, "big-load": 1.5, ("gpu", 128): 3.5e-3, ("gpu", 512): 6e-3, ("gpu", 2048): 15e-3,
    ("gpu-next", 128): 1.9e-3, ("gpu-next", 512): 1.9e-3, ("gpu-next", 2048): 1.9e-3, ("gpu-f32", 128): 15e-3,
    ("gpu-f32", 512): 20e-3,
}
WAYS = {"graph": "transformers, CUDA graph", "eager": "transformers, eager", "linears": "cuBLAS, linear layers only"}
SHAPES = {"qwen3-30b-a3b": 4, "gpt-oss-20b": 2, "deepseek-v2-lite": 4, "gemma-3-4b": 12}  # layers, of 6 GB at most
GPU_ROWS = "big-load", "gpu", "gpu-next", "gpu-f32", "gpu-models"
GPU_SHAPES = {"gemma-3-4b": 34, "qwen3-30b-a3b": 8, "gpt-oss-20b": 6, "deepseek-v2-lite": 8}  # layers
GPU_SHAPES_GB = 48  # of all of them, and some room
ROWS = ("compare", "floor", "small", "forward", "record", "replay", "explain", "big-floor", "big-forward", "big-shapes",
        "big-replay", *GPU_ROWS)
HALF = "--precision", "f16"
OTHER = *HALF, "--precision", "f32@layer0.down_proj", "--precision", "f32@layer0.output"  # the candidate of a floor
RECORDINGS = {  # by name: options of capture; times the tokens
    "f32.h5": ((), 1), "f16.h5": (HALF, 1), "other.h5": (OTHER, 1), "wrong.h5": ((*HALF, "--inject", "M9@logits"), 1),
    "long32.h5": ((), 4), "long16.h5": (HALF, 4), "long_other.h5": (OTHER, 4),
}
NEEDS = {  # recordings of a row, in the order of its command
    "compare": ("f32.h5", "f16.h5"), "floor": ("f32.h5", "other.h5", "f16.h5"), "replay": ("f32.h5", "f16.h5"),
    "explain": ("f32.h5", "wrong.h5"),
    "big-floor": ("long32.h5", "long_other.h5", "long16.h5"),
}


def seconds(x):
    return "-" if x is None else f"{x:.2f} s" if x >= 0.995 else f"{x * 1e3:.3g} ms"


class Bench:
    def __init__(self, o, folder):
        self.o, self.folder, self.rows, self.kept = o, folder, [], {}
        self.vernier = os.path.join(o.build, "compare", "vernier")
        self.model = os.path.join(folder, "model")
        self.threads = ["--threads", str(o.threads)]
        self.cores = min(o.threads, len(os.sched_getaffinity(0)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def once(self, name, make):
        """What several rows need: made by the first; why not, for all."""
        if name not in self.kept:
            try:
                self.kept[name] = make()
            except Missing as e:
                self.kept[name] = e
        if isinstance(self.kept[name], Missing):
            raise self.kept[name]
        return self.kept[name]

    def quiet(self, command):
        out = bench_gpu.run(command)
        if out.returncode:
            raise Missing(bench_gpu.last_line(out.stderr, f"status {out.returncode}"))

    def made(self, path, make):
        """A path, made where it is not there already."""
        def work():
            start = time.monotonic()
            if not os.path.exists(path):
                make()
                files = [path] if os.path.isfile(path) else [os.path.join(path, name) for name in os.listdir(path)]
                print(f"made {path}: {sum(map(os.path.getsize, files)) / 1e9:.2f} GB in {time.monotonic() - start:.1f} "
                      f"s",
                      file=sys.stdout if self.o.prepare else sys.stderr, flush=True)
            return path
        return self.once(path, work)

    def capture(self, name, *more, model=None, tokens=None):
        model, tokens = model or self.model, tokens or self.o.tokens
        with open(os.path.join(model, "config.json")) as f:
            vocabulary = json.load(f)["vocab_size"]
        ids = self.path(f"ids.{tokens}.{vocabulary}")
        with open(ids, "w") as f:
            f.write(",".join(str((i * 7919 + 13) % vocabulary) for i in range(tokens)))
        return [self.vernier, "capture", "ref", model, "--ids", "@" + ids, "-o", self.path(name), "--force",
                *self.threads, *more]

    def synth(self):
        layers = ["--layers", str(self.o.layers)] if self.o.layers else []
        return self.made(self.model,
                         lambda: self.quiet([self.vernier, "synth", self.o.shape, "-o", self.model, *layers]))

    def full(self):
        """Whether the sizes are those of the goals."""
        return not self.o.layers and self.o.shape == "qwen2-0.5b" and self.o.tokens == 512

    def room(self, gb, *paths):
        """Raises Missing where there is no room for these files, on the disk if they are still to be made, and in the
        page cache."""
        with open("/proc/meminfo") as f:
            free = {"memory": int(re.search(r"MemAvailable:\s*(\d+)", f.read())[1]) / 1e6}
        if not all(map(os.path.exists, paths)):
            free["disk"] = shutil.disk_usage(self.folder).free / 1e9
        for of, there in free.items():
            if self.full() and there < gb:
                raise Missing(f"needs {gb} GB of {of}; {there:.0f} GB are free")

    def recorded(self, row):
        """The recordings of the model that a row needs."""
        def make(name):
            more, times = RECORDINGS[name]
            return self.made(self.path(name),
                             lambda: self.quiet(self.capture(name, *more, tokens=times * self.o.tokens)))
        self.synth()
        if row == "big-floor":
            self.room(13, *map(self.path, NEEDS[row]))
        return [make(name) for name in NEEDS[row]]

    def add(self, row, work, ours, peer=None, theirs=None, note="", goal=None, also=(), **numbers):
        """A row: seconds of ours and of one peer. `goal` names the goals; `also`: what else must hold for it, as (text,
        whether it does)."""
        cores = CORES.get(goal, 1)
        ratio, most, longest = ours / theirs if theirs else None, *(goals.get(goal) if self.full() else None
                                                                    for goals in (RATIOS, SECONDS))
        kept = [x <= y for x, y in ((ratio, most), (ours, longest)) if x is not None and y is not None]
        reached = any(kept) and all(holds for _, holds in also) if kept and self.cores >= cores else None
        goals = ", ".join((" or ".join(text for text in (f"{most:g} times" if most else "",
                                                         seconds(longest) if longest else "") if text),
                           *(text for text, _ in also))) if kept else ""
        verdict = "" if not kept else f"for {cores} cores" if reached is None else "reached" if reached else "MISSED"
        self.rows.append({"row": row, "work": work, "seconds": ours, "peer": peer, "peer_seconds": theirs,
                          "ratio": ratio,
                          "goal_ratio": most, "goal_seconds": longest, "goal_cores": cores if kept else None,
                          "also": dict(also),
                          "reached": reached, "note": note, **numbers})
        self.save()
        print(f"{row:12} {work:40} {seconds(ours):>9}  {peer or '':28} {seconds(theirs):>9} "
              f"{'-' if ratio is None else f'{ratio:.2f}':>7}  "
              f"{goals:30} {verdict:12} {note}".rstrip(), flush=True)

    def skip(self, row, work, why):
        self.rows.append({"row": row, "work": work, "not_measured": str(why)})
        self.save()
        print(f"{row:12} {work:40} not measured: {why}", flush=True)

    def save(self):
        """Writes the rows so far, so that a run that is stopped leaves them."""
        if not self.o.json:
            return
        with open(self.o.json + ".part", "w") as f:
            json.dump({"machine": self.once("machine", self.machine), "threads": self.o.threads,
                       "tokens": self.o.tokens, "shape": self.o.shape,
                       "layers": self.o.layers, "rows": self.rows}, f, indent=1)
            f.write("\n")
        os.replace(self.o.json + ".part", self.o.json)

    def pair(self, row, work, ours, peer, theirs, files=(), also=lambda ours: (), repeat=None):
        into_cache(*files)
        a, b = in_turn((ours, theirs), repeat or self.o.repeat)
        self.add(row, work, a.clock, peer, b.clock, f"{a.cpu / a.clock:.1f} cores busy, {a.memory:.0f} MB", row,
                 also(a), cores_busy=a.cpu / a.clock,
                 memory_mb=a.memory, cpu_seconds=a.cpu, peer_cpu_seconds=b.cpu)
        return a.clock

    def memory(self, run):
        """The goal of a comparison's memory."""
        most = 200 + 64 * max(self.o.threads - 2, 0)
        return f"{most} MB", run.memory <= most

    def compare(self):
        files = self.recorded("compare")
        work = f"compare f32 f16, {sum(map(os.path.getsize, files)) / 1e9:.2f} GB"
        ours = self.pair("compare", work, [self.vernier, "compare", *files, *self.threads], "cat", ["cat", *files],
                         files,
                         lambda run: [self.memory(run)])
        for peer, command, lacks in (("numpy and h5py", self.script(files), "no h5py and numpy"),
                                     ("h5diff", shutil.which("h5diff") and ["h5diff", "-d", "1e-3", *files],
                                      "no h5diff")):
            if command:
                self.add("compare", work, ours, peer, in_turn((command,), 1)[0].clock, "one run of the peer")
            else:
                self.skip("compare", f"{work}, beside {peer}", lacks)

    def script(self, files):
        if not all(map(importlib.util.find_spec, ("h5py", "numpy", "xxhash"))):
            return None
        from bench_compare import NUMPY
        return [sys.executable, "-c", NUMPY, *files]

    def floor(self, row="floor"):
        files = self.recorded(row)
        self.pair(row, f"compare f32 f16 --floor, {sum(map(os.path.getsize, files)) / 1e9:.2f} GB",
                  [self.vernier, "compare", *files[:2], "--floor", files[2], "--allow", "precision", *self.threads],
                  "cat", ["cat", *files], files,
                  lambda run: [(f"{BUSY} cores", run.cpu / run.clock >= BUSY), self.memory(run)])

    def big_floor(self):
        self.floor("big-floor")

    def tensors(self):
        """Two recordings of many small tensors."""
        try:
            import h5py
            import numpy as np
            from bench_compare import header
        except ImportError as e:
            raise Missing(e)

        def make(path, noise):
            rng = np.random.default_rng(1)
            with h5py.File(path + ".part", "w", libver="latest") as f:
                header(f, "f32", 8)
                for i in range(SMALL // 13):
                    for point in range(13):
                        d = f["step.0"].create_dataset(
                            f"layer{i}/t{point}", data=rng.standard_normal(8, dtype=np.float32) + np.float32(noise))
                        d.attrs.update(order=i * 13 + point, axes="hidden")
            os.replace(path + ".part", path)

        pair = (self.path("small_a.h5"), 0), (self.path("small_b.h5"), 1e-6)
        return [self.made(path, lambda path=path, noise=noise: make(path, noise)) for path, noise in pair]

    def small(self):
        files = self.tensors()
        self.pair("small", f"compare of {SMALL:,} small tensors", [self.vernier, "compare", *files, *self.threads],
                  "cat", ["cat", *files], files)

    def bare(self, row, model, repeat):
        """The pass beside its bare products; its seconds."""
        bench = bench_gpu.tool(self.o.build, "bench_ref")
        said = bench_gpu.said([bench, "--json", "--pass", model, str(self.o.tokens), str(self.o.threads), str(repeat)])
        ours, more = min(said["pass"]), said["peak_gib"] - said["weights_gib"]
        self.add(row, f"{self.named(model)}pass of {self.o.tokens} tokens, f32", ours, "bare cblas_sgemm",
                 min(said["bare"]), f"weights and {more:.2f} GiB" if more >= 0 else "less than all weights", row,
                 [(f"{MORE_MEMORY} GiB", more <= MORE_MEMORY)])
        return ours

    def named(self, model):
        return "" if model == self.model else os.path.basename(os.path.abspath(model)) + ": "

    def forward(self):
        self.synth()
        ours = self.bare("forward", self.model, self.o.repeat)
        work = f"pass of {self.o.tokens} tokens, f32"
        try:
            said = bench_gpu.torch(self.o.torch, self.model, "pass", "f32", self.o.repeat, [self.o.tokens], "cpu",
                                   "--threads", str(self.o.threads))
            self.add("forward", work, ours, f"transformers, torch {said['torch']}", min(said["passes"][0]["ms"]) / 1e3,
                     "", "transformers")
        except (Missing, KeyError) as e:
            self.skip("forward", work + ", beside transformers", e)
        if self.o.llama:
            try:
                said = self.llama_bench("-p", self.o.tokens, "-n", 0, "-t", self.o.threads, "-r", self.o.repeat, "-dev",
                                        "none")
                self.add("forward", work, ours, "llama.cpp, f16, last logits", min(said[0]["samples_ns"]) / 1e9)
            except Missing as e:
                self.skip("forward", work + ", beside llama.cpp", e)

    def record(self):
        self.synth()
        bench = bench_gpu.tool(self.o.build, "bench_ref")
        said = bench_gpu.said([bench, "--json", os.path.abspath(self.model), str(self.o.tokens), str(self.o.threads),
                               str(self.o.repeat)], cwd=self.folder)
        bare, work = min(said["pass"]), f"pass of {self.o.tokens} tokens, recorded"
        write, sync = min(zip(said["write"], said["sync"]))
        self.add("record", work, min(said["recording"]), "pass and synced write", bare + write,
                 f"pass {seconds(bare)}, write {seconds(write - sync)}, fsync {seconds(sync)}", "record")
        if "write_in_memory" in said:
            self.add("record", work + " in memory", min(said["recording_in_memory"]), "pass and write",
                     bare + min(said["write_in_memory"]), "", "record")

    def replay(self):
        files = self.recorded("replay")
        self.pair("replay", f"compare --model --replay, {self.o.tokens} tokens",
                  [self.vernier, "compare", *files, "--model", self.model, "--replay", *self.threads], "capture ref",
                  self.capture("again.h5"), files)

    def explain(self):
        files = self.recorded("explain")
        self.pair("explain", f"explain a fault at the logits, {self.o.tokens} tokens",
                  [self.vernier, "explain", *files, "--model", self.model, *self.threads], "capture ref",
                  self.capture("again.h5"), files)

    def big(self):
        """The files of the model of --big."""
        if not self.o.big:
            raise Missing("no --big MODEL")
        if self.o.prepare:
            self.made(self.o.big, lambda: self.quiet([self.vernier, "synth", "mistral-7b", "-o", self.o.big]))
        files = [os.path.join(self.o.big, name) for name in sorted(os.listdir(self.o.big))
                 if name.endswith(".safetensors")]
        self.once("big", lambda: into_cache(*files) or True)
        return files

    def big_forward(self):
        self.big()
        self.bare("big-forward", self.o.big, min(self.o.repeat, 2))

    def shapes(self):
        if not self.o.folder:
            raise Missing("no --folder DIR for 20 GB of models")
        return [self.made(path, lambda shape=shape, n=n, path=path: self.quiet(
            [self.vernier, "synth", shape, "--layers", str(n), "-o", path]))
            for shape, n in SHAPES.items() for path in [self.path(f"{shape}-{n}")]]

    def big_shapes(self):
        for model in self.shapes():
            self.bare("big-shapes", model, min(self.o.repeat, 2))

    def big_pair(self):
        """Recordings of the model of --big."""
        self.big()
        pair = [(self.path("big32.h5"), ()), (self.path("big16.h5"), HALF)]
        self.room(14, *(path for path, _ in pair))
        return [self.made(path, lambda path=path, more=more: self.quiet(self.capture(path, *more, model=self.o.big)))
                for path, more in pair]

    def big_replay(self):
        files = self.big_pair()
        self.pair("big-replay", f"{self.named(self.o.big)}compare --replay, {self.o.tokens} tokens",
                  [self.vernier, "compare", *files, "--model", self.o.big, "--replay", *self.threads], "capture ref",
                  self.capture("again.h5", model=self.o.big), files, repeat=min(self.o.repeat, 2))

    def device(self):
        return self.once("device", lambda: bench_gpu.device(self.o.build, self.o.software))

    def loaded(self, model):
        """Seconds of loading a model for the GPU, and the most memory of the host meanwhile in MB, beyond what is
        mapped from files."""
        p = subprocess.Popen([bench_gpu.tool(self.o.build, "bench_gpu"), "--json", model, "f16", "0"],
                             stdout=subprocess.PIPE, text=True)
        most, ended = [0.0], threading.Event()

        def watch():
            while not ended.wait(0.005):
                try:
                    with open(f"/proc/{p.pid}/status") as f:
                        most[0] = max(most[0],
                                      sum(int(kb) for kb in re.findall(r"Rss(?:Anon|Shmem):\s*(\d+)", f.read())) / 1024)
                except OSError:
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        out = p.communicate()[0]
        ended.set()
        watcher.join()
        if p.returncode:
            raise Missing(f"bench_gpu: status {p.returncode}")
        return json.loads(out)["created_s"], most[0]

    def big_load(self):
        files = self.big()
        self.device()
        size = sum(map(os.path.getsize, files)) / 1e9
        runs, cats = zip(*((self.loaded(self.o.big), in_turn((["cat", *files],), 1)[0].clock)
                           for _ in range(self.o.repeat)))
        ours, memory = min(s for s, _ in runs), max(mb for _, mb in runs)
        work = f"{self.named(self.o.big)}loading {size:.1f} GB for the GPU"
        self.add("big-load", work, ours, "cat", min(cats), f"{size / ours:.1f} GB/s; {memory:.0f} MB of the host",
                 "big-load",
                 [(f"{HOST_MEMORY} MB", memory <= HOST_MEMORY)])
        try:
            said = bench_gpu.torch(self.o.torch, self.o.big, "load", "f16", self.o.repeat, [1], self.cuda())
            self.add("big-load", work, ours, "torch, safetensors", min(said["load_s"]))
        except Missing as e:
            self.skip("big-load", work + ", beside torch", e)

    def cuda(self):
        return "cpu" if self.device() == ["cpu"] else "cuda"

    def calls(self, precision):
        self.device()
        self.synth()
        tokens = self.o.gpu_tokens if precision == "f16" else [n for n in self.o.gpu_tokens if n <= 512]
        return tokens, self.once(f"gpu {precision}", lambda: bench_gpu.engine(self.o.build, self.model, precision,
                                                                              self.o.gpu_repeat, tokens))["calls"]

    def peers(self, precision, tokens, behind):
        """Peers of one call as (name, seconds or why there are none); the fastest way of transformers first."""
        try:
            said = self.once(f"torch {precision}", lambda: bench_gpu.torch(self.o.torch, self.model, "pass,next"
                                                                           if precision == "f16" else "pass",
                                                                          precision, self.o.gpu_repeat,
                                                                           self.calls(precision)[0], self.cuda()))
            rows = {row["way"]: row for row in said["passes"] if (row["tokens"], row["behind"]) == (tokens, behind)}
            for way in WAYS:
                if way in rows:
                    yield WAYS[way], min(rows[way]["ms"]) / 1e3 if "ms" in rows[way] else Missing(rows[way]["why"])
        except Missing as e:
            yield "transformers", e
        if self.o.llama and precision == "f16":
            peer = "llama.cpp" if behind else "llama.cpp, last logits"
            try:
                yield peer, self.once("llama", self.llama)[tokens, behind]
            except (Missing, KeyError) as e:
                yield peer, e

    def gguf(self):
        """The model as a file for llama.cpp."""
        if len(self.o.llama) > 1:
            return self.o.llama[1]
        if not self.o.torch:
            raise Missing("no GGUF given, and no --torch PYTHON to make it")
        path = self.path("model.f16.gguf")
        script = os.path.join(bench_gpu.HERE, "..", "..", "fixtures", "gguf_twins.py")
        return self.made(path, lambda: self.quiet([self.o.torch, script, self.synth(), "-o", path, "--type", "F16",
                                                   "--no-vocab"]))

    def llama_bench(self, *more):
        return bench_gpu.said([self.o.llama[0], "-m", self.gguf(), *map(str, more), "-o", "json"])

    def llama(self):
        """Seconds of a prompt, and of one token after one, on the GPU; the prompt in batches of 512 or whole,
        whichever is faster."""
        sizes, found = ",".join(map(str, self.o.gpu_tokens)), {}
        for what in ("-p", sizes, "-n", 0, "-ub",
                     f"512,{max(512, *self.o.gpu_tokens)}"), ("-p", 0, "-n", 1, "-d", sizes):
            for test in self.llama_bench(*what, "-r", self.o.gpu_repeat):
                if not test["gpu_info"]:
                    raise Missing("llama-bench found no GPU")
                one = test["n_gen"] > 0
                size = 1 if one else test["n_prompt"], test.get("n_depth", 0) if one else 0
                found[size] = min(found.get(size, math.inf), min(test["samples_ns"]) / 1e9)
        return found

    def gpu_call(self, row, precision, next):
        _, calls = self.calls(precision)
        for call in calls:
            if bool(call["behind"]) != next:
                continue
            tokens, behind = call["tokens"], call["behind"]
            work, goal = (f"one token behind {behind}, {precision}" if next
                          else f"{tokens} tokens, {precision}, all logits", (row, behind or tokens))
            ours, note = min(call["device_ms"]) / 1e3, f"{min(call['wall_ms']):.2f} ms by the clock"
            peers = list(self.peers(precision, tokens, behind))
            measured = [(peer, theirs) for peer, theirs in peers if isinstance(theirs, float)]
            for peer, theirs in measured or [(None, None)]:
                self.add(row, work, ours, peer, theirs, note, goal)
                note, goal = "", None
            for peer, why in peers:
                if (peer, why) not in measured:
                    self.skip(row, f"{work}, beside {peer}", why)

    def gpu(self):
        self.gpu_call("gpu", "f16", False)

    def gpu_next(self):
        self.gpu_call("gpu-next", "f16", True)

    def gpu_f32(self):
        self.gpu_call("gpu-f32", "f32", False)

    def large(self):
        """Of each model of GPU_SHAPES (shape, layers, folder or why there is none): made side by side where the disk
        holds all of them, else one by one."""
        def make(of):
            shape, layers = of[0], min(of[1], self.o.layers or of[1])
            path = self.path(f"{shape}.{layers}")
            try:
                return shape, layers, self.made(path, lambda: self.quiet(
                    [self.vernier, "synth", shape, "--layers", str(layers), "-o", path, "--force"]))
            except Missing as e:
                shutil.rmtree(path, ignore_errors=True)
                return shape, layers, e
        if self.o.layers or shutil.disk_usage(self.folder).free > GPU_SHAPES_GB * 1e9:
            with concurrent.futures.ThreadPoolExecutor(len(GPU_SHAPES)) as pool:
                yield from list(pool.map(make, GPU_SHAPES.items()))
            return
        for of in GPU_SHAPES.items():
            yield (made := make(of))
            if not self.o.folder:
                shutil.rmtree(str(made[2]), ignore_errors=True)

    def gpu_model(self, shape, layers, model):
        work = f"{shape}, {layers} layers, {self.o.tokens} tokens, f16"
        try:
            if isinstance(model, Missing):
                raise model
            call = bench_gpu.engine(self.o.build, model, "f16", self.o.gpu_repeat, [self.o.tokens])["calls"][0]
        except Missing as e:
            return self.skip("gpu-models", work, e)
        ours, note = min(call["device_ms"]) / 1e3, f"{min(call['wall_ms']):.2f} ms by the clock"
        try:
            said = bench_gpu.torch(self.o.torch, model, "pass", "f16", self.o.gpu_repeat, [self.o.tokens], self.cuda())
        except Missing as e:
            self.add("gpu-models", work, ours, note=note)
            return self.skip("gpu-models", f"{work}, beside transformers", e)
        rows = {row["way"]: row for row in said["passes"] if not row["behind"]}
        for way in (way for way in WAYS if "ms" in rows.get(way, ())):  # the graph, where it runs
            return self.add("gpu-models", work, ours, WAYS[way], min(rows[way]["ms"]) / 1e3, note, "gpu-models")
        self.add("gpu-models", work, ours, note=note)
        self.skip("gpu-models", f"{work}, beside transformers", "; ".join(row["why"] for row in rows.values()))

    def gpu_models(self):
        self.device()
        for shape, layers, model in self.large():
            self.gpu_model(shape, layers, model)

    def machine(self):
        with open("/proc/cpuinfo") as f:
            names = re.findall(r"model name\s*: (.*)", f.read())
        return {"processor": names[0] if names else platform.processor(), "cores": len(os.sched_getaffinity(0)),
                "load": os.getloadavg()[0],
                "system": platform.platform(),
                "version": subprocess.run([self.vernier, "--version"], capture_output=True, text=True).stdout.strip()}

    def prepare(self):
        """Makes what the rows need."""
        more = {"small": self.tensors, "big-forward": self.big, "big-shapes": self.shapes,
                "big-replay": self.big_pair, "big-load": self.big, "gpu-models": lambda: list(self.large())}
        for row in self.o.only:
            try:
                self.recorded(row) if row in NEEDS else more.get(row, self.synth)()
                if self.o.llama and row in ("forward", "gpu"):
                    self.gguf()
            except (Missing, OSError) as e:
                print(f"{row}: not prepared: {e}", flush=True)

    def measure(self):
        print(f"{'row':12} {'work':40} {'vernier':>9}  {'peer':28} {'its time':>9} {'ratio':>7}  {'goal':30}")
        for row in self.o.only:
            try:
                if row not in GPU_ROWS and not row.startswith("big"):
                    self.synth()
                getattr(self, row.replace("-", "_"))()
            except (Missing, Failed, OSError) as e:
                self.skip(row, "", e)
        judged = [row["reached"] for row in self.rows if row.get("reached") is not None]
        print(f"{sum(judged)} goals reached, {len(judged) - sum(judged)} missed, "
              f"{sum((row.get('goal_cores') or 1) > self.cores for row in self.rows)} for more cores than "
              f"{self.cores}, "
              f"{sum('not_measured' in row for row in self.rows)} rows not measured")
        return all(judged)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--torch", metavar="PYTHON", help="a Python with torch and transformers")
    p.add_argument("--big", metavar="MODEL", help="the folder of a 7B model with bfloat16 weights")
    p.add_argument("--llama", nargs="+", metavar=("BENCH", "GGUF"),
                   help="llama.cpp's llama-bench, and the model for it")
    p.add_argument("--only", nargs="+", choices=ROWS, metavar="ROW")
    p.add_argument("--gpu", action="store_true", help=f"only {', '.join(GPU_ROWS)}")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--gpu-repeat", type=int, default=9, help="of calls and peers on the GPU, which take milliseconds")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--gpu-tokens", type=int, nargs="+", default=list(bench_gpu.TOKENS))
    p.add_argument("--shape", default="qwen2-0.5b", help="another shape of `vernier synth`")
    p.add_argument("--layers", type=int)
    p.add_argument("--folder", help="make model and recordings here and keep them, or take those that are there")
    p.add_argument("--prepare", action="store_true", help="only make them")
    p.add_argument("--software", action="store_true", help="take a software device, too: a test of this program")
    p.add_argument("--within", type=float, metavar="SECONDS",
                   help="end models being made, engines and torch then; rows that lack them say so")
    o = p.parse_args()
    if o.within:
        bench_gpu.UNTIL = time.monotonic() + o.within
    o.only = o.only or (GPU_ROWS if o.gpu else ROWS)
    if o.prepare and not o.folder:
        p.error("--prepare needs --folder")
    crowd = busy()
    folder = o.folder or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    bench = Bench(o, folder)
    machine = bench.once("machine", bench.machine)
    print(f"{machine['processor']}, {machine['cores']} cores; {o.threads} threads, {o.tokens} tokens, "
          f"{o.shape}{f', {o.layers} layers' if o.layers else ''}; "
          f"least of {o.repeat} runs", flush=True)
    try:
        reached = bench.prepare() is None if o.prepare else bench.measure()
    finally:
        if not o.folder:
            shutil.rmtree(folder)
    if crowd:
        print(f"{crowd}: these times say little")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
