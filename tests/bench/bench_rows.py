#!/usr/bin/env python3
"""bench_rows.py BUILD: the tables of bench.py and bench_gpu.py, with tiny models and peers that only print numbers.

Each row has the least of the numbers that a program printed and the ratio of two of them, or says
why it was not measured; goals are judged by their rows. The times themselves are not tested. Exit
status 1: a table is wrong.
"""
import contextlib
import io
import json
import math
import os
import subprocess
import sys
import tempfile
from argparse import Namespace

import bench

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = {"torch": "0", "device": "none", "load_s": [0.5, 0.25],
         "limits": {"gb_s": 2.0, "copied_gb": 1.0, "tflop_s": 1e-3, "matmul": 8},
         "passes": [{"way": "eager", "tokens": 16, "behind": 0, "ms": [40, 20, 30]},
                    {"way": "graph", "tokens": 16, "behind": 0, "ms": [10, 5]},
                    {"way": "graph", "tokens": 1, "behind": 16, "why": "RuntimeError: no graph"},
                    {"way": "linears", "tokens": 1, "behind": 16, "ms": [4, 2]}],
         "operations": [{"operation": "linear", "tokens": 16, "behind": 0, "ms": [3, 2]}]}
LLAMA = (
    [{"n_prompt": 16, "n_gen": 0, "n_depth": 0, "gpu_info": "one", "samples_ns": ns} for ns in ([9e6, 8e6], [1e7])],
    [{"n_prompt": 0, "n_gen": 1, "n_depth": 16, "gpu_info": "one", "samples_ns": [7e6]}],
)
PEERS = {("gpu", "transformers, CUDA graph"): 5e-3, ("gpu", "transformers, eager"): 20e-3,
         ("gpu", "llama.cpp, last logits"): 8e-3,
         ("gpu-next", "llama.cpp"): 7e-3, ("forward", "llama.cpp, f16, last logits"): 8e-3, ("compare", "cat"): None,
         ("floor", "cat"): None,
         ("gpu-next", "cuBLAS, linear layers only"): 2e-3, ("gpu-f32", "transformers, CUDA graph"): 5e-3,
         ("big-load", "torch, safetensors"): 0.25,
         ("forward", "transformers, torch 0"): 20e-3}


def program(path, text):
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def check(what, right):
    if not right:
        print(f"FAILED: {what}")
    return not right


def rows(build, folder, model):
    """The table of a tiny model."""
    torch = program(os.path.join(folder, "torch"), f"echo '{json.dumps(TORCH)}'\n")
    llama = program(os.path.join(folder, "llama"), f"case \"$*\" in *'-p 0'*) echo '{json.dumps(LLAMA[1])}';; "
                    f"*) echo '{json.dumps(LLAMA[0])}';; esac\n")
    asked = ["compare", "floor", "forward", "record", "big-forward", "big-load", "gpu", "gpu-next", "gpu-f32"]
    to = os.path.join(folder, "rows.json")
    command = [sys.executable, os.path.join(HERE, "bench.py"), build, "--shape", "tiny", "--layers", "1", "--big",
               model, "--tokens", "16",
               "--gpu-tokens", "16", "--repeat", "1", "--gpu-repeat", "2", "--software", "--torch", torch, "--llama",
               llama, "x.gguf",
               "--json", to, "--folder", os.path.join(folder, "kept"), "--only", *asked]
    out = subprocess.run([*command, "--prepare"], capture_output=True, text=True)
    if check(f"bench.py --prepare: status {out.returncode}: {out.stdout}{out.stderr}",
             out.returncode == 0 and out.stdout.count("\nmade ") == 4):
        return 1
    out = subprocess.run(command, capture_output=True, text=True)
    if check(f"bench.py: status {out.returncode}: {out.stderr}", out.returncode == 0 and "made " not in out.stderr):
        return 1
    with open(to) as f:
        found = json.load(f)["rows"]
    bad = check(f"rows {asked}", {row["row"] for row in found} == set(asked))
    device = not any("not_measured" in row and row["work"] == "" for row in found)
    for row in found:
        if "not_measured" in row:
            bad |= check(f"a reason: {row}", row["not_measured"] and (not device or "beside" in row["work"]))
        else:
            bad |= check(f"a ratio: {row}",
                         row["peer"] and math.isclose(row["ratio"], row["seconds"] / row["peer_seconds"]))
    times = {(row["row"], row["peer"]): row["peer_seconds"] for row in found if "peer" in row}
    for key, peer in PEERS.items():
        bad |= check(f"{key}: {peer}, not {times.get(key)}",
                     key in times if peer is None else math.isclose(times.get(key, 0), peer) or
                     not device and key[0] != "forward")
    return bad | check("why there is no graph", not device
                       or "RuntimeError: no graph" in out.stdout) | operations(build, model, torch, device, folder)


