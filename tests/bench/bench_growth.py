#!/usr/bin/env python3
"""bench_growth.py BUILD --json FILE [--tokens 512] [--repeat 2] [--gpu FILE] [--quick] [--folder DIR]: how cost grows
with tokens, layers, vocabulary and cores. bench_growth.py --plot FILE SVG: the picture of it. Needs matplotlib (on
Debian: python3-matplotlib).

Varies one size of `vernier synth qwen2-0.5b` (24 layers, vocabulary 151,936, --tokens, every core) at a time, and
measures

  capture       capture ref, float32, every default checkpoint
  compare       of float32 and float16, every metric
  replay        compare --model --replay of the same
  explain       explain of a fault at the logits
  gpu           the device's time of capture gpu (bench_gpu), float16 and float32, and of one more token; where there is
                a device, or from --gpu FILE: what bench_gpu printed on another machine

Seconds by the clock, the least of the repeats, files in the page cache. A vocabulary is made smaller by leaving out
rows of the embedding. --quick: 3 layers, short prompts: a test of this program. Needs 6 GB of disk.
"""
import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from stopwatch import in_turn, into_cache

VOCABULARY, LAYERS = 151936, 24
GPU_TOKENS = 128, 256, 512, 1024, 2048, 4096
FAULT = "M9@logits"  # a cap on the logits


def cut(model, to, rows):
    """A copy of a model with only the first rows of its vocabulary."""
    os.makedirs(to, exist_ok=True)
    with open(os.path.join(model, "config.json")) as f:
        config = json.load(f)
    whole, config["vocab_size"] = config["vocab_size"], rows
    with open(os.path.join(to, "config.json"), "w") as f:
        json.dump(config, f)
    with open(os.path.join(model, "model.safetensors"),
              "rb") as f, open(os.path.join(to, "model.safetensors"), "wb") as g:
        size = struct.unpack("<Q", f.read(8))[0]
        tensors = {name: t for name, t in json.loads(f.read(size)).items() if name != "__metadata__"}
        head, end = {}, 0
        for name, t in tensors.items():
            begin, stop = t["data_offsets"]
            if t["shape"][0] == whole:
                stop = begin + (stop - begin) // whole * rows
            shape = [rows if t["shape"][0] == whole else t["shape"][0], *t["shape"][1:]]
            head[name] = {"dtype": t["dtype"], "shape": shape, "data_offsets": [end, end + stop - begin]}
            end += stop - begin
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        g.write(struct.pack("<Q", len(text)) + text)
        for name, t in tensors.items():
            f.seek(8 + size + t["data_offsets"][0])
            left = head[name]["data_offsets"][1] - head[name]["data_offsets"][0]
            while left:
                block = f.read(min(left, 1 << 24))
                g.write(block)
                left -= len(block)


