#!/usr/bin/env python3
"""bench_experts.py VERNIER [MODEL]: the resident memory of 8 tokens through a mixture of experts.

MODEL: a HuggingFace directory in one safetensors file (vernier synth qwen3-30b-a3b --layers 4 -o MODEL). Prints the
peak (VmHWM of /proc, which counts the pages of mapped files), the largest RssAnon and RssFile seen, the bytes of the
dense part and of the experts that a token was routed to: of a run, the same with --experts loaded, a comparison of it
with a run in float16 (--model), an evaluation of these tokens, and `isolate --check` of that run. Exit status 1: a peak
but that of `loaded` is above dense part, routed experts and 1 GiB; with small models, which are made if none is given,
it is less than four fifths of the other experts below that of `loaded` (of twice that where a loaded expert is copied,
because its file has it transposed). Or the two runs differ in a bit. Needs h5py and numpy."""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    sys.exit(77)

GIB = 1 << 30
IDS = "1,2,3,5,8,13,21,34"
TINY = {"vocab_size": 64, "hidden_size": 512, "intermediate_size": 256, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "num_experts_per_tok": 1}


def names_of(c):
    """Name and shape of each tensor; experts of gpt-oss in one, and transposed."""
    D, F, V, E, Q, K = c["hidden_size"], c["intermediate_size"], c["vocab_size"], 64, 4 * 64, 2 * 64
    yield from (("model.embed_tokens.weight", (V, D)), ("lm_head.weight", (V, D)), ("model.norm.weight", (D,)))
    for n in range(c["num_hidden_layers"]):
        stem = f"model.layers.{n}."
        yield from ((stem + name, shape) for name, shape in (
            ("input_layernorm.weight", (D,)), ("post_attention_layernorm.weight", (D,)),
            ("self_attn.q_proj.weight", (Q, D)), ("self_attn.k_proj.weight", (K, D)),
            ("self_attn.v_proj.weight", (K, D)), ("self_attn.o_proj.weight", (D, Q))))
        if c["model_type"] == "gpt_oss":
            yield from ((stem + name, shape) for name, shape in (
                ("self_attn.sinks", (4,)), ("self_attn.q_proj.bias", (Q,)), ("self_attn.k_proj.bias", (K,)),
                ("self_attn.v_proj.bias", (K,)), ("self_attn.o_proj.bias", (D,)), ("mlp.router.weight", (E, D)),
                ("mlp.router.bias", (E,)), ("mlp.experts.gate_up_proj", (E, D, 2 * F)),
                ("mlp.experts.gate_up_proj_bias", (E, 2 * F)), ("mlp.experts.down_proj", (E, F, D)),
                ("mlp.experts.down_proj_bias", (E, D))))
            continue
        yield from ((stem + name, shape) for name, shape in (
            ("self_attn.q_norm.weight", (64,)), ("self_attn.k_norm.weight", (64,)), ("mlp.gate.weight", (E, D))))
        for e in range(E):
            yield from ((f"{stem}mlp.experts.{e}.{part}.weight", shape) for part, shape in (
                ("gate_proj", (F, D)), ("up_proj", (F, D)), ("down_proj", (D, F))))


def write_model(folder, **config):
    c = {**TINY, **config}
    rng, header, at = np.random.default_rng(1), {}, 0
    tensors = list(names_of(c))
    for name, shape in tensors:
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * int(np.prod(shape))]}
        at = header[name]["data_offsets"][1]
    text = json.dumps(header).encode()
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(c, f)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors:
            x = rng.standard_normal(shape, dtype=np.float32) * np.float32(1 if len(shape) == 1 else shape[-1] ** -0.5)
            f.write((np.abs(x) if "norm" in name else x).tobytes())
    return folder


def header_of(model):
    with open(os.path.join(model, "model.safetensors"), "rb") as f:
        return json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))


def sizes_of(model):
    """Bytes of the dense part and of an expert, experts of a layer, and all of them."""
    with open(os.path.join(model, "config.json")) as f:
        c = json.load(f)
    tensors = {n: t["data_offsets"][1] - t["data_offsets"][0] for n, t in header_of(model).items() if "dtype" in t}
    experts = sum(b for n, b in tensors.items() if ".experts." in n)
    count = c.get("num_experts") or c["num_local_experts"]
    return sum(tensors.values()) - experts, experts // (count * c["num_hidden_layers"]), experts


