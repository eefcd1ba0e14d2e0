#!/usr/bin/env python3
"""parity_faults.py: every fault that --inject makes, against what the catalogue says it does.

    parity_faults.py VERNIER [ID,ID...|--all|--one|--half]

For each fault and two of the families that `vernier points --faults` says it fits (IDs, --all: every family; --one: one
family; --half: of every other fault one family), one run
of the reference in float32 with the fault in the middle of the model (in a late layer that it fits, or outside layers),
70 tokens; of faults that show in later calls alone, and of some others, the last three of them one by one:

  - nothing before the first faulty node changes by a bit, and that node changes;
  - every faulty node makes of its inputs what faults_truth.py predicts, to 1e-5 of the largest value.

The unmodified formulas are checked against an unmodified run first, so a wrong prediction is not taken for a fault.
Exit status 1 when one fails. Its arithmetic is numpy's and shares nothing with the program.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import faults_blocks
from faults_truth import DTYPES, Truth, safetensors
from parity_hf import FAMILIES as EVERY, FIXTURES, tensors

FAMILIES = [f for f in EVERY if f != "gemma2"]  # faults_truth.py has no soft caps
HEADS = 4, 2 # of queries and of keys, of qwen3_5_text-trained
IDS = os.path.join(FIXTURES, "prompts", "p070.ids")
SHORT = "1,2,3,39,7,9,11,0"
LEAST = 1e-5
# Weights without biases stay as they are where the files have none of the format: the
# program says so.
REFUSED = "leaves the weights there unchanged", "not f16 or bf16", "for other block formats"
BLOCKS = ("W16", "W16.swapped", "W17", "W17.min", "W17.dropped", "W21", "W21.back", "W21.all", "W21.all_back",
          "W21.next", "W22", "W22.sub")


LLAMA_PAIRS = 4 # of columns in a head of llama-trained
# They show behind the first call alone; these are tried there, too.
# float64, or a number in the middle of two would be rounded otherwise
DOUBLE = ("P1", "P1.saturated", "P3", "P5", "P5.bf16", "N18")
LATER = ("G13.lost", "G15", "G16.calls", "R3b.next", "R3b.last", "R3b.zero", "R3b.twice", "R15.twice", "R17.call",
         "R10.cached", "R10.again", "R11", "R15.zero", "A3.chunk", "A23", "C5", "C5.before", "C7.f16", "C7.f8",
         "C7.e5m2", "C7.int8", "C7.bare", "C8", "C12", "C14", "C14.k", "C14.v", "C15", "C16", "C6.whole", "C10.k",
         "C10.v", "C11.last",
         "C1.late", "C1.early", "C5.stale", "R3b.stuck", "R3b.double", "G19.bf16", "G19.f16", "G19.first", "G19.again",
         "G19.drafts", "G19.half", "G19.heads")
THIRD = ("R3b.stuck", "R3b.double", "G19.first") # the second call begins as it should
LATER_TOO = ("R1", "R3.plus", "A1.twice", "A5.narrow", "A6", "A10.heads", "A14", "C1", "C2", "C2.seen", "C3", "C6",
             "N4", "M2", "W2.heads", "W6", "M5.plus",
             "G4.k", "G4.one", "G7.none", "G19.former", "G19.padding", "G8.memory", "G10", "G11", "G12", "G18.first")

# Families again with other configs, and the faults of those: no fixture has yarn, a frequency in
# llama3's smooth band, or a window in some layers.
VARIANTS = (
    ("llama", "with yarn", "R5 R6", {"rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24, "rope_theta": 100.0}}),
    ("llama", "with yarn and a factor", "R6", {"rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24, "rope_theta": 100.0,
        "attention_factor": 1.3}}),
    ("llama", "with dynamic scaling", "R17", {"max_position_embeddings": 24, "rope_parameters": {
        "rope_type": "dynamic", "factor": 4.0, "rope_theta": 100.0}}),
    ("llama", "with longrope", "R17.short R17.call", {"rope_parameters": {
        "rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 24, "rope_theta": 100.0,
        "short_factor": [1.0 + i / 16 for i in range(LLAMA_PAIRS)],
        "long_factor": [2.0 + i for i in range(LLAMA_PAIRS)]}}),
    ("llama", "with short text for longrope", "R17.long", {"rope_parameters": {
        "rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 96, "rope_theta": 100.0,
        "short_factor": [1.0 + i / 16 for i in range(LLAMA_PAIRS)],
        "long_factor": [2.0 + i for i in range(LLAMA_PAIRS)]}}),
    ("llama", "with llama3", "R5 R7", {"rope_parameters": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 256, "rope_theta": 500000.0}}),
    ("qwen2", "with windows", "A5", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1,
                                     "layer_types": ["sliding_attention", "full_attention"]}),
    ("qwen3_5_text", "with heads as wide as the model", "G20", {"head_dim": 8}),
    ("qwen2", "with large scores", "A12 P2", {"louder": "q_proj k_proj"}),
    ("llama", "with large products", "P1 P5", {"louder": "up_proj gate_proj down_proj"}),
)


def louder(source, out, part):
    """The weights again, those of a name 32 times as large (in f16 or bf16: exactly)."""
    data = bytearray(open(source, "rb").read())
    n = int.from_bytes(data[:8], "little")
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__" and any(p in name for p in part.split()):
            begin, end = (8 + n + at for at in t["data_offsets"])
            if t["dtype"] == "BF16":
                x = (np.frombuffer(data[begin:end], "<u2").astype(np.uint32) << 16).view(np.float32)
                data[begin:end] = ((np.float32(32) * x).view(np.uint32) >> 16).astype("<u2").tobytes()
            else:
                x = np.frombuffer(data[begin:end], DTYPES[t["dtype"]])
                data[begin:end] = (32 * x).astype(x.dtype).tobytes()
    open(out, "wb").write(data)


def narrower(source, out, K):
    """The weights again, of heads of K columns: the first of each."""
    parts, head, at = [], {}, 0
    for name, (x, dtype, _) in safetensors(source).items():
        H, shape = {"q_proj": 2 * HEADS[0], "o_proj": HEADS[0]}.get(name.split(".")[-2], HEADS[1]), x.shape
        if ".o_proj" in name:
            x = x.reshape(shape[0], H, -1)[:, :, :K].reshape(shape[0], -1)
        elif ".self_attn." in name:
            x = x[:K] if "_norm" in name else x.reshape(H, -1, shape[1])[:, :K].reshape(-1, shape[1])
        parts.append(x.astype("<f4").tobytes())
        head[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps(head).encode()
    open(out, "wb").write(len(text).to_bytes(8, "little") + text + b"".join(parts))


def variant(family, changes, out):
    """The model of a family with another config, or louder or narrower weights, as a directory."""
    source = os.path.join(FIXTURES, family + "-trained")
    part = changes.get("louder")
    for name in os.listdir(source):
        at = os.path.join(source, name), os.path.join(out, name)
        if part and name.endswith(".safetensors"):
            louder(*at, part)
        elif "head_dim" in changes and name.endswith(".safetensors"):
            narrower(*at, changes["head_dim"])
        elif name != "config.json":
            os.symlink(os.path.abspath(at[0]), at[1])
    config = json.load(open(os.path.join(source, "config.json")))
    json.dump({**config, **{k: v for k, v in changes.items() if k != "louder"}},
              open(os.path.join(out, "config.json"), "w"))
    return out


def run(vernier, model, out, *inject, steps=0, precision="f32", ids=None):
    """What each call recorded; or, refused, the complaint."""
    ids = (ids or open(IDS).read().strip()).split(",")
    cut = len(ids) - steps
    done = subprocess.run([vernier, "capture", "ref", model, "--ids", ",".join(ids[:cut]), "--points", "*", "--threads",
                           "1", "--precision", precision, "--force", "-o", out,
                           *(a for i in inject for a in ("--inject", i)),
                           *(("--force-ids", ",".join(ids[cut:])) if steps else ())],
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return done.stderr
    calls = []
    for i in range(steps + 1):
        calls.append({name: d[()] for name, d in tensors(out, i).items()})
        calls[i]["ids"] = np.array([int(x) for x in (ids[cut + i - 1:cut + i] if i else ids[:cut])])
    return calls


def fitting(vernier, model):
    text = subprocess.run([vernier, "points", "--faults", model], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()[1:]]
    return [r[0] for r in rows if r[1] != "-"]


def wrong(z, o):
    o = o.astype(np.float64).reshape(z.shape)
    if not np.array_equal(np.isfinite(z), np.isfinite(o)):
        return float("inf")
    z, o = z[np.isfinite(z)], o[np.isfinite(o)]
    if not z.size:
        return 0.0
    return float(np.max(np.abs(z - o)) / max(np.max(np.abs(z)), 1e-30))


# No neighbours in a buffer: made on demand, stored wide, states, second names.
ODD = ("attn_scores", "attn_probs", "gate_act", "k_cache", "v_cache", "gdn_q", "gdn_k", "gdn_g", "gdn_state",
       "gdn_conv_state", "input")


def taken_for(fault, name, unmodified):
    """The checkpoint that is recorded in place of another."""
    names = [n for n in unmodified if n != "ids" and n.split(".")[-1] not in ODD]
    layer, point = name.split(".") if "." in name else ("", name)
    fixed = {"P10.context": "attn_context", "P10.out": "attn_out", "P10.gated": "attn_gated"}
    if fault in fixed:
        return f"{layer}.{fixed[fault]}"
    if fault == "P21":
        return "final_norm"
    if fault == "P20":
        return f"layer{int(layer[5:]) - 1}.{point}"
    if fault == "P23":
        own = unmodified[name].reshape(len(unmodified[name]), -1)
        first = lambda n: unmodified[n].reshape(len(own), -1)[:, : own.shape[1]]
        wider = [n for n in names[:names.index(name)] if unmodified[n].size > own.size
                 and not np.array_equal(first(n), own)]
        return wider[-1] if wider else None
    alike = [n for n in names if unmodified[n].size == unmodified[name].size]
    if name not in alike:
        return None
    at = alike.index(name) + (1 if fault == "P7" else -1)
    return alike[at] if at >= 0 else None


def recorded_as(fault, name, unmodified):
    """What stands under a name."""
    if fault == "P11":
        return unmodified[name].reshape(len(unmodified[name]), -1).T.tobytes()
    if fault == "P11.heads":
        return unmodified[name].transpose(1, 0, 2).tobytes()
    x = unmodified[taken_for(fault, name, unmodified)]
    return x.reshape(len(x), -1)[:, : unmodified[name][0].size].tobytes()


def check_capture(vernier, model, fault, unmodified, out):
    """The same for a fault of the recording alone: one checkpoint is another, and nothing else changes."""
    tried = 0
    said = run(vernier, model, out, fault + "@nothing.at.all")
    for name in said.strip().split("these can: ")[-1].replace(", ...", "").split(", ")[-6:]:
        faulty = run(vernier, model, out, f"{fault}@{name}")
        if isinstance(faulty, str):
            return faulty.strip(), tried, 0.0
        faulty = faulty[0]
        changed = [n for n in unmodified if n != "ids" and faulty[n].tobytes() != unmodified[n].tobytes()
                   and not n.endswith(".input")]
        if changed != [name] or faulty[name].tobytes() != recorded_as(fault, name, unmodified):
            return f"{name}: {', '.join(changed)} changed, or it is something else than predicted", tried, 0.0
        tried += 1
    return None, tried, 0.0


def recorder_fault(fault, calls, i, name, former):
    """The numbers of a checkpoint of a call as a mistake of the recording has them. former: what a prompt before
    made."""
    x = calls[i][name]
    moved = (64 * b"\0" + x.tobytes())[:x.nbytes]
    rules = {
        "P8": lambda: calls[i - 1][name] if i and calls[i - 1][name].shape == x.shape else x,
        "P12.swapped": lambda: x.byteswap(),
        "P8.prompt": lambda: x if i else former[name],
        "P12.offset": lambda: np.frombuffer(moved, x.dtype).reshape(x.shape), "P13": lambda: x[-1:],
        "P13.padded": lambda: np.concatenate([x, np.zeros((-len(x) % 16, *x.shape[1:]), x.dtype)]),
        "M6": lambda: x[-1:] if name == "logits" else x, "P12.dtype": lambda: x.view(np.uint16),
    }
    return rules[fault]()


GPU_ALONE = ("P9.barrier",)
RECORDER_FAULTS = "P8", "P8.prompt", "P12.swapped", "P12.offset", "P12.dtype", "P13", "P13.padded", "M6"


def check_recorder_fault(vernier, model, fault, out):
    """A prefill and three single tokens. Values recorded in another format are compared by its bits."""
    precision = "f16" if fault == "P12.dtype" else "f32"
    name = "logits" if fault == "M6" else "layer1.attn_norm"
    calls = run(vernier, model, out, steps=3, precision=precision)
    ids = open(IDS).read().strip().split(",")[:-3]
    former = run(vernier, model, out, ids=",".join(reversed(ids)))[0]
    faulty = run(vernier, model, out, f"{fault}@{name}", steps=3, precision=precision)
    if isinstance(faulty, str):
        return faulty.strip(), 0, 0.0
    for i, call in enumerate(faulty):
        for n in call:
            z, o = (recorder_fault(fault, calls, i, n, former) if n == name else calls[i][n]), call[n]
            if z.shape != o.shape or z.tobytes() != o.tobytes():
                return f"{name}: {n} of call {i} is something else than predicted", 0, 0.0
    if all(c[name].tobytes() == s[name].tobytes() and c[name].dtype == s[name].dtype for c, s in zip(faulty, calls)):
        return f"{name}: nothing changes", 0, 0.0
    return None, 4, 0.0


def check(vernier, model, truth, fault, unmodified, out):
    """What is wrong, or None; and how many nodes were looked at."""
    if fault in GPU_ALONE:
        said = run(vernier, model, out, fault + "@*")
        return ((None, 1, 0.0) if isinstance(said, str) and "the reference engine has no barriers" in said
                and said.count("\n") == 1 else ("the reference takes it", 0, 0.0))
    if fault in RECORDER_FAULTS:
        return check_recorder_fault(vernier, model, fault, out)
    if fault[:3] in ("P6", "P7", "P10", "P20", "P21", "P23", "P11"):
        return check_capture(vernier, model, fault, unmodified[0, "f32"][0], out)
    steps = 3 if fault in LATER or fault in LATER_TOO else 0
    precision = "f64" if fault in DOUBLE else "f32"
    if (steps, precision) not in unmodified:
        unmodified[steps, precision] = run(vernier, model, out, steps=steps, precision=precision)
    unmodified = unmodified[steps, precision]
    names = [n for n in unmodified[0] if n != "ids"]
    for where in [f"layer{l}" for l in reversed(range(truth.L))] + ["*"]:
        faulty = run(vernier, model, out, f"{fault}@{where}", steps=steps, precision=precision)
        if not isinstance(faulty, str):
            break
        if any(r in faulty for r in REFUSED):
            return None, 0, 0.0
        if "no operation there can have this fault" not in faulty:
            return faulty.strip(), 0, 0.0
    else:
        return faulty.strip(), 0, 0.0
    inside = lambda n: where == "*" or n.startswith(where + ".")
    predicted = {}
    for i, call in enumerate(faulty):
        for n in names:
            z = truth.predict(fault, n, faulty[:i + 1]) if inside(n) else None
            if z is not None:
                predicted[n, i] = z
    changed = [(n, i) for i in range(len(faulty)) for n in names if not n.endswith("_state")
               and faulty[i][n].tobytes() != unmodified[i][n].tobytes()]
    if not changed:
        return f"{where}: nothing changes", 0, 0.0
    if changed[0] not in predicted:
        return (f"{where}: the first to change is {changed[0]}, which no prediction is for "
                f"({', '.join(n for n, i in predicted)})", 0, 0.0)
    shows = next(i for n, i in changed if not n.endswith("_cache"))
    if shows != (fault in LATER) + (fault in THIRD):
        return f"{where}: it shows in call {shows}", 0, 0.0
    # The tables of a rotation are float32: behind it a number in the middle of two is
    # rounded as they say.
    off = lambda n, i: wrong(predicted[n, i], faulty[i][n]) / (100 if fault in DOUBLE and n.endswith("_rope") else 1)
    worst = max((off(n, i), f"{n} of call {i}") for n, i in predicted)
    if not worst[0] <= LEAST:
        return f"{where}: {worst[1]} is {worst[0]:.1e} off what is predicted", len(predicted), worst[0]
    return None, len(predicted), worst[0]


class Family:
    """A family's model, or a variant of it, with its unmodified runs."""
    def __init__(self, vernier, family, label="", changes=None):
        self.vernier, self.name, self.dir = vernier, f"{family} {label}".strip(), tempfile.TemporaryDirectory()
        self.model = variant(family, changes, self.dir.name) if changes else os.path.join(FIXTURES, family + "-trained")
        self.truth, self.out = Truth(self.model), os.path.join(self.dir.name, "r")
        self.unmodified = {(steps, "f32"): run(vernier, self.model, self.out, steps=steps) for steps in (0, 3)}
        names = self.unmodified[0, "f32"][0]
        self.truth.stale = {n: taken_for("P9", n, names) for n in names if n != "ids"}
        self.fits = fitting(vernier, self.model)
        self.faults, self.nodes, self.worst = 0, 0, (0.0, "")

    def check_unmodified(self):
        failed = 0
        for calls in self.unmodified.values():
            for n, i in ((n, i) for i, call in enumerate(calls) for n in call if n != "ids"):
                z = self.truth.predict(None, n, calls[:i + 1])
                if z is not None and not wrong(z, calls[i][n]) <= LEAST:
                    print(f"{self.name}: {n} of call {i}: the unmodified formula is {wrong(z, calls[i][n]):.1e} off")
                    failed += 1
        return failed

    def check(self, fault, seen):
        why, nodes, off = check(self.vernier, self.model, self.truth, fault, self.unmodified, self.out)
        self.faults, self.nodes, self.worst = self.faults + 1, self.nodes + nodes, max(self.worst, (off, fault))
        if nodes:
            seen.add(fault)
        if why:
            print(f"{self.name}: {fault}@{why}")
        return why is not None