def operations(build, model, torch, device, folder):
    """The table of operations; the share of linear from its own numbers and the limits of the peer."""
    to = os.path.join(folder, "operations.json")
    out = subprocess.run([sys.executable, os.path.join(HERE, "bench_gpu.py"), build, model, "16", "--torch", torch,
                          "--repeat", "2", "--software",
                          "--json", to], capture_output=True, text=True)
    if not device:
        return check(f"bench_gpu.py: status {out.returncode}", out.returncode == 77)
    if check(f"bench_gpu.py: status {out.returncode}: {out.stderr}", out.returncode == 0):
        return 1
    with open(to) as f:
        calls = json.load(f)["calls"]
    bad = check("a pass and one token behind it", [(c["tokens"], c["behind"]) for c in calls] == [(16, 0), (1, 16)])
    linear = next(row for row in calls[0]["operations"] if row["operation"] == "linear")
    share = 100 * max(linear["GB/s"] / 2.0, linear["TFLOP/s"] / 1e-3)
    bad |= check(f"linear: {linear}", math.isclose(linear["percent"], share) and
                 (linear["torch_ms"] == 2 and math.isclose(linear["ratio"], linear["ms"] / 2)
                  or len(linear["computes"]) > 1))
    for call in calls:
        for row in call["operations"]:
            bad |= check(f"what it computes: {row}",
                         bool(row["computes"]) == (row["ms"] is not None) == (row["percent"] is not None))
    return bad | check(f"norms in the commands of sums: {out.stdout}", "with rms_norm" in out.stdout
                       and "in add" in out.stdout)


def goals(build, folder):
    """Whether a goal is met: of the ratio or of seconds, only with the sizes that it was set for, and only with as many
    cores. Each row is in the file at once."""
    to = os.path.join(folder, "goals.json")
    bad = 0
    for tokens, cores, ours, theirs, goal, also, reached in (
            (512, 2, 1.4, 1.0, "compare", True, True), (512, 2, 1.6, 1.0, "compare", True, False),
            (16, 2, 1.6, 1.0, "compare", True, None),
            (512, 2, 14, 1.0, "explain", True, True), (512, 1, 14, 1.0, "explain", True, None),
            (512, 1, 1.0, 2.0, "big-load", True, True),
            (512, 1, 1.0, 2.0, "big-load", False, False), (512, 2, 3.6e-3, 1.0, ("gpu", 128), True, False),
            (512, 2, 1.0, 1.0, None, True, None),
            (512, 2, 3.0, 1.0, "floor", True, None), (512, 16, 3.0, 1.0, "floor", True, False),
            (512, 16, 1.9, 1.0, "floor", True, True),
            (512, 16, 1.9, 1.0, "floor", False, False), (512, 15, 9.0, 1.0, "big-replay", True, None)):
        table = bench.Bench(Namespace(build=build, json=to, threads=16, tokens=tokens, layers=None, shape="qwen2-0.5b"),
                            folder)
        table.cores = cores
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            table.add("row", "work", ours, "peer", theirs, goal=goal, also=[("something else", also)])
        what = f"{goal}, {ours} beside {theirs}, {tokens} tokens, {cores} cores"
        bad |= check(f"{what}: {table.rows[0]['reached']}", table.rows[0]["reached"] is reached)
        verdict = ("reached" if reached else "MISSED" if reached is False else f"for {bench.CORES.get(goal)} cores"
                   if goal and tokens == 512 else "-")
        bad |= check(f"{what}: {text.getvalue()}", verdict in text.getvalue() + "-")
        with open(to) as f:
            bad |= check("each row is written at once", json.load(f)["rows"] == table.rows)
        os.unlink(to)
    return bad


def main():
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "big")
        subprocess.run([os.path.join(build, "compare", "vernier"), "synth", "tiny", "-o", model, "--layers", "1"],
                       check=True, capture_output=True)
        return int(rows(build, folder, model) | goals(build, folder))


if __name__ == "__main__":
    sys.exit(main())