class Growth:
    def __init__(self, o, folder):
        self.o, self.folder = o, folder
        self.vernier = os.path.abspath(os.path.join(o.build, "compare", "vernier"))
        self.cores = len(os.sched_getaffinity(0))

    def path(self, name):
        return os.path.join(self.folder, name)

    def model(self, layers, vocabulary):
        whole = self.path(f"model.{layers}")
        if not os.path.exists(whole):
            subprocess.run([self.vernier, "synth", "qwen2-0.5b", "-o", whole, "--layers", str(layers)], check=True,
                           stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        if vocabulary == VOCABULARY:
            return whole
        part = f"{whole}.{vocabulary}"
        if not os.path.exists(part):
            cut(whole, part, vocabulary)
        return part

    def seconds(self, tokens, layers, vocabulary, threads):
        """What each work takes at one size."""
        model, a, b, wrong = self.model(layers,
                                        vocabulary), self.path("f32.h5"), self.path("f16.h5"), self.path("wrong.h5")
        with open(self.path("ids"), "w") as f:
            f.write(",".join(str((i * 7919 + 13) % vocabulary) for i in range(tokens)))
        last = ["--threads", str(threads)]

        def capture(to, *more):
            return [self.vernier, "capture", "ref", model, "--ids", "@" + self.path("ids"), "-o", to, "--force", *last,
                    *more]

        for command in capture(b, "--precision", "f16"), capture(wrong, "--precision", "f16", "--inject",
                                                                 FAULT), capture(a):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        into_cache(a, b, wrong)
        works = {"capture": capture(self.path("again.h5")), "compare": [self.vernier, "compare", a, b, *last],
                 "replay": [self.vernier, "compare", a, b, "--model", model, "--replay", *last],
                 "explain": [self.vernier, "explain", a, wrong, "--model", model, *last]}
        taken = dict(zip(works, (best.clock for best in in_turn(works.values(), self.o.repeat))))
        print(f"{tokens:5} tokens, {layers:2} layers, vocabulary {vocabulary:6}, {threads:2} threads: " +
              ", ".join(f"{work} {s:.2f} s" for work, s in taken.items()), flush=True)
        return taken

    def axis(self, name, sizes):
        """The works at each size of one axis, the others at their usual size."""
        usual = {"tokens": 64 if self.o.quick else self.o.tokens, "layers": 3 if self.o.quick else LAYERS,
                 "vocabulary": VOCABULARY, "threads": self.cores}
        return [{"size": size, **self.seconds(**{**usual, name: size})} for size in sizes]

    def gpu(self):
        if self.o.gpu:
            with open(self.o.gpu) as f:
                return printed(f.read())
        if not any(map(os.path.exists, ("/dev/dri", "/dev/nvidiactl"))):
            print("gpu: no device here")
            return None
        bench, text = os.path.abspath(os.path.join(self.o.build, "tests", "bench_gpu")), ""
        if not os.path.exists(bench):
            print(f"gpu: no {bench}")
            return None
        for precision in "f16", "f32":
            out = subprocess.run([bench, self.model(LAYERS, VOCABULARY), precision, "5", *map(str, GPU_TOKENS)],
                                 capture_output=True, text=True)
            if out.returncode:
                print(f"gpu: {out.stderr.strip()}")
                return None
            text += out.stdout
        return printed(text)

    def measure(self):
        quick, powers = self.o.quick, [1 << i for i in range(self.cores.bit_length())]
        result = {"usual_tokens": self.o.tokens, "processor": processor(), "cores": self.cores,
                  "version": subprocess.run([self.vernier, "--version"], capture_output=True, text=True).stdout.strip()}
        result["tokens"] = self.axis("tokens",
                                     (16, 32) if quick else [self.o.tokens * k // 8 for k in (1, 2, 4, 8, 16)])
        result["layers"] = self.axis("layers", (1, 3) if quick else (3, 6, 12, 24))
        result["vocabulary"] = self.axis("vocabulary", (9496, 37984) if quick else (9496, 37984, 75968, 151936))
        result["threads"] = self.axis("threads", powers[:2] if quick else powers)
        result["gpu"] = None if quick else self.gpu()
        return result


def printed(text):
    """The device's milliseconds that bench_gpu printed, the least of each size."""
    device, precision, least = "", "", {}
    for line in text.splitlines():
        head, row = re.search(r" on (.*), (f\d+)$",
                              line), re.match(r" *(\d+) tokens behind +(\d+): +([0-9.]+) ms on the device", line)
        if head:
            device, precision = head[1], head[2]
        if row:
            key = precision, int(row[1]), int(row[2])
            least[key] = min(least.get(key, float("inf")), float(row[3]))
    return {"device": device, "rows": [{"precision": p, "tokens": t, "behind": b, "ms": ms} for (p, t, b),
                                       ms in sorted(least.items())]}


def processor():
    with open("/proc/cpuinfo") as f:
        found = re.search(r"model name\s*: (.*)", f.read())
    return found[1] if found else "?"


def plot(data, to):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "vernier", "svg.fonttype": "none", "font.size": 9,
                                "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot
    figure, panels = pyplot.subplots(2, 3, figsize=(11, 6.5))
    usual = {"tokens": f"{LAYERS} layers, {data['cores']} threads",
             "layers": f"{data['usual_tokens']} tokens, {data['cores']} threads",
             "vocabulary": f"{data['usual_tokens']} tokens, {data['cores']} threads",
             "threads": f"{data['usual_tokens']} tokens, {LAYERS} layers"}
    for panel, (axis, note) in zip(panels.flat, usual.items()):
        for work, mark in zip(("capture", "compare", "replay", "explain"), "osD^"):
            panel.plot([row["size"] for row in data[axis]], [row[work] for row in data[axis]], marker=mark,
                       markersize=4, linewidth=1.2, label=work)
        panel.set_title(f"CPU: {axis} ({note})", fontsize=9)
        if axis == "threads":
            panel.set_xscale("log", base=2)
            panel.set_yscale("log", base=2)
            panel.xaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_major_formatter("{x:g}")
        else:
            panel.set_xlim(left=0)
            panel.set_ylim(bottom=0)
        panel.set_xlabel(axis)
        panel.set_ylabel("seconds")
    panels.flat[0].legend(frameon=False)
    gpu = data["gpu"] or {"device": "no device", "rows": []}
    for panel, one in zip(panels.flat[4:], (False, True)):
        for precision in "f16", "f32":
            rows = [row for row in gpu["rows"] if row["precision"] == precision and (row["tokens"] == 1) == one]
            panel.plot([row["behind"] if one else row["tokens"] for row in rows], [row["ms"] for row in rows],
                       marker="o", markersize=4, linewidth=1.2, label=precision)
        panel.set_title("GPU: one more token" if one else f"GPU: tokens ({gpu['device']})", fontsize=9)
        panel.set_xlabel("tokens before it" if one else "tokens")
        panel.set_ylabel("device milliseconds")
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0)
        if gpu["rows"]:
            panel.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(to, metadata={"Date": None, "Creator": None})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--gpu", metavar="FILE")
    p.add_argument("--repeat", type=int, default=2)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--folder", help="make models and recordings here and keep them")
    p.add_argument("--plot", nargs=2, metavar=("JSON", "SVG"))
    o = p.parse_args()
    if o.plot:
        with open(o.plot[0]) as f:
            return plot(json.load(f), o.plot[1])
    if not o.build or not o.json:
        p.error("BUILD and --json, or --plot")
    folder = o.folder or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    try:
        result = Growth(o, folder).measure()
    finally:
        if not o.folder:
            shutil.rmtree(folder)
    with open(o.json, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    sys.exit(main())