# Small: what a process begins with counts, too.
WATCH = r"""
import os, sys, time
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
most = {"VmHWM": 0, "RssAnon": 0, "RssFile": 0}
done = 0
while not done:
    try:
        with open(f"/proc/{pid}/status") as f:
            said = dict(line.split(":", 1) for line in f)
        for key in most:
            most[key] = max(most[key], int(said.get(key, "0").split()[0]) * 1024)
    except OSError:
        pass
    time.sleep(0.002)
    done, status, usage = os.wait4(pid, os.WNOHANG)
print(max(most["VmHWM"], usage.ru_maxrss * 1024), most["RssAnon"], most["RssFile"], file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peaks(command):
    """VmHWM, and the largest RssAnon and RssFile seen."""
    out = subprocess.run([sys.executable, "-I", "-S", "-c", WATCH, *command], stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True)
    if out.returncode:
        sys.exit(f"{' '.join(command)}: status {out.returncode}: {out.stderr}")
    return [int(x) for x in out.stderr.split("\n")[-2].split()]


def digests(path):
    found = {}
    with h5py.File(path) as f:
        f["step.0"].visititems(lambda name, o: found.__setitem__(name, o.attrs["digest"])
                               if isinstance(o, h5py.Dataset) else None)
        chosen = {(name, i) for name in found if name.endswith("router_ids") for i in f["step.0"][name][()].flat}
        found["weights"] = f["model/weights"][()].tobytes()
    return found, chosen


def check(vernier, model, label, folder, small=0):
    """small: how often a loaded expert is in memory."""
    dense, each, experts = sizes_of(model)
    out = os.path.join(folder, "run.h5")
    peak, seen = {}, {}
    for how in ("mapped", "loaded"):
        peak[how] = peaks([vernier, "capture", "ref", model, "--ids", IDS, "-o", out, "--force", "--threads", "2",
                           "--experts", how])
        seen[how] = digests(out)
    half = os.path.join(folder, "half.h5")
    subprocess.run([vernier, "capture", "ref", model, "--ids", IDS, "-o", half, "--force", "--precision", "f16"],
                   check=True, capture_output=True)
    peak["compare"] = peaks([vernier, "compare", out, half, "--model", model, "--threads", "2"])
    peak["evaluate"] = peaks([vernier, "evaluate", model, "--ids", IDS, "--candidate", "ref", "--decode", "0",
                               "--threads", "2"])
    peak["isolate"] = peaks([vernier, "isolate", model, "--ids", IDS, "--check", f"cp '{half}' '{out}.cand'",
                             "--check-recording", out + ".cand", "--threads", "2", "--force"])
    routed = len(seen["mapped"][1] | digests(half)[1])
    touched = routed * each
    print(f"{label}: dense part {dense / GIB:.3f} GiB, {routed} routed experts {touched / GIB:.3f} of "
          f"{experts / GIB:.3f} GiB")
    bound = peak["loaded"][0] - 0.8 * small * (experts - touched) if small else dense + touched + GIB
    for how in peak:
        print("  {}: peak {:.3f} GiB (RssAnon {:.3f}, RssFile {:.3f})".format(how, *(x / GIB for x in peak[how])))
    print(f"  bound {bound / GIB:.3f} GiB")
    good = all(p[0] <= bound for how, p in peak.items() if how != "loaded")
    same = seen["mapped"][0] == seen["loaded"][0]
    print(f"  {'ok' if good and same else 'FAILED'}: {len(seen['mapped'][0])} checkpoints, "
          f"{'equal bits' if same else 'other bits'}", flush=True)
    return good and same


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as d:
        if len(sys.argv) == 3:
            return 0 if check(sys.argv[1], sys.argv[2], sys.argv[2], d) else 1
        models = {"one tensor an expert": dict(model_type="qwen3_moe", num_experts=64, moe_intermediate_size=256),
                  "one of all, transposed": dict(model_type="gpt_oss", num_local_experts=64, sliding_window=4,
                                                 attention_bias=True)}
        return 0 if all([check(sys.argv[1], write_model(os.path.join(d, c["model_type"]), **c), label, d,
                               1 + (c["model_type"] == "gpt_oss"))
                         for label, c in models.items()]) else 1


if __name__ == "__main__":
    sys.exit(main())