def check_blocks(vernier, out, fault):
    """A file whose matrices are in several formats of blocks: every product that the fault fits."""
    model, n = os.path.join(FIXTURES, "gguf", "qwen2-wide.mixed.gguf"), 0
    tensors, unmodified = faults_blocks.gguf(model), run(vernier, model, out, ids=SHORT)[0]
    for point in faults_blocks.PRODUCTS:
        where = f"layer0.{point}"
        z = faults_blocks.product(tensors, 0, point, unmodified, None)
        if not wrong(z, unmodified[where]) <= LEAST:
            return f"{where}: the unmodified formula is {wrong(z, unmodified[where]):.1e} off", n
        z, faulty = faults_blocks.product(tensors, 0, point, unmodified,
                                          fault), run(vernier, model, out, f"{fault}@{where}", ids=SHORT)
        if (z is None) != isinstance(faulty, str):
            return f"{where}: {faulty if z is None else 'it is made'}", n
        if z is not None and (faulty[0][where].tobytes() == unmodified[where].tobytes()
                              or not wrong(z, faulty[0][where]) <= LEAST):
            return f"{where}: it is {wrong(z, faulty[0][where]):.1e} off what is predicted", n
        n += z is not None
    return None, n


def main():
    vernier, only = sys.argv[1], sys.argv[2].split(",") if len(sys.argv) > 2 else []
    half = only == ["--half"]
    most, only = (1, []) if half or only == ["--one"] else (2, only)
    families = [Family(vernier, f) for f in FAMILIES]
    failed, seen = sum(f.check_unmodified() for f in families), set()
    for n, fault in enumerate(dict.fromkeys(i for f in families for i in f.fits)):
        where = [f for f in families if fault in f.fits]
        if half and n % 2:
            continue
        if "--all" in only or fault in only:
            failed += sum(f.check(fault, seen) for f in where)
        elif not only: # others for the next fault; others where their weights stay what they are
            at = n // 2 if half else n
            some = [where[at % len(where)], where[(at + len(where) // 2) % len(where)]][:most]
            failed += sum(f.check(fault, seen) for f in dict.fromkeys(some))
            failed += sum(f.check(fault, seen) for f in where if fault not in seen and f not in some)
    for family, label, chapters, changes in VARIANTS:
        families.append(Family(vernier, family, label, changes))
        failed += families[-1].check_unmodified()
        failed += sum(families[-1].check(f, seen) for f in families[-1].fits
                      if {f, f.split(".")[0]} & set(chapters.split()) and (not only or "--all" in only or f in only))
    for fault in BLOCKS:
        with tempfile.TemporaryDirectory() as d:
            why, n = check_blocks(vernier, os.path.join(d, "r"),
                                  fault) if not only or "--all" in only or fault in only else (None, 0)
        if n:
            seen.add(fault)
        if why:
            print(f"{fault}@{why}")
            failed += 1
    for f in families:
        print(f"{f.name}: {f.faults} faults, {f.nodes} faulty nodes are as predicted, the farthest by {f.worst[0]:.1e} "
              f"({f.worst[1]})")
    print(f"{len(seen)} faults seen")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
